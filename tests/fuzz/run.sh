#!/bin/sh
# run.sh PROGRAM TARGET WORK SECONDS: fuzzes one target from its seeds in tests/fuzz/corpus/. New inputs are kept below
# WORK, an input that crashes is written there too and belongs into the seeds once the fault is mended.
set -eu
program=$1 target=$2 work=$3/$2 seconds=$4
seeds=$(dirname "$0")/corpus/$target
mkdir -p "$work/inputs"
[ -d "$seeds" ] || { echo "$target has no seeds: put some into $seeds" >&2; exit 1; }
exec "$program" "$target" -seed=1 -max_total_time="$seconds" -timeout=10 -print_final_stats=1 -verbosity=0 \
  -artifact_prefix="$work/" "$work/inputs" "$seeds"
