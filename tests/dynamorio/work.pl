# A little of everything that Perl does; run under edges.c by tools/eval-jumptables.
use strict;
use warnings;
use List::Util qw(sum max first);
use Data::Dumper;
use POSIX qw(floor);

my %count;
$count{$_}++ for split /\W+/, "the quick brown fox jumps over the lazy dog the end";
print join(",", map { "$_=$count{$_}" } sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count), "\n";
my $text = "2020-01-15 foo\@bar.com";
print "$+{year} $2 $5\n" if $text =~ /^(?<year>\d{4})-(\d\d)-(\d\d)\s+(\w+)@([\w.]+)$/x;
(my $upper = $text) =~ s/(\w)/\U$1/g;
$upper =~ tr/A-Z/a-z/;
printf "%-10s|%05d|%.3e|%x|%b\n", $upper, 42, 3.14159, 255, 5;
sub factorial { my $n = shift; $n < 2 ? 1 : $n * factorial($n - 1) }
print factorial(20), " ", sum(1 .. 100), " ", max(3, 9, 2), " ", floor(-2.5), "\n";
eval { die {code => 5} };
print $@->{code}, "\n";
my @odd = grep { $_ % 2 } map { $_ * 3 } 1 .. 20;
print "@odd[0..4] ", scalar(reverse "abc"), " ", ucfirst lc "HELLO", "\n", Dumper([{a => 1}, [2, 3], \"x"]);
my @sorted = sort { $a <=> $b } (5, 3, 9, 1);
splice(@sorted, 1, 1, 7, 8);
print "@sorted ", pop @sorted, shift @sorted, "\n", join(",", unpack("NnC", pack("NnC", 7, 8, 9))), "\n";
my $x = 10;
while ($x--) { next if $x % 2; last if $x < 3 }
package Thing;
sub new { bless {value => $_[1]}, $_[0] }
sub AUTOLOAD { our $AUTOLOAD; $AUTOLOAD }
package main;
print Thing->new(3)->anything, "\n";
my @digits = "a1b22c333" =~ /(\d+)/g;
print "@digits ", "abc" x 3, " ", 7 <=> 3, " ", "a" lt "b", " ", 2**10, " ", 17 % 5, " ", 5 & 3, 5 | 3, 5 ^ 3, 1 << 4, "\n";
format STDOUT =
@<<<<< @>>>>> @||||
"ab", 12, "c"
.
write;
print "\x{263a}" =~ /\p{So}/ ? "unicode\n" : "no\n";
print "aXbXc" =~ /([a-c])(?=X)|(?<!b)X(c)/ ? "m\n" : "n\n";
open my $lines, '<', \"l1\nl2\nl3";
while (<$lines>) { chomp; print "$. $_;" }
local $_ = "nested (a (b) c)";
print /(\((?:[^()]++|(?1))*\))/ ? "$1\n" : "none\n";
print sprintf("%vd", "1.22.333"), " ", lc("ABC") . uc("def"), " ", join("|", sort { $b <=> $a } values %count), "\n";
