#!/usr/bin/env bash
# Replays the ```console blocks of the README and the documents and compares their output; --update refreshes them.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
documents=()
for document in README.md docs/*.md; do
  [ ! -f "$document" ] || documents+=("$document")
done
exec tests/cli/run.sh "$@" "${documents[@]}"
