#!/usr/bin/env bash
# everyday.sh [--path DIR] [--seed N] [--count N] [--show]: asks requests drawn at random from the catalogue, as people ask
# them, and checks what every answer must keep to: no bug (exit 70), no crash, at most ten seconds, no nan and no inf,
# and one screen of 25 lines by 100 columns where nothing else is asked for.
# The same seed draws the same requests from the same catalogue. --show only prints them.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
path=$top/build/release seed=1 count=100 show=false slowest=10
while (($#)); do
  case $1 in
    --path) path=$(cd "$2" && pwd) || exit 2; shift ;;
    --seed) seed=$2; shift ;;
    --count) count=$2; shift ;;
    --show) show=true ;;
    *) echo "usage: everyday.sh [--path DIR] [--seed N] [--count N] [--show]" >&2; exit 2 ;;
  esac
  shift
done
assay=$path/assay
for name in $(compgen -e ASSAY_) $(compgen -e XDG_); do unset "$name"; done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch LC_ALL=C.UTF-8
TIMEFORMAT='%R %U %S'

# The numbers of a linear congruential generator: the shell's own differ between versions.
state=$((seed * 2654435761 % 4294967296))
below() { # below N: sets drawn to a number from 0 to N - 1
  state=$(((state * 1664525 + 1013904223) % 4294967296))
  drawn=$((state / 65536 % $1))
}
one_of() { # sets drawn to one of its arguments
  below $#
  local at=$((drawn + 1))
  drawn=${!at}
}
sometimes() { below 4; ((drawn == 0)); }

mapfile -t models < <(cd "$top/catalogue/models" && printf '%s\n' *.toml | sed 's/\.toml$//')
gpus=(a100-sxm-80 a100-sxm-40 h100-sxm h100-pcie h200-sxm b200 b300 gb200-nvl72 mi300x mi355x gaudi3 v100-sxm l40s l4 rtx-4090)
slices=(tpu-v5e:4x4 tpu-v5e:16x16 tpu-v5p:4x4x4 tpu-v5p:8x8x16 tpu-v6e:8x8 tpu-v6e:16x16 tpu-v4:4x4x8 tpu-v7:4x4x8)

cluster() {
  below 4
  if ((drawn == 0)); then
    one_of "${slices[@]}"
  else
    one_of "${gpus[@]}"
    local chip=$drawn
    one_of 1 2 4 8 8 16 32 64 128 512 2048
    drawn=$chip:$drawn
  fi
}

request=()
add() { request+=("$@"); }
option() { # option NAME VALUE...: adds the option with one of the values, one time in four
  local name=$1
  shift
  if sometimes; then
    one_of "$@"
    add "$name" "$drawn"
  fi
}

draw_train() {
  one_of "${models[@]}"
  add train "$drawn"
  cluster
  add --on "$drawn"
  one_of 8seq 64seq 256seq 512seq 1024seq 2048seq 512Ki 1Mi 4Mi
  add --batch "$drawn"
  one_of 1000 2048 4096 4096 8192
  add --seq "$drawn"
  option --tokens 300B 1T 15T
  option --recompute none selective full
  option --compute fp8
  option --zero 1 3
  option --format json json svg md csv
  if sometimes; then add --sensitivity; fi
}
draw_serve() {
  one_of "${models[@]}"
  add serve "$drawn"
  cluster
  add --on "$drawn"
  one_of 128 1024 1024 4096 8000
  add --prompt "$drawn"
  one_of 64 256 512 1024
  add --output "$drawn"
  option --batch 1 16 64 256
  option --weights int8 fp8 int4
  option --kv int8 fp8
  option --compute fp8 int8 bf16
  option --tpot 20ms 50ms
  option --ttft 1s 5s
  option --format json json svg md csv
}
draw_other() {
  below 7
  case $drawn in
    0) one_of "${models[@]}"; add models "$drawn"; option --format json tree ;;
    1) cluster; add clusters "$drawn"; option --format json svg ;;
    2) one_of "${models[@]}"; add scaling "$drawn"; cluster; add --on "$drawn"; option --batch 1Mi 4Mi 16Mi; option --format json svg ;;
    3) one_of all-gather reduce-scatter all-reduce all-to-all; add collective "$drawn"; one_of 1kB 1MB 64MB 1GB; add --bytes "$drawn"; cluster; add --on "$drawn" ;;
    4) one_of 1 16 240 4096; local rows=$drawn; one_of "${gpus[@]}"; add roofline "bf16[$rows,8192] @ bf16[8192,28672]" --on "$drawn"; option --format json svg ;;
    5) one_of llama-3-8b qwen3-8b mistral-7b gemma-2-9b; add solve serve "$drawn"; one_of h100-sxm:8 a100-sxm-80:4 tpu-v5e:4x4; add --on "$drawn" --prompt 1024 --output 256 --batch '?' --until fits ;;
    6) one_of llama-3-8b qwen3-30b-a3b olmo-2-13b; add solve train "$drawn"; one_of h100-sxm:64 tpu-v5p:4x4x4; add --on "$drawn" --seq 4096 --batch '?seq' --until 'mfu>0.4' ;;
  esac
}

# What an answer of `assay REQUEST` must keep to, from its exit code, its seconds and $scratch/out; prints what it does not.
# Whether plans divide and keep their margin is a test beside the search (verbs/train/plans_test.cpp).
faults() {
  local code=$1 seconds=$2 lines=0 line
  ((code == 70)) && echo "is called a bug: $(grep -m1 '^error' "$scratch/out")"
  ((code > 100)) && echo "ends with exit code $code"
  ((seconds > slowest)) && echo "takes $seconds s"
  grep -qiwE -- '-?(nan|inf)' "$scratch/out" && echo "has $(grep -m1 -iwoE -- '-?(nan|inf)' "$scratch/out"): $(grep -m1 -iwE -- '-?(nan|inf)' "$scratch/out" | cut -c1-100)"
  case " ${request[*]} " in *' --format '* | *' --sensitivity '*) return 0 ;; esac
  ((code == 0)) || return 0
  while IFS= read -r line; do
    lines=$((lines + 1))
    ((${#line} > 100)) && echo "has a line of ${#line} columns: ${line:0:60}"
  done <"$scratch/out"
  ((lines > 25)) && echo "has $lines lines"
  return 0
}

failed=0
for ((i = 1; i <= count; ++i)); do
  request=()
  below 10
  if ((drawn < 4)); then draw_train; elif ((drawn < 8)); then draw_serve; else draw_other; fi
  line=$(printf ' %q' "${request[@]}")
  if $show; then
    echo "assay$line"
    continue
  fi
  { time timeout 120 "$assay" "${request[@]}" >"$scratch/out" 2>&1; } 2>"$scratch/time"
  code=$?
  # A busy machine stretches the one, several threads the other.
  seconds=$(awk '{ print int($1 < $2 + $3 ? $1 : $2 + $3) }' "$scratch/time")
  while IFS= read -r fault; do
    echo "assay$line: $fault"
    failed=$((failed + 1))
  done < <(faults $code $seconds)
done
$show || echo "$count requests with seed $seed: $failed faults"
((failed == 0))
