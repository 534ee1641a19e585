#include <math_constants.h>

#include "cuda/expert_kernels.h"
#include "cuda/pack.cuh"

namespace assay::cuda {
namespace {

/// The experts with the largest scores of a row, and their softmax among themselves.
struct Picked {
  int expert[most_picks];
  float gate[most_picks];
};
__device__ Picked picked(const bf16* scores, int experts, int picks) {
  Picked out;
  for (int p = 0; p < picks; ++p) {
    float best = -CUDART_INF_F;
    out.expert[p] = 0;
    for (int e = 0; e < experts; ++e) {
      bool taken = false;
      for (int q = 0; q < p; ++q) taken = taken || out.expert[q] == e;
      const float score = number(scores[e]);
      if (taken || score <= best) continue;
      best = score;
      out.expert[p] = e;
    }
    out.gate[p] = best;
  }
  const float largest = out.gate[0];
  float sum = 0.0F;
  for (int p = 0; p < picks; ++p) sum += out.gate[p] = __expf(out.gate[p] - largest);
  for (int p = 0; p < picks; ++p) out.gate[p] /= sum;
  return out;
}

__global__ void route_kernel(const bf16* scores, bf16* gates, Routing s) {
  const Count row = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  if (row >= s.rows) return;
  const int experts = s.experts, picks = s.picks;
  const Picked best = picked(scores + row * experts, experts, picks);
  for (int e = 0; e < experts; ++e) gates[row * experts + e] = half_of(0.0F);
  for (int p = 0; p < picks; ++p) gates[row * experts + best.expert[p]] = half_of(best.gate[p]);
}

__global__ void route_grad_kernel(const bf16* d_gates, const bf16* scores, bf16* d_scores, Routing s) {
  const Count row = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  if (row >= s.rows) return;
  const int experts = s.experts, picks = s.picks;
  const Picked best = picked(scores + row * experts, experts, picks);
  float common = 0.0F;
  for (int p = 0; p < picks; ++p) common += best.gate[p] * number(d_gates[row * experts + best.expert[p]]);
  for (int e = 0; e < experts; ++e) d_scores[row * experts + e] = half_of(0.0F);
  for (int p = 0; p < picks; ++p) {
    const Count at = row * experts + best.expert[p];
    d_scores[at] = half_of(best.gate[p] * (number(d_gates[at]) - common));
  }
}

/// One block for each expert counts its tokens, as many at once as it has threads; experts elsewhere get none.
__global__ void slots_kernel(const bf16* gates, int* slots, Experts s) {
  __shared__ int warps[32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const Count expert = static_cast<Count>(blockIdx.x) - s.first;
  const bool is_here = expert >= 0 && expert < s.held;
  int before = 0;
  for (Count first = 0; first < s.rows; first += blockDim.x) {
    const Count row = first + threadIdx.x, at = row * s.experts + blockIdx.x;
    const bool goes = is_here && row < s.rows && number(gates[at]) > 0.0F;
    const unsigned all = __ballot_sync(0xffffffffU, goes);
    if (lane == 0) warps[warp] = __popc(all);
    __syncthreads();
    int mine = before + __popc(all & ((1U << lane) - 1U)), chunk = 0;
    for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) {
      if (w < warp) mine += warps[w];
      chunk += warps[w];
    }
    if (row < s.rows) slots[at] = goes && mine < s.slots ? static_cast<int>(expert * s.slots + mine) : -1;
    before += chunk;
    __syncthreads();  // all have read the counts
  }
}

__global__ void dispatch_kernel(const bf16* tokens, const int* slots, bf16* rows, Experts s) {
  const Count token = blockIdx.x;
  for (Count e = 0; e < s.experts; ++e) {
    const Count slot = slots[token * s.experts + e];
    if (slot < 0) continue;
    for (Count i = threadIdx.x * lanes; i < s.width; i += blockDim.x * lanes)
      store(rows + slot * s.width + i, load(tokens + token * s.width + i));
  }
}

/// The sum over a token's experts, each times its gate or, without gates, times one.
__global__ void collect_kernel(const bf16* rows, const bf16* gates, const int* slots, bf16* tokens, Experts s) {
  const Count token = blockIdx.x;
  for (Count i = threadIdx.x * lanes; i < s.width; i += blockDim.x * lanes) {
    float sums[lanes] = {};
    for (Count e = 0; e < s.experts; ++e) {
      const Count slot = slots[token * s.experts + e];
      if (slot < 0) continue;
      const float gate = gates ? number(gates[token * s.experts + e]) : 1.0F;
      const Pack pack = load(rows + slot * s.width + i);
      for (int j = 0; j < lanes; ++j) sums[j] += gate * number(pack.values[j]);
    }
    Pack out;
    for (int j = 0; j < lanes; ++j) out.values[j] = half_of(sums[j]);
    store(tokens + token * s.width + i, out);
  }
}

__global__ void combine_grad_kernel(CombineInputs in, CombineGradients out, Experts s) {
  const Count token = blockIdx.x;
  for (Count e = 0; e < s.experts; ++e) {
    const Count at = token * s.experts + e, slot = in.slots[at];
    float2 sum{0.0F, 0.0F};
    if (slot >= 0) {
      const float gate = number(in.gates[at]);
      for (Count i = threadIdx.x * lanes; i < s.width; i += blockDim.x * lanes) {
        Pack gradient = load(in.d_tokens + token * s.width + i);
        const Pack row = load(in.rows + slot * s.width + i);
        for (int j = 0; j < lanes; ++j) {
          const float d = number(gradient.values[j]);
          sum.x += d * number(row.values[j]);
          gradient.values[j] = half_of(gate * d);
        }
        store(out.d_rows + slot * s.width + i, gradient);
      }
      sum = block_sum(sum);
    }
    if (threadIdx.x == 0) out.d_gates[at] = half_of(sum.x);
  }
}

/// Slots without a token are zeros.
void clear(bf16* rows, Experts s, cudaStream_t stream) {
  cudaMemsetAsync(rows, 0, static_cast<std::size_t>(s.held * s.slots * s.width) * sizeof(bf16), stream);
}

}  // namespace

void route(const bf16* scores, bf16* gates, Routing shape, cudaStream_t stream) {
  route_kernel<<<blocks_for(shape.rows), threads, 0, stream>>>(scores, gates, shape);
}

void route_grad(const bf16* d_gates, const bf16* scores, bf16* d_scores, Routing shape, cudaStream_t stream) {
  route_grad_kernel<<<blocks_for(shape.rows), threads, 0, stream>>>(d_gates, scores, d_scores, shape);
}

void expert_slots(const bf16* gates, int* slots, Experts shape, cudaStream_t stream) {
  constexpr int wide = 1024;
  slots_kernel<<<static_cast<unsigned>(shape.experts), wide, 0, stream>>>(gates, slots, shape);
}

void dispatch(const bf16* tokens, const int* slots, bf16* rows, Experts shape, cudaStream_t stream) {
  clear(rows, shape, stream);
  dispatch_kernel<<<static_cast<unsigned>(shape.rows), threads, 0, stream>>>(tokens, slots, rows, shape);
}

void dispatch_grad(const bf16* d_rows, const int* slots, bf16* d_tokens, Experts shape, cudaStream_t stream) {
  collect_kernel<<<static_cast<unsigned>(shape.rows), threads, 0, stream>>>(d_rows, nullptr, slots, d_tokens, shape);
}

void combine(const bf16* rows, const bf16* gates, const int* slots, bf16* tokens, Experts shape, cudaStream_t stream) {
  collect_kernel<<<static_cast<unsigned>(shape.rows), threads, 0, stream>>>(rows, gates, slots, tokens, shape);
}

void combine_grad(CombineInputs in, CombineGradients out, Experts shape, cudaStream_t stream) {
  clear(out.d_rows, shape, stream);
  combine_grad_kernel<<<static_cast<unsigned>(shape.rows), threads, 0, stream>>>(in, out, shape);
}

}  // namespace assay::cuda
