#!/bin/sh
# run.sh COMPILER FILE: passes if FILE does not compile, but does with -DASSAY_CONTROL, which replaces the one wrong line
# by a right one and so proves that nothing else is amiss.
set -u
compiler=$1 file=$2
source_dir=$(dirname "$0")/../../src

compile() { "$compiler" -std=c++20 -fsyntax-only -I "$source_dir" "$@" "$file"; }

if ! compile -DASSAY_CONTROL; then
  echo "$file: the control does not compile" >&2
  exit 1
fi
if compile 2>/dev/null; then
  echo "$file: compiles, but must not" >&2
  exit 1
fi
