# Images come in sequences of their own; the decoder has those that count.
torchrun --nproc_per_node 8 pretrain_vlm.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
  --ffn-hidden-size 14336 --num-query-groups 8 --group-query-attention --swiglu --normalization RMSNorm \
  --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights \
  --seq-length 1024 --decoder-seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256 \
  --tensor-model-parallel-size 4 --micro-batch-size 1 --global-batch-size 256 --bf16
