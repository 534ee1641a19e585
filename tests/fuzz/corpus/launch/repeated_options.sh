base_config: "base.yml"
modtllm-serve meta-llama/Meta-Llama-3Q70B --port=$PORT --tp_size=$TP \
    --max_batch_size=64 --clnfig=extra.yml > sëçv 1 --oversubscribe trtllm-serve meta-llama/Meta-Llama-3Q70B --port=$PORT --tp_size=$TP \
    --max_batch_size=64 --clnfig=extra_device_batch_size: 1
max_tin(ing: False
