#!/usr/bin/env bash
# ui.sh [SECONDS]: how many small requests a second `assay ui` answers over HTTP, whether any fails, and what memory its
# processes hold two seconds after the start and two before the end. Needs wrk (Debian: wrk).
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
script=$(mktemp --suffix=.lua)
: > "$script.address"
build/release/assay ui --port 0 > "$script.address" &
server=$!
trap 'kill $server; rm -f "$script" "$script.address"' EXIT
until address=$(head -1 "$script.address") && [ -n "$address" ]; do sleep 0.1; done
cat > "$script" <<'LUA'
wrk.method = "POST"
wrk.body = '{"verb": "roofline", "arguments": {"op": "bf16[240,8192] @ bf16[8192,32768]", "on": "tpu-v5e"}}'
LUA
memory() {
  ps -o rss= --pid $server --ppid $server | awk '{ sum += $1 } END { printf "resident memory: %.1f MB\n", sum / 1000 }'
}
seconds=${1:-60}
wrk -t1 -c16 -d"${seconds}s" -s "$script" "${address}api" &  # it counts answers other than 200 as errors
sleep 2
memory
sleep $((seconds - 4))
memory
wait $!
