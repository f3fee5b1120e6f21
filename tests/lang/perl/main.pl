use strict;
use warnings;
require "./other.pl";
my ($mode, @args) = @ARGV;
if ($mode eq "talk") {
	print greeting(), "\n";
	print "arg: $_\n" for @args;
	print "stdin: $_" while <STDIN>;
	exit 7;
} elsif ($mode eq "fault") {
	die "boom ä";
} elsif ($mode eq "big") {
	print "x" x (1 << 20) for 1 .. 10;
} elsif ($mode eq "loop") {
	1 while 1;
} elsif ($mode eq "memory") {
	my $n = 4 << 30;
	my $x = "x" x $n;
}
