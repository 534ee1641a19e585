cat > zero.json <<EOF
{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true},
 "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
EOF
deepspeed --num_gpus=4 train.py --deepspeed_config zero.json --model_name_or_path meta-llama/Llama-3.1-8B --seq_length 4096 --gradient_checkpointing
