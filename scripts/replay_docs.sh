#!/usr/bin/env bash
# replay_docs.sh [--update] [--path DIR]: replays the ```console blocks of the README and the documents and compares their
# output, and draws each picture anew: the command stands in the document, in a comment above the picture,
#   <!-- $ assay roofline ... --format svg > docs/pictures/roofline.svg -->
# --update refreshes text and pictures. `assay` is taken from DIR, or else from the release build.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
documents=()
for document in README.md docs/*.md; do
  [ ! -f "$document" ] || documents+=("$document")
done
update=false path=$PWD/build/release before=
for argument in "$@"; do
  [ "$argument" != --update ] || update=true
  [ "$before" != --path ] || path=$(cd "$argument" && pwd)
  before=$argument
done

failed=0
drawn=$(mktemp -d)
trap 'rm -rf "$drawn"' EXIT
while IFS= read -r line; do
  line=${line#*'<!-- $ '} line=${line% -->}
  command=${line% > *} picture=${line##* > }
  if ! (env -u COLUMNS PATH="$path:$PATH" HOME="$drawn" LC_ALL=C.UTF-8 bash -c "$command") > "$drawn/${picture##*/}"; then
    echo "$picture: fails: $command"
    failed=1
  elif $update; then
    cp "$drawn/${picture##*/}" "$picture"
  elif ! cmp -s "$drawn/${picture##*/}" "$picture"; then
    echo "$picture: not what is drawn by: $command"
    failed=1
  fi
done < <(grep -h '^<!-- \$ assay .* > docs/pictures/.*\.svg -->$' "${documents[@]}")
for picture in docs/pictures/*.svg; do
  [ -f "$drawn/${picture##*/}" ] || { echo "$picture: no document says what draws it"; failed=1; }
done

tests/cli/run.sh "$@" "${documents[@]}" || failed=1
exit $failed
