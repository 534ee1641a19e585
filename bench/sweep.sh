#!/usr/bin/env bash
# sweep.sh [--path DIR] [--requests N]: how many plans of a 70B model a second are found by one thread, by one on each
# core, and by one process on each core that share the work as under mpirun. Numbers of one run may be compared.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
path=$top/build/release requests=2000
while (($#)); do
  case $1 in
    --path) path=$(cd "$2" && pwd); shift ;;
    --requests) requests=$2; shift ;;
    *) echo "usage: sweep.sh [--path DIR] [--requests N]" >&2; exit 2 ;;
  esac
  shift
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch
cd "$scratch"
cores=$(nproc)
# Other batches are other questions.
batches=$(for i in $(seq "$requests"); do printf '"%dseq",' $((512 + 8 * i)); done)
printf 'verb = "train"\n[arguments]\nmodel = "llama-3-70b"\non = "h100-sxm:1024"\n[grid]\nbatch = [%s]\n' "${batches%,}" > grid.toml
rate() { # rate NAME START END
  awk -v name="$1" -v n="$requests" -v from="$2" -v to="$3" 'BEGIN { printf "%-28s %8.1f requests/s\n", name, n / (to - from) }'
}
now() { date +%s.%N; }
start=$(now); "$path/assay" sweep grid.toml --results one --threads 1 > /dev/null; rate "one thread" "$start" "$(now)"
start=$(now); "$path/assay" sweep grid.toml --results all > /dev/null; rate "$cores threads" "$start" "$(now)"
start=$(now)
for ((rank = cores - 1; rank >= 0; --rank)); do
  OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=$cores PMIX_NAMESPACE=bench \
    "$path/assay" sweep grid.toml --results ranks --threads 1 > /dev/null &
done
wait
rate "$cores processes" "$start" "$(now)"
cmp one/rows.jsonl all/rows.jsonl
cmp one/rows.jsonl ranks/rows.jsonl
