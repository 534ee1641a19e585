#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gres=gpu:h100:8
# Everything that people write around a command: defaults, lists, conditions, functions, a command in a variable.
NODES=${SLURM_NNODES:-1}
SCRIPT="$(dirname "$0")/pretrain_gpt.py"
TP=${TP:-4}
if [ ! -f "$SCRIPT" ]; then
  echo "pretrain_gpt.py is not at $SCRIPT"
  exit 1
fi
pip install megatron-core
PLANS=("${TP},2" "8,1")
MODEL="\
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 \
  --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
  --max-position-embeddings 131072 --vocab-size 128256 \
  --swiglu --normalization RMSNorm --position-embedding-type rope --rotary-base 500000 \
  --untie-embeddings-and-output-weights --disable-bias-linear \
"
ARGS=(
  --micro-batch-size 1  # of each group
  "--global-batch-size $((NODES * 32))"
  --seq-length 8192 --bf16 --use-distributed-optimizer --num-layers-per-virtual-pipeline-stage 4
)
[[ -n "$WANDB" ]] && ARGS+=(--wandb-project "$WANDB")
if [ $TP -gt 1 ]; then ARGS+=(--sequence-parallel); fi
start() {
  IFS=',' read -r tp pp <<< "$1"
  CMD="torchrun --nnodes $NODES --nproc-per-node 8 $SCRIPT $MODEL ${ARGS[@]}"
  CMD+=" --tensor-model-parallel-size $tp --pipeline-model-parallel-size $pp"
  srun --mpi=pmix bash -c "$CMD"
}
for plan in "${PLANS[@]}"; do
  start "$plan"
done
