#!/usr/bin/env bash
# quick_tests.sh [COMMIT]: runs the release tests of what differs from COMMIT (default HEAD, or the commit before it if
# nothing differs): unit tests of the folders that changed, command lines of the verbs that changed, the signature of all
# numbers, and the checks of the sources.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
base=${1:-HEAD}
changed() { git diff --name-only "$base" --; git ls-files --others --exclude-standard; }
[ -n "$(changed)" ] || base=$base~1

patterns='^layers$|^format$|^golden$'
add() { patterns="$patterns|$1"; }
while IFS= read -r file; do
  case $file in
    src/assay/ask/verbs/*/*) verb=${file#src/assay/ask/verbs/} && verb=${verb%%/*} && add "^unit\\.ask/verbs/$verb/|^cli\\.$verb" ;;
    src/assay/*) folder=$(dirname "${file#src/assay/}") && add "^unit\\.$folder/" ;;
    tests/cli/*.test) add "^cli\\.$(basename "$file" .test)\$" ;;
    catalogue/verbs/* | catalogue/answers/* | catalogue/screens/*) verb=${file##*/} && add "^schema\$|^cli\\.${verb%%[_.]*}" ;;
    catalogue/*) add '^unit\.hardware/|^unit\.model/|^book$' ;;
    docs/* | *.md) add '^docs$|^links$|^python\.docs$' ;;
    python/* | tests/python/*) add '^python\.' ;;
    tests/install/* | cmake/install*) add '^install$|^package$' ;;
  esac
done < <(changed | sort -u)
exec ctest --test-dir build/release --output-on-failure -j "$(nproc)" -LE slow -R "$patterns"
