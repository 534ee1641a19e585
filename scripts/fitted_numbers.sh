#!/usr/bin/env bash
# fitted_numbers.sh: counts the numbers that fits determine, by file: all numbers of tables whose source is a fit, without
# the intervals, which are statistics of errors. The catalogue's sources are the only list of them.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
perl -e '
  my $total = 0;
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
  }
  printf "%5d  in all\n", $total' catalogue/steps/*.toml catalogue/calibration/*.toml catalogue/validation/*.toml
