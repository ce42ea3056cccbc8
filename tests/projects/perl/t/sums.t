use strict;
use warnings;
use Test::More;
use Sums;

is(Sums::of(), 0, 'of nothing is zero');
subtest 'of two' => sub {
    is(Sums::of(1, 2), 3, 'small');
    is(Sums::of(1, 2), 5, 'wrong one');
};
SKIP: {
    skip 'not on this machine', 1;
    fail('never run');
}
TODO: {
    local $TODO = 'some day';
    is(Sums::of('x'), 1, 'words');
}
done_testing();
