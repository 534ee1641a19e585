#!/usr/bin/env bash
# ablation.sh [DIR]: what happens without each number of steps/serving.toml: errors of held-out published rows, with DIR
# (of assay validate --data) also third-party ones, if the number is neutral and all others are as they were fitted.
# docs/calibration.md has the table.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
assay=${ASSAY:-build/release/assay}
data=(${1:+--data "$1"})
overlay=$(mktemp -d)
trap 'rm -rf "$overlay"' EXIT
cp -r catalogue/. "$overlay"

# neutral TABLE KEY VALUE: an overlay in which the key is VALUE for all families, software or hosts.
neutral() {
  for file in catalogue/steps/serving.toml catalogue/folds/*/steps/serving.toml; do
    perl -pe 'BEGIN { our ($table, $key, $value) = splice(@ARGV, 0, 3) }
              $at = $1 if /^\[([\w.]+)\]/;
              if ($at eq $table && /^\Q$key\E = \{/) { s/= (?!\{)("[^"]*"|[\d.e+-]+)/= $value/g }
              elsif ($at eq $table && /^\Q$key\E = /) { $_ = "$key = $value\n" }' "$1" "$2" "$3" "$file" \
      > "$overlay/${file#catalogue/}"
  done
}
errors() {  # [--catalogue DIR]
  for set in inference-tpot inference-ttft; do
    "$assay" validate "$set" "${data[@]}" "$@" --format csv -q --by group |
      awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "median_ape") back = NF - i; next }
               /^all,/ { all = $(NF - back); next } { sum += $(NF - back); groups++ }
               END { printf " %.1f; %.1f |", 100 * all, 100 * sum / groups }'
  done
  echo
}

echo "| without | time per output token: median; mean of groups, % | first token |"
echo "| --- | --- | --- |"
printf '| (nothing) |'
errors --catalogue catalogue
while read -r table key value; do
  neutral "$table" "$key" "$value"
  printf '| `%s.%s` |' "$table" "$key"
  errors --catalogue "$overlay"
done <<'NUMBERS'
products slowdown 1
products quantise "0 us"
attention slowdown 1
attention decode 1
attention item "0 us"
attention vector 0
attention token "0 us"
attention copies 0
pointwise kernels 1
pointwise traffic 1
collectives one_shot "0 us"
collectives meet "0 us"
step start "0 us"
step launch "0 us"
step host "0 us"
step sequence "0 us"
step first "0 us"
NUMBERS
