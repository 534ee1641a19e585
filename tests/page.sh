#!/bin/sh
# page.sh --path DIR: the page is what its sources, its schema and its lock file give, and it works in a browser.
# DIR holds `assay`; pictures of every view are left in DIR/page_shots.
set -eu
[ "$1" = --path ]
build=$2
cd "$(dirname "$0")/../page"
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent
ASSAY=$build/assay node tools/types.mjs --check
node_modules/.bin/tsc --noEmit
node_modules/.bin/prettier --check --log-level warn .
node tools/unit.mjs
node tools/bundle.mjs --check
node tests/browser.mjs --path "$build"
