#!/usr/bin/env bash
# check_package.sh: installs the package of `make package` in an empty Debian 12, as root, and runs it there. It downloads
# that Debian (about 100 MB), so `make test` leaves it out.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
package=$(ls build/assay_*.deb)
command -v debootstrap > /dev/null || apt-get install -y --no-install-recommends debootstrap > /dev/null
root=$(mktemp -d)
trap 'rm -rf "$root" "$root.log"' EXIT
mirror=${MIRROR:-$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2> /dev/null | head -1 | tr -d ' ')}
debootstrap --variant=minbase --include=libstdc++6,libsqlite3-0,python3 bookworm "$root" "${mirror:-http://deb.debian.org/debian}" > "$root.log" 2>&1 ||
  { tail "$root.log"; exit 1; }
cp "$package" "$root/tmp/assay.deb"
chroot "$root" dpkg -i /tmp/assay.deb
chroot "$root" assay --version
chroot "$root" assay train llama-3-70b --on h100-sxm:1024 --batch 4Mi | head -3
chroot "$root" python3 -c 'import assay; print(assay.train("llama-3-70b", on="h100-sxm:1024", batch="4Mi").step_time.estimate)'
chroot "$root" dpkg -r assay
[ ! -e "$root/usr/bin/assay" ] && [ ! -e "$root/usr/lib/python3/dist-packages/assay" ]
