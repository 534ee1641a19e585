#!/usr/bin/env bash
# compare.sh BASE: builds the commit BASE beside this tree and prints how much CPU time this tree takes over it: every
# benchmark, and the requests of tests/budget/requests.txt. Both take turns, and the best of three counts, since machines
# are noisy. Below 1 is faster.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -eq 1 ] || { echo "usage: bench/compare.sh BASE" >&2; exit 2; }
base=$(git rev-parse --verify "$1^{commit}")
there=build/compare/$base
[ -d "$there" ] || git worktree add --detach "$there" "$base"
for top in "$there" .; do
  [ -f "$top/build/release/build.ninja" ] || (cd "$top" && cmake --preset release > /dev/null)
  mapfile -t names < <(cd "$top/bench" && printf 'bench_%s\n' *.cpp | sed 's/\.cpp$//')
  cmake --build "$top/build/release" --target assay "${names[@]}"
done
cmake --build build/release --target assay_budget

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo "        ns       base  ratio  benchmark"
for source in bench/*.cpp; do
  name=bench_$(basename "$source" .cpp)
  [ -x "$there/build/release/$name" ] || continue
  for run in 1 2 3; do
    for side in base now; do
      top=$there
      [ $side = now ] && top=.
      (cd "$top" && "build/release/$name" --benchmark_format=csv --benchmark_time_unit=ns 2> /dev/null) > "$scratch/$name.$side.$run"
    done
  done
  # Rows are name, iterations, real time, CPU time.
  awk -F, '
    FNR == 1 { started = 0 }
    /^name,/ { started = 1; next }
    started && $4 != "" { name = $1; gsub(/"/, "", name); side = FILENAME ~ /\.base\./ ? "base" : "now"
      if (!((side, name) in best) || $4 < best[side, name]) best[side, name] = $4
      if (side == "now" && !(name in seen)) { seen[name]; order[++count] = name } }
    END { for (i = 1; i <= count; ++i) { name = order[i]
      if (("base", name) in best)
        printf "%10.4g %10.4g %6.2f  %s\n", best["now", name], best["base", name], best["now", name] / best["base", name], name } }
  ' "$scratch/$name".*
done
build/release/assay_budget build/release/assay --against "$there/build/release/assay"
