<?php
use PHPUnit\Framework\TestCase;

final class LuckTest extends TestCase
{
    public function testPassesTheSecondTime(): void
    {
        $mark = getenv('TMPDIR') . '/luck';
        $again = file_exists($mark);
        touch($mark);
        $this->assertTrue($again, 'the first time fails');
    }
}
