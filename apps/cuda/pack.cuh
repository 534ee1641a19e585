// What kernels share: 16 bytes at once, and what a block sums up or joins.
#pragma once
#include "cuda/kernels.h"

namespace assay::cuda {

constexpr int lanes = 8;  // elements of bf16 in 16 bytes
constexpr int threads = 256;
constexpr int processors = 132;  // enough blocks for every multiprocessor of a large chip

struct alignas(16) Pack {
  bf16 values[lanes];
};

inline __device__ Pack load(const bf16* from) { return *reinterpret_cast<const Pack*>(from); }
inline __device__ void store(bf16* to, const Pack& pack) { *reinterpret_cast<Pack*>(to) = pack; }
inline __device__ float number(bf16 value) { return __bfloat162float(value); }
inline __device__ bf16 half_of(float value) { return __float2bfloat16(value); }
inline __device__ float sigmoid(float x) { return 1.0F / (1.0F + __expf(-x)); }

inline unsigned blocks_for(Count work) { return static_cast<unsigned>((work + threads - 1) / threads); }

/// The sum over a block, in all of its threads.
inline __device__ float2 block_sum(float2 value) {
  __shared__ float2 parts[32];
  for (int step = 16; step > 0; step /= 2) {
    value.x += __shfl_xor_sync(0xffffffffU, value.x, step);
    value.y += __shfl_xor_sync(0xffffffffU, value.y, step);
  }
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  __syncthreads();  // the parts of an earlier sum have been read
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  value = lane < warps ? parts[lane] : float2{0.0F, 0.0F};
  for (int step = 16; step > 0; step /= 2) {
    value.x += __shfl_xor_sync(0xffffffffU, value.x, step);
    value.y += __shfl_xor_sync(0xffffffffU, value.y, step);
  }
  return value;
}

/// Joins the pairs of all threads of a block; the result is in its first thread. To be called once by a kernel.
template <class Join>
inline __device__ float2 block_joined(float2 value, Join join) {
  __shared__ float2 parts[32];
  for (int step = 16; step > 0; step /= 2)
    value = join(value, {__shfl_xor_sync(0xffffffffU, value.x, step), __shfl_xor_sync(0xffffffffU, value.y, step)});
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (unsigned w = 1; w < blockDim.x / 32; ++w) value = join(value, parts[w]);
  return value;
}

}  // namespace assay::cuda
