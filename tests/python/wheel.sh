#!/usr/bin/env bash
# wheel.sh PROGRAM: builds the wheel, installs it into an empty virtual environment without a network, and runs the tests
# of the module and the notebooks there.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH
export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 HOME=$folder
/usr/bin/python3 -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$folder" .
/usr/bin/python3 -m venv "$folder/environment"
python=$folder/environment/bin/python3
"$python" -m pip install --quiet "$folder"/assay-*.whl
cd "$folder"
"$python" "$OLDPWD/tests/python/module.py" "$1"
for notebook in "$OLDPWD"/docs/notebooks/*.ipynb; do "$python" "$OLDPWD/tests/python/notebook.py" "$notebook"; done
