#!/bin/sh
# Trains on one CUDA GPU with `assay run --engine cuda`: losses against virtual devices in fp64, then real sizes beside their
# predictions and PyTorch. Usage: engine.sh [ASSAY]   (the program, with libassay-cuda.so beside it)
set -eu
assay=${1:-assay}
here=$(dirname "$0")

small="--layers 2 --hidden 256 --heads 4 --kv-heads 2 --seq 128 --batch 4seq --steps 8 --rate 3e-4 --vocabulary 256"
for options in "llama-3-8b" "llama-3-8b --micro-batch 1" "llama-3-8b --recompute full" "llama-3.2-1b" "qwen2.5-7b"; do
  "$assay" run train $options $small --engine cuda --check
done

for options in \
  "llama-3-8b --layers 4 --seq 4096 --batch 1seq" \
  "llama-3-8b --layers 4 --seq 4096 --batch 2seq" \
  "llama-3-8b --layers 4 --seq 4096 --batch 4seq --micro-batch 1" \
  "llama-3-8b --layers 4 --seq 8192 --batch 1seq --recompute full" \
  "mistral-7b --layers 4 --seq 4096 --batch 2seq" \
  "llama-2-7b --layers 4 --seq 4096 --batch 1seq" \
  "qwen2.5-7b --layers 4 --seq 4096 --batch 1seq" \
  "llama-3.2-1b --seq 4096 --batch 2seq"; do
  echo "$options"
  "$assay" run train $options --steps 20 --rate 1e-4 --engine cuda
done

for sequences in 1 2; do
  python3 "$here/train_step.py" "$sequences" 4096
done
