#!/bin/sh
# Trains and serves on one CUDA GPU with `assay run --engine cuda`: losses and tokens against virtual devices in fp64, ranks that
# share the GPU, then real sizes beside their predictions and PyTorch. Usage: engine.sh [ASSAY]   (the program, with libassay-cuda.so beside it)
set -eu
assay=${1:-assay}
here=$(dirname "$0")

model="--layers 2 --hidden 256 --heads 4 --kv-heads 2 --vocabulary 256"
small="$model --seq 128 --batch 4seq --steps 8 --rate 3e-4"
for options in "llama-3-8b" "llama-3-8b --micro-batch 1" "llama-3-8b --recompute full" "llama-3.2-1b" "qwen2.5-7b" "mixtral-8x7b"; do
  "$assay" run train $options $small --engine cuda --check
done
for options in "llama-3-8b" "llama-3-8b --speculate 2" "mixtral-8x7b" "llama-3-8b --prompt-length 1500 --new-tokens 4"; do
  "$assay" run serve $options $model --engine cuda --check
done
for options in "2 --tp 2 --sequence-parallel" "2 --dp 2 --zero 1" "2 --fsdp 2" "4 --fsdp 2 --tp 2" "4 --dp 2 --fsdp 2 --zero 2" "2 --cp 2" \
  "2 --pp 2 --schedule zb-h1" "4 --pp 2 --cp 2"; do
  mpirun --oversubscribe -n ${options%% *} "$assay" run train llama-3-8b $small --engine cuda --check ${options#* }
done

for options in \
  "llama-3-8b --layers 4 --seq 4096 --batch 1seq" \
  "llama-3-8b --layers 4 --seq 4096 --batch 2seq" \
  "llama-3-8b --layers 4 --seq 4096 --batch 4seq --micro-batch 1" \
  "llama-3-8b --layers 4 --seq 8192 --batch 1seq --recompute full" \
  "mistral-7b --layers 4 --seq 4096 --batch 2seq" \
  "llama-2-7b --layers 4 --seq 4096 --batch 1seq" \
  "qwen2.5-7b --layers 4 --seq 4096 --batch 1seq" \
  "llama-3.2-1b --seq 4096 --batch 2seq" \
  "mixtral-8x7b --layers 1 --seq 4096 --batch 1seq"; do
  echo "$options"
  "$assay" run train $options --steps 20 --rate 1e-4 --engine cuda
done

for options in "llama-3-8b --layers 4 64 4096" "llama-3-8b --layers 4 128 2048" "llama-3-8b --layers 4 16 8192" \
  "llama-3-8b --layers 4 32 1024" "llama-3-8b --layers 32 32 2048" "qwen2.5-7b --layers 8 64 2048" \
  "mixtral-8x7b --layers 4 32 512"; do
  echo "$options"
  set -- $options
  "$assay" run serve "$1" "$2" "$3" --requests "$4" --slots "$4" --prompt-length "$5" --new-tokens 24 --engine cuda
done

for sequences in 1 2; do
  python3 "$here/train_step.py" "$sequences" 4096
done
python3 "$here/decode_step.py" 64 4096
