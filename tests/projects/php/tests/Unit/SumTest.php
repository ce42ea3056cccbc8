<?php
use PHPUnit\Framework\TestCase;

final class SumTest extends TestCase
{
    public function testOfNothingIsZero(): void
    {
        $this->assertSame(0, sum());
    }

    /** @dataProvider pairs */
    public function testOfTwo(int $a, int $b, int $whole): void
    {
        $this->assertSame($whole, sum($a, $b));
    }

    public static function pairs(): array
    {
        return ['small' => [1, 2, 3], 'wrong one' => [2, 2, 5]];
    }

    public function testSkipped(): void
    {
        $this->markTestSkipped('not on this machine');
    }
}
