#!/usr/bin/env bash
# package.sh BUILD: makes the Debian packages of BUILD and looks at what they hold, lintian too; the program and the module run
# from where they were unpacked.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "package.sh: $*" >&2; exit 1; }

cpack --config "$1/CPackConfig.cmake" -B "$folder" > "$folder/log" 2>&1 || { cat "$folder/log"; fail "cpack fails"; }
version=$(sed -n 's/.*version = "\(.*\)".*/\1/p' src/assay/base/version.h)
library=libassay${version%.*}
# has PACKAGE ARCHITECTURE DEPENDENCIES FILE...: the package is there, needs these packages, and holds these files.
has() {
  local name=$1 package=$folder/$1_${version}_$2.deb needs=$3
  shift 3
  [ "$(dpkg-deb -f "$package" Package Version | cut -d' ' -f2 | xargs)" = "$name $version" ] || fail "$(dpkg-deb -f "$package")"
  [ "$(dpkg-deb -f "$package" Depends | tr ',' '\n' | awk '{ print $1 }' | sort | xargs)" = "$needs" ] ||
    fail "$name depends on $(dpkg-deb -f "$package" Depends)"
  dpkg-deb -x "$package" "$folder/$name"
  for file in share/doc/$name/copyright "$@"; do
    [ -e "$folder/$name/usr/$file" ] || [ -L "$folder/$name/usr/$file" ] || fail "$name has no $file"
  done
  # Whoever sees what is inside the package owns nothing of it, and nobody else may write.
  dpkg-deb -c "$package" | awk '$2 != "root/root" || substr($1, 9, 1) == "w" && $1 !~ /^l/ { print; bad = 1 } END { exit bad }'
  dpkg-deb -x "$package" "$folder/root"
}
machine=$(dpkg --print-architecture)
has assay $machine "libc6 libsqlite3-0 zlib1g" bin/assay share/man/man1/assay-train.1.gz share/man/man1/assay-ui.1.gz
has $library $machine "libc6 libgcc-s1 libsqlite3-0 libstdc++6 zlib1g" lib/libassay.so.${version%.*}
has libassay-dev $machine "$library libsqlite3-dev libyaml-dev zlib1g-dev" include/assay/assay.h include/assay/c.h lib/libassay.a lib/libassay.so
has python3-assay all "$library python3" lib/python3/dist-packages/assay/_verbs.py
[ -z "$(find "$folder/root" -name '*measure*' ! -name 'assay-measure.1.gz')" ] || fail "programs that measure need MPI"
lintian --fail-on error --suppress-tags bogus-mail-host "$folder"/*.deb > "$folder/lintian" 2>&1 || { cat "$folder/lintian"; fail "lintian"; }
# The module, for Debian's own interpreter: it needs nothing but that, and answers as the program does.
modules=$folder/root/usr/lib/python3/dist-packages
if [ -d "$1/python/assay" ]; then
  (cd / && env -i LD_LIBRARY_PATH="$folder/root/usr/lib" PYTHONPATH="$modules" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -S -c '
import sys, assay
assert assay.__file__.startswith(sys.argv[1]), assay.__file__
sys.stdout.buffer.write(assay.roofline("bf16[8,128] @ bf16[128,128]", on="tpu-v5e").json)' "$modules") > "$folder/by_module"
  env -i "$folder/root/usr/bin/assay" roofline 'bf16[8,128] @ bf16[128,128]' --on tpu-v5e --format json | cmp - "$folder/by_module" ||
    fail "the module answers otherwise"
fi
env -i "$folder/root/usr/bin/assay" train llama-3-8b --on h100-sxm:8 --batch 64seq --seq 4096 | grep -q 'per step' || fail "it does not run"
