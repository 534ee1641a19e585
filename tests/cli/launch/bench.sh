#!/usr/bin/env bash
if [ "$DP_ATTENTION" = "true" ]; then ATTENTION=(--enable-dp-attention --dp-size "$TP"); fi
python3 -m sglang.launch_server --model-path $MODEL --tp-size=$TP "${ATTENTION[@]}" --max-running-requests 64 > log 2>&1 &
wait
