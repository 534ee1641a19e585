#!/bin/sh
# install_packages.sh [LIST]: installs the packages of LIST (packages.txt) that this Debian machine lacks; silent when
# there are none.
set -eu
cd "$(dirname "$0")/.."
packages=$(sed 's/#.*//' "${1:-packages.txt}")

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "this is not Debian, so nothing is installed; Assay needs what these packages hold:" $packages >&2
  exit 0
fi

missing=
for package in $packages; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=
  # a program that came another way, such as npm with a newer node, need not come from Debian, too
  [ "$status" = installed ] || command -v "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1; then
  as_root=sudo
else
  echo "packages are missing:$missing" >&2
  echo "installing them needs root or sudo; as root, run: apt-get update && apt-get install$missing" >&2
  exit 1
fi

# One line, unless something fails: then everything that apt said.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
printf 'installing:%s ... ' "$missing"
if $as_root apt-get update >"$log" 2>&1 &&
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >>"$log" 2>&1; then
  echo done
else
  echo failed
  cat "$log" >&2
  exit 1
fi
