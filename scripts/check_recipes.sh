#!/bin/sh
# Replays two recipes of CONTRIBUTING.md on what is there; prints what takes more files than they say.
#   * an effect on the time of steps: its row and field, where the software sets it, and where it acts: one file for three
#     of five, never more than three;
#   * a mixer of tokens: the C++ files that name one kind of state space.
set -eu
cd "$(dirname "$0")/../src/assay"
failed=0

# at_most COUNT FILES WHAT
at_most() {
  count=$(printf '%s' "$2" | grep -c . || true)
  [ "$count" -le "$1" ] && return
  printf '%s: %s files instead of at most %s\n%s\n' "$3" "$count" "$1" "$2"
  failed=1
}
# Sources without tests that match a pattern.
sources() { grep -rlE "$1" --include='*.h' --include='*.cpp' . | grep -vE '_test\.cpp$|^\./testing/' || true; }

# The numbers of effects, of both verbs: fields of StepEffects and ServingEffects that have a source.
effects=$(sed -nE '/^struct (Step|Serving)Effects/,/^};/s/^  Given<[A-Za-z:]+> ([a-z_ =0-9,]+);.*/\1/p' \
  predict/numbers/training_effects.h predict/numbers/serving_effects.h | tr ',' '\n' | sed -E 's/ *=.*//; s/ //g' | sort -u)
[ "$(printf '%s\n' "$effects" | wc -l)" -ge 30 ] || { echo "the effects were not found"; failed=1; }
all=0 alone=0
for effect in $effects; do  # a name may be that of an effect on both verbs
  acts=$(sources "([eE]ffects(\(\))?\.|Effects::)$effect\b" | grep '^\./predict/' | grep -v '^\./predict/numbers/' || true)
  at_most 3 "$acts" "the effect $effect acts"
  all=$((all + 1))
  [ "$(printf '%s' "$acts" | grep -c . || true)" -gt 1 ] || alone=$((alone + 1))
done
[ $((5 * alone)) -ge $((3 * all)) ] || { echo "only $alone of $all effects act in one file"; failed=1; }

for kind in $(sed -nE 's/^    \{StateSpace::Kind::([a-z0-9_]+),.*/\1/p' model/mixers.h); do
  at_most 12 "$(sources "\b(Kind::|add_|fill_|&LayerWriter::)?$kind\b")" "the mixer $kind"
done
exit $failed
