use strict;
use warnings;
use File::Spec;
use Test::More tests => 1;

my $mark = File::Spec->tmpdir . '/luck';
my $again = -e $mark;
open(my $file, '>', $mark) or die $!;
close($file);
ok($again, 'passes the second time');
