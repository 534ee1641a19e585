#!/usr/bin/env bash
# check_package.sh [RELEASE]: installs what `make package` made in an empty Debian (bookworm), as root, and uses it there: the
# packages, one after the other, and the wheel in an empty virtual environment. It downloads that Debian (about 100 MB), so
# `make test` leaves it out. RELEASE=trixie has another release of Python: there the wheel alone is tried.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
release=${1:-bookworm}
command -v debootstrap > /dev/null || apt-get install -y --no-install-recommends debootstrap > /dev/null
root=$(mktemp -d)
trap 'rm -rf "$root" "$root.log"' EXIT
mirror=${MIRROR:-$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2> /dev/null | grep -v snapshot | head -1 | tr -d ' ')}
debootstrap --variant=minbase --include=libstdc++6,libsqlite3-0,python3,python3-venv "$release" "$root" ${mirror:+"$mirror"} > "$root.log" 2>&1 ||
  { tail "$root.log"; exit 1; }
cp build/*.deb build/assay-*.whl "$root/tmp"
answer='import assay; print(assay.__file__, assay.train("llama-3-70b", on="h100-sxm:1024", batch="4Mi").step_time)'

# The wheel, for an interpreter that has nothing else.
chroot "$root" python3 -m venv /tmp/environment
chroot "$root" sh -c '/tmp/environment/bin/pip install --quiet --no-index /tmp/assay-*.whl'
chroot "$root" /tmp/environment/bin/python3 -c "$answer"
[ "$release" = bookworm ] || exit 0

chroot "$root" sh -c 'dpkg -i /tmp/assay_*.deb /tmp/libassay0*.deb /tmp/python3-assay_*.deb'
chroot "$root" assay --version
chroot "$root" assay train llama-3-70b --on h100-sxm:1024 --batch 4Mi | head -3
chroot "$root" python3 -c "$answer"
chroot "$root" dpkg -r assay python3-assay libassay0.1
[ ! -e "$root/usr/bin/assay" ] && [ ! -e "$root/usr/lib/python3/dist-packages/assay" ]
