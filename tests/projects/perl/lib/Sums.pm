package Sums;
use strict;
use warnings;
use List::Util ();

sub of { return List::Util::sum0(@_) }

1;
