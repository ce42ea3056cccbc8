<?php
function sum(int ...$numbers): int
{
    return array_sum($numbers);
}
