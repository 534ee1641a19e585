#!/usr/bin/env bash
# sweep.sh [--path DIR]: sweeps as people run them. One that is killed goes on where it stopped; several processes of one
# launch share the work; rows are the same in each case, none is lost and none is there twice.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
path=$top/build/release
[[ ${1-} != --path ]] || path=$(cd "$2" && pwd)
assay=$path/assay
for name in $(compgen -e ASSAY_) $(compgen -e XDG_) $(compgen -e OMPI_) $(compgen -e SLURM_) $(compgen -e PMIX_); do unset "$name"; done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch LC_ALL=C.UTF-8
cd "$scratch"
fail() { echo "sweep.sh: $*" >&2; exit 1; }

{
  echo 'verb = "train"'
  echo '[grid]'
  echo 'model = ["llama-3-8b", "mixtral-8x7b", "gpt-3-175b"]'
  echo 'on = ["h100-sxm:64", "h100-sxm:128", "h100-sxm:256", "tpu-v5p:4x4x4"]'
  echo 'batch = ["256seq", "512seq", "1024seq", "2048seq", "1000seq", "3seq"]'
  echo '[summary]'
  echo 'best = "lowest step_time.estimate"'
  echo 'for_each = ["model", "batch"]'
} > grid.toml
requests=72

"$assay" sweep grid.toml --results whole --format json > whole.json
[[ $(wc -l < whole/rows.jsonl) == "$requests" ]] || fail "rows are missing"

# Killed again and again, each time after some rows.
kills=0
for more in 5 20 45; do
  "$assay" sweep grid.toml --results killed --threads 1 > out.txt 2>&1 &
  process=$!
  for _ in $(seq 600); do
    rows=$({ cat killed/*.jsonl 2> /dev/null || true; } | wc -l)
    ((rows < more)) || break
    kill -0 "$process" 2> /dev/null || break
    sleep 0.02
  done
  kill -KILL "$process" 2> /dev/null && kills=$((kills + 1))
  wait "$process" 2> /dev/null || true
done
((kills > 0)) || fail "the sweep ended before it could be killed"
"$assay" sweep grid.toml --results killed > out.txt
grep -q "were there already" out.txt || fail "nothing was kept: $(cat out.txt)"
cmp whole/rows.jsonl killed/rows.jsonl || fail "a killed sweep has other rows"
cmp whole/rows.csv killed/rows.csv

# Three processes of one launch, one of which takes nothing away from the others.
for rank in 2 1 0; do
  OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=3 PMIX_NAMESPACE=launch.1 \
    "$assay" sweep grid.toml --results ranks --threads 1 > "rank$rank.txt" &
done
wait
cmp whole/rows.jsonl ranks/rows.jsonl || fail "ranks have other rows"
asked=$(cat rank1.txt rank2.txt | grep -o '[0-9]* requests answered' | awk '{ n += $1 } END { print n }')
((asked > 0)) || fail "other ranks did nothing"
[[ -z $(ls ranks | grep -E 'claims|rank') ]] || fail "files of ranks are left"

# Each row is what the command line answers.
python3 - "$assay" whole/rows.jsonl <<'PY'
import json, subprocess, sys
rows = [json.loads(line) for line in open(sys.argv[2])]
for row in rows[::17]:
    answer = json.loads(subprocess.run([sys.argv[1], "json"], input=json.dumps(row["request"]), capture_output=True, text=True).stdout)
    if "error" in answer:
        assert row["error"].endswith(answer["error"]["what"]), row
        continue
    assert answer["headline"] == row["headline"] and answer["outcome"] == row["outcome"], row
    for path, value in row["results"].items():
        found = answer["results"]
        for key in path.split("."):
            found = found[key]
        if isinstance(value, dict):
            found = {key: found[key] for key in ("value", "unit")}
        assert found == value, (path, found, value)
PY
echo "72 requests: whole, after $kills kills and by three ranks, all the same rows"
