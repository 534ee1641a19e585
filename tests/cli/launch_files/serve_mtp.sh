#!/usr/bin/env bash
# Needs MODEL TP CONC.
if [[ -z "$MODEL" ]]; then exit 1; fi
python3 -m sglang.launch_server --model-path $MODEL --tp $TP --max-running-requests $((2 * CONC)) \
  --speculative-algorithm EAGLE --speculative-num-steps 3 > $LOG 2>&1 &
