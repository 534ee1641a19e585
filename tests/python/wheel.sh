#!/usr/bin/env bash
# wheel.sh PROGRAM: builds the wheel, installs it into an empty virtual environment without a network, and runs the tests
# of the module and the notebooks there; then looks whether the source distribution holds all that a build reads.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "wheel.sh: $*" >&2; exit 1; }
unset PYTHONPATH
export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 HOME=$folder
/usr/bin/python3 -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$folder" .
[[ $(echo "$folder"/*.whl) =~ -py3-none-manylinux_2_[0-9]+_[a-z0-9_]+\.whl$ ]] || fail "no index takes $(echo "$folder"/*.whl)"

# What compilers read of our sources for the module, by the build's own account, and what configuring needs.
mkdir "$folder/sdist"
/usr/bin/python3 -c 'import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])' "$folder/sdist" > "$folder/log" 2>&1 ||
  { cat "$folder/log"; fail "no source distribution"; }
tar xzf "$folder"/sdist/assay-*.tar.gz -C "$folder/sdist" --strip-components=1
ninja -C build/release -t deps | awk -v top="$PWD/" '
  /^[^ ]/ { wanted = $0 ~ /^CMakeFiles\/assay_(hot|light|plain|data)\.dir/ }
  wanted && index($1, top) == 1 && index($1, top "build/") != 1 { print substr($1, length(top) + 1) }' | sort -u > "$folder/read"
[ "$(wc -l < "$folder/read")" -gt 500 ] || fail "the build says what it read of $(wc -l < "$folder/read") files only"
while read -r file; do [ -e "$folder/sdist/$file" ] || fail "the source distribution lacks $file"; done < "$folder/read"
(cd "$folder/sdist" && cmake --preset release > "$folder/log" 2>&1 && ninja -C build/release -n assay_python >> "$folder/log" 2>&1) ||
  { tail "$folder/log"; fail "the source distribution does not build"; }

/usr/bin/python3 -m venv "$folder/environment"
python=$folder/environment/bin/python3
"$python" -m pip install --quiet "$folder"/assay-*.whl
cd "$folder"
"$python" "$OLDPWD/tests/python/module.py" "$1"
for notebook in "$OLDPWD"/docs/notebooks/*.ipynb; do "$python" "$OLDPWD/tests/python/notebook.py" "$notebook"; done
