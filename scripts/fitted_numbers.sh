#!/usr/bin/env bash
# fitted_numbers.sh: counts the numbers that fits determine, by file: all numbers of tables whose source is a fit, without
# the intervals, which are statistics of errors. The catalogue's sources are the only list of them. Fails if training and
# serving steps have more than they may: a new number has to replace another one, or show what it is worth.
set -eu
most=110
cd "$(dirname "${BASH_SOURCE[0]}")/.."
perl -e '
  my ($total, $of_steps, $most) = (0, 0, shift);
  for my $file (@ARGV) {
    open my $in, "<", $file or die "$file: $!";
    my ($n, $fitted, $statistics) = (0, 0, 0);
    while (<$in>) {
      next if /^\s*(#|$)/;
      if (/^\[+([^\]]+)/) { my $name = $1; $fitted = 0 unless $name =~ /\./ && $name !~ /^source/; $statistics = $name =~ /interval|^source|^spread/; next }
      if (/^source = "(\w+)"/) { $fitted = $1 eq "fit"; next }
      next if !$fitted || $statistics || !/^"?[\w ]+"? = (.*)/;
      my $values = $1;
      $values =~ s/"([^"]*)" =/=/g;
      $n++ while $values =~ /(?<![\w.])-?\d[\d.e+-]*/g;
    }
    printf "%5d  %s\n", $n, $file if $n;
    $total += $n;
    $of_steps += $n if $file =~ m{steps/};
  }
  printf "%5d  in all, %d of training and serving steps (at most %d)\n", $total, $of_steps, $most;
  exit($of_steps > $most)' "$most" catalogue/steps/*.toml catalogue/calibration/*.toml catalogue/validation/*.toml
