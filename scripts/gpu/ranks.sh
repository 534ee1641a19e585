#!/bin/bash
# Runs ranks that share one GPU over NCCL: scripts/gpu/ranks.sh 4 run train ... --engine cuda --check --fsdp 2 --tp 2
# Every rank has a host name of its own, so that NCCL takes the ranks for machines with a GPU each. Times say nothing:
# the ranks take turns on the GPU. Needs root, for the host names, and libnccl.so.2 where the loader finds it.
set -euo pipefail
ranks=$1
shift
assay=${ASSAY:-$(dirname "$0")/../../build/release/assay}
export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}
exec mpirun --allow-run-as-root --oversubscribe -n "$ranks" \
  unshare --uts bash -c 'hostname "rank$OMPI_COMM_WORLD_RANK" && exec "$@"' - "$assay" "$@"
