#!/bin/sh
# Fails and shows what clang-format 14 would change in the sources; --fix changes it.
set -eu
cd "$(dirname "$0")/.."
if [ "${1-}" = --fix ]; then mode=-i; else mode='--dry-run -Werror'; fi

# A tree without git (an unpacked release) has its sources in these folders.
sources() {
  git -c safe.directory='*' ls-files -z -co --exclude-standard '*.h' '*.cpp' 2>/dev/null ||
    find src apps bench tests cmake python -name '*.h' -print0 -o -name '*.cpp' -print0 2>/dev/null
}
exists='for file do [ ! -f "$file" ] || printf "%s\0" "$file"; done'  # git still lists what was just deleted
sources | xargs -0 -r sh -c "$exists" sh | xargs -0 -r clang-format $mode
