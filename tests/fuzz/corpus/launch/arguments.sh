#!/usr/bin/env bash
# Megatron-LM core_v0.15.0 on h100-sxm:64, as predicted by assay 0.1.0:
# 33.14 s per step, 44.9 % MFU with fsdp 64, micro-batch 2, recompute full
set -euo pipefail
arguments=(
--num-layers 80  # of llama-3-70b
--hidden-size 8192  # of llama-3-70b
--ffn-hidden-size 28672  # of llama-3-70b
--num-attention-heads 64  # of llama-3-70b
--kv-channels 128  # of llama-3-70b
--num-query-groups 8  # heads of keys and values of llama-3-70b
--vocab-size 128256  # of llama-3-70b
--max-position-embeddings 8192  # as long as a sequence
--seq-length 8192  # tokens of a sequence
--global-batch-size 256  # sequences of a step over all chips
--micro-batch-size 2  # sequences of a microbatch: 2 microbatches a step on each of the data-parallel groups
--use-megatron-fsdp  # weights, gradients and optimizer states are sharded over 64 chips
--data-parallel-sharding-strategy optim_grads_params  # weights, gradients and optimizer states are sharded over 64 chips
--overlap-grad-reduce  # reductions of gradients run beside the backward pass
--recompute-granularity full  # only the input of each layer is kept, which fits
--recompute-method uniform  # only the input of each layer is kept, which fits
--recompute-num-layers 1  # only the input of each layer is kept, which fits
--bf16  # products and weights in bf16
--swiglu  # feed-forward blocks of llama-3-70b are gated
--untie-embeddings-and-output-weights  # embedding and head of llama-3-70b are two matrices
--group-query-attention  # several heads share keys and values
--normalization RMSNorm  # of llama-3-70b
--position-embedding-type rope  # of llama-3-70b
--disable-bias-linear  # products of llama-3-70b have no bias
--mock-data  # stands in for --data-path
--tokenizer-type NullTokenizer  # stands in for the tokenizer
--train-iters 100  # steps of the run
--lr 3e-4  # does not change the time of a step
)
# --nnodes: 64 chips, 8 in a node
# --nproc-per-node: one process for each chip of a node
: "${MASTER_ADDR:?run this on every node, with the address of the first one in MASTER_ADDR}"
torchrun --nnodes 8 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:29500" pretrain_gpt.py "${arguments[@]}"
