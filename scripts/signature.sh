#!/usr/bin/env bash
# signature.sh [--update | --against BINARY]: asks the requests of tests/golden/requests.txt and prints the signature of
# all numbers that Assay answers. It fails if an answer differs from its hash in tests/golden/signature.txt or, for the
# requests that are kept whole, from tests/golden/NAME.json.
#   --update           accepts the answers; put the new signature into the commit message as `Signature: HASH`
#   --against BINARY   shows which answers differ from those of another build, number by number
# The hashes cover numbers (to nine digits, so that all processors agree) and yes or no, not words.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
golden=tests/golden
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

# ask BINARY FOLDER: one answer a request; exit 3 (does not fit) is an answer, too.
ask() {
  local line status
  mkdir -p "$2"
  while IFS= read -r line; do
    case $line in '' | '#'*) continue ;; esac
    status=0
    eval "\"$1\" ${line#*: } --format json" > "$2/${line%%: *}.json" || status=$?
    case $status in 0 | 3) ;; *) echo "signature.sh: exit $status from: assay ${line#*: }" >&2; exit 1 ;; esac
  done < "$golden/requests.txt"
}

# numbers FOLDER: writes NAME.numbers beside every NAME.json: what the answer says, less its words and the search's time.
numbers() {
  perl -0777 -e '
    for my $file (@ARGV) {
      open my $in, "<", $file or die "$file: $!";
      my $text = <$in>;
      $text =~ s/"seconds": \{[^}]*\}//g;
      $text =~ s/"(?:\\.|[^"\\])*"//g;
      (my $output = $file) =~ s/json$/numbers/;
      open my $out, ">", $output or die "$output: $!";
      while ($text =~ /(true|false)|(-?\d[-+.\deE]*)/g) { print $out defined $1 ? "$1\n" : sprintf("%.9g\n", $2) }
    }' "$1"/*.json
}

ask "${ASSAY:-build/release/assay}" "$new/now"
numbers "$new/now"
if [ "${1:-}" = --against ]; then
  ask "$2" "$new/then"
  numbers "$new/then"
  diff -rq "$new/then" "$new/now" --exclude='*.json' | sed 's/^Files .*then.\(.*\)\.numbers and.*/\1/' |
    while read -r name; do
      echo "$name: $(diff "$new/then/$name.numbers" "$new/now/$name.numbers" | grep -c '^[<>]') lines of numbers"
      diff -U3 "$new/then/$name.json" "$new/now/$name.json" | sed -n '3,20p' || true
    done
  exit
fi

(cd "$new/now" && for file in *.numbers; do
  echo "$(sha256sum < "$file" | cut -c1-12) ${file%.numbers}"
done) > "$new/signature.txt"
if [ "${1:-}" = --update ]; then
  for file in "$golden"/*.json; do cp "$new/now/${file##*/}" "$file"; done
  cp "$new/signature.txt" "$golden/signature.txt"
fi
for file in "$golden"/*.json; do diff -u "$file" "$new/now/${file##*/}"; done
diff -u "$golden/signature.txt" "$new/signature.txt"
sha256sum < "$new/signature.txt" | cut -c1-12
