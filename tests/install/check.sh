#!/usr/bin/env bash
# check.sh BUILD: installs BUILD into an empty folder and uses what is there: the program, its pages, and the library by
# CMake and by pkg-config, shared and static, from C++ and from C.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/prefix
fail() { echo "check.sh: $*" >&2; exit 1; }

cmake --install "$build" --strip --prefix "$prefix" > /dev/null
assay=$prefix/bin/assay
env -i "$assay" --version | grep -qE '^assay [0-9.]+ \((commit [0-9a-f]+\+?, )?catalogue of 20[0-9-]+\)$' || fail "--version: $("$assay" --version)"
for file in "$assay" "$prefix"/lib/libassay.so; do
  needs=$(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }')
  for library in $needs; do
    case $library in libstdc++.so.* | libm.so.* | libgcc_s.so.* | libc.so.* | libsqlite3.so.0 | libz.so.1 | ld-linux-*) ;; *) fail "$file needs $library" ;; esac
  done
  [ -z "$(objdump -t "$file" | grep -v 'no symbols' | grep -w '\.text')" ] || fail "$file is not stripped"
done
version=$(sed -n 's/.*version = "\(.*\)".*/\1/p' src/assay/base/version.h)
objdump -p "$prefix/lib/libassay.so" | grep -q "SONAME *libassay.so.${version%.*}\$" || fail "the soname is not libassay.so.${version%.*}"
others=$(nm -DC --defined-only "$prefix/lib/libassay.so" | cut -d' ' -f3- | grep -vE '^(assay::(Engine|Answer|Reach|About|about|schema|stop)\b|assay_[a-z_]+$)' || true)
[ -z "$others" ] || fail "the shared library shows: $(echo "$others" | head -5)"

# A page for each command, and completions that shells can read.
for word in json mcp schema ui; do
  grep -q '^\.SH DESCRIPTION' "$prefix/share/man/man1/assay-$word.1" || fail "no man page for $word"
done
for verb in $("$assay" schema | grep -oE '^    "[a-z]+\.request"' | grep -oE '[a-z]+\.' | tr -d .); do
  page=$prefix/share/man/man1/assay-$verb.1
  grep -q '^\.SH OPTIONS' "$page" || fail "no man page for $verb"
done
cmp <("$assay" completion bash) "$prefix/share/bash-completion/completions/assay"
cmp <("$assay" completion fish) "$prefix/share/fish/vendor_completions.d/assay.fish"
cmp <("$assay" completion zsh) "$prefix/share/zsh/site-functions/_assay"

# The library answers as the program does.
[ "$(cd "$prefix/include" && find . -type f | sort | xargs)" = "./assay/assay.h ./assay/c.h" ] || fail "more headers than assay.h and c.h"
request='{"verb": "roofline", "arguments": {"op": "bf16[B,8192] @ bf16[8192,8192]", "on": "h100-sxm"}}'
"$assay" roofline 'bf16[B,8192] @ bf16[8192,8192]' --on h100-sxm --format json > "$folder/expected"
cmake -S tests/install -B "$folder/example" -DCMAKE_PREFIX_PATH="$prefix" > "$folder/log" && cmake --build "$folder/example" >> "$folder/log" ||
  { cat "$folder/log"; fail "the example does not build"; }
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
g++ -std=c++17 tests/install/main.cpp -o "$folder/by_pkg_config" $(pkg-config --cflags --libs assay)
gcc -std=c99 -pedantic -Wall -Wextra -Werror tests/install/main.c -o "$folder/in_c" $(pkg-config --cflags --libs assay)
for program in example/shared example/static by_pkg_config in_c; do
  LD_LIBRARY_PATH=$prefix/lib "$folder/$program" "$request" | cmp - "$folder/expected" || fail "$program answers otherwise"
done

# For packagers.
DESTDIR=$folder/root cmake --install "$build" --prefix /usr > /dev/null
[ -x "$folder/root/usr/bin/assay" ] && [ -f "$folder/root/usr/share/zsh/vendor-completions/_assay" ] || fail "DESTDIR is not respected"
