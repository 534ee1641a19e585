#!/usr/bin/env bash
TP=4
if [ "$DP_ATTENTION" = true ]; then
  TP=1
fi
cat > extra.yml << EOF
kv_cache_config:
    dtype: fp8
    free_gpu_memory_fraction: 0.75
moe_config:
    backend: $MOE_BACKEND
EOF
mpirun -n 1 --oversubscribe trtllm-serve meta-llama/Meta-Llama-3-70B --port=$PORT --tp_size=$TP \
    --max_batch_size=64 --config=extra.yml > server.log 2>&1 &
