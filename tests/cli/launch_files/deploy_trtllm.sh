cat > /tmp/options.yaml <<EOF
enable_attention_dp: true
kv_cache_config: {dtype: fp8, free_gpu_memory_fraction: 0.75}
EOF
mpirun -n 1 trtllm-serve deepseek-ai/DeepSeek-R1 --tp_size 8 --ep_size 8 --max_batch_size 128 --extra_llm_api_options /tmp/options.yaml
