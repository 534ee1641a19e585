#include "cuda/kernels.h"
#include "cuda/pack.cuh"

namespace assay::cuda {
namespace {

inline __device__ float wide(float value) { return value; }
inline __device__ float wide(bf16 value) { return number(value); }
inline __device__ void set_number(float& to, float value) { to = value; }
inline __device__ void set_number(bf16& to, float value) { to = half_of(value); }

/// Each part weighs by its share of the sum of exponentials.
template <class From, class To>
__global__ void join_kernel(const From* a, const float* sums_a, const bf16* b, const float* sums_b, To* both,
                            float* sums, JoinShape s) {
  const Count i = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  if (i >= s.batch * s.tokens * s.heads * s.width) return;
  const Count head = i / s.width % s.heads, token = i / s.width / s.heads % s.tokens;
  const Count row = (i / s.width / s.heads / s.tokens * s.heads + head) * s.tokens + token;
  const float x = sums_a[row], y = sums_b[row], most = fmaxf(x, y);
  const float share_x = __expf(x - most), share_y = __expf(y - most), all = share_x + share_y;
  set_number(both[i], (wide(a[i]) * share_x + wide(b[i]) * share_y) / all);
  if (i % s.width == 0) sums[row] = most + __logf(all);
}

template <class From, class To>
void run_join(const JoinedPart& a, const JoinedPart& b, const JoinedPart& both, JoinShape shape, cudaStream_t stream) {
  const Count work = shape.batch * shape.tokens * shape.heads * shape.width;
  join_kernel<<<blocks_for(work), threads, 0, stream>>>(static_cast<const From*>(a.o), a.statistics,
                                                        static_cast<const bf16*>(b.o), b.statistics,
                                                        static_cast<To*>(both.o), both.statistics, shape);
}

}  // namespace

void join(const JoinedPart& a, const JoinedPart& b, const JoinedPart& both, JoinShape shape, cudaStream_t stream) {
  if (a.is_wide)
    (both.is_wide ? run_join<float, float> : run_join<float, bf16>)(a, b, both, shape, stream);
  else
    (both.is_wide ? run_join<bf16, float> : run_join<bf16, bf16>)(a, b, both, shape, stream);
}

}  // namespace assay::cuda
