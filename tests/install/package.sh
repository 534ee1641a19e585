#!/usr/bin/env bash
# package.sh BUILD: makes the Debian package of BUILD and looks at what it holds; its program runs from where it was unpacked.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "package.sh: $*" >&2; exit 1; }

cpack --config "$1/CPackConfig.cmake" -B "$folder" > "$folder/log" || { cat "$folder/log"; fail "cpack fails"; }
package=$(echo "$folder"/assay_*.deb)
version=$(sed -n 's/.*version = "\(.*\)".*/\1/p' src/assay/base/version.h)
[ "$(dpkg-deb -f "$package" Package Version Architecture | cut -d' ' -f2 | xargs)" = "assay $version $(dpkg --print-architecture)" ] ||
  fail "$(dpkg-deb -f "$package")"
for needed in $(dpkg-deb -f "$package" Depends | tr ',' '\n' | awk '{ print $1 }'); do
  case $needed in libc6 | libgcc-s1 | libsqlite3-0 | libstdc++6 | zlib1g) ;; *) fail "depends on $needed" ;; esac
done
dpkg-deb -x "$package" "$folder/root"
for file in bin/assay include/assay/assay.h lib/libassay.a lib/libassay.so share/man/man1/assay-train.1 share/doc/assay/copyright; do
  [ -e "$folder/root/usr/$file" ] || fail "no $file"
done
[ -z "$(find "$folder/root" -name '*measure*' ! -name assay-measure.1)" ] || fail "programs that measure need MPI"
# Whoever sees what is inside the package owns nothing of it, and nobody else may write.
dpkg-deb -c "$package" | awk '$2 != "root/root" || substr($1, 9, 1) == "w" && $1 !~ /^l/ { print; bad = 1 } END { exit bad }'
# The module, for Debian's own interpreter: it needs nothing but that, and answers as the program does.
modules=$folder/root/usr/lib/python3/dist-packages
if [ -d "$1/python/assay" ]; then
  dpkg-deb -f "$package" Recommends | grep -q 'python3 (>= 3' || fail "which Python the module is for is not said"
  (cd / && env -i PYTHONPATH="$modules" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -S -c '
import sys, assay
assert assay.__file__.startswith(sys.argv[1]), assay.__file__
sys.stdout.buffer.write(assay.roofline("bf16[8,128] @ bf16[128,128]", on="tpu-v5e").json)' "$modules") > "$folder/by_module"
  env -i "$folder/root/usr/bin/assay" roofline 'bf16[8,128] @ bf16[128,128]' --on tpu-v5e --format json | cmp - "$folder/by_module" ||
    fail "the module answers otherwise"
fi
env -i "$folder/root/usr/bin/assay" train llama-3-8b --on h100-sxm:8 --batch 64seq --seq 4096 | grep -q 'per step' || fail "it does not run"
