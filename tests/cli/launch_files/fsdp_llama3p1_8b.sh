#!/bin/bash
# Sharded weights by options that say the optimizer, too.
STRATEGY=${STRATEGY:-optim_grads_params}
SIZES=(--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention
  --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 --swiglu --normalization RMSNorm
  --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights)
RUN=(--micro-batch-size 1 --global-batch-size 128 --bf16 --overlap-grad-reduce --overlap-param-gather)
RUN+=(--use-distributed-optimizer)
if [ "${SHARDED:-1}" = 1 ]; then
  unset CUDA_DEVICE_MAX_CONNECTIONS
  RUN=("${RUN[@]}" --use-megatron-fsdp --data-parallel-sharding-strategy ${STRATEGY} --ckpt-format fsdp_dtensor)
fi
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py ${SIZES[@]} ${RUN[@]}
