#!/usr/bin/env bash
# Asks the requests of tests/golden/requests.txt, compares the answers with tests/golden/NAME.json and prints the hash over all of them.
# --update rewrites the answers: read the difference, and put the new hash into the commit message as `Signature: HASH`.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
assay=${ASSAY:-build/release/assay}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
while IFS= read -r line; do
  case $line in ''|'#'*) continue ;; esac
  eval "\"$assay\" ${line#*: } --format json" > "$new/${line%%: *}.json"
done < tests/golden/requests.txt
if [ "${1:-}" = --update ]; then
  rm -f tests/golden/*.json
  cp "$new"/*.json tests/golden/
fi
diff -ru --exclude=requests.txt tests/golden "$new"
cat "$new"/*.json | sha256sum | cut -c1-12
