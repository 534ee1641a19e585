#!/bin/sh
# Checks that ideas which once had several definitions have one; prints what breaks a rule.
#   * a step makes the gradient of a weight: program::makes_weight_gradient(), and nobody asks otherwise;
#   * the sizes of a product of a program: product_sizes() and product_shape();
#   * the clock of items on lanes: clock::run(); who keeps the time when a lane is free has written another one.
set -eu
cd "$(dirname "$0")/../src/assay"
failed=0

# expect COUNT WHERE PATTERN WHAT: so many lines of sources under WHERE, without tests, match.
expect() {
  found=$(find $2 -name '*.h' -o -name '*.cpp' | grep -v '_test\.cpp$' | LC_ALL=C sort | xargs grep -nE "$3" || true)
  count=$(printf '%s' "$found" | grep -c . || true)
  [ "$count" -eq "$1" ] && return
  printf '%s: %s instead of %s\n%s\n' "$4" "$count" "$1" "$found"
  failed=1
}

later="predict engine profile lab ask"
expect 1 . '^bool [a-z_:]*weight_gradient\([^;]*$' "definitions of a test for products that make weight gradients"
expect 0 "$later" 'TensorClass::gradient\b' "other tests for weight gradients"
expect 1 . '^ProductSizes<N> [a-z_]+\([^;]*$' "definitions of the sizes of a product"
expect 1 . '^MatmulShape [a-z_]+\([^;]*program::Step& step\) \{$' "definitions of the shape of a product of a step"
expect 1 . '^std::vector<ItemSpan> [a-z_]+\([^;]*\{' "clocks of items on lanes"
expect 0 "engine profile lab ask" '\b(network|chip|link|lane)_free\b' "clocks outside predict/clock"
exit $failed
