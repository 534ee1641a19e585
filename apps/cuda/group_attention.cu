// Attention over a cache for groups of many heads, whose scores are products of small matrices: by tensor cores, with
// the 8 heads of a block as rows, of which there are 16. A warp takes 16 keys at a time.
#include <cuda_pipeline.h>
#include <math_constants.h>

#include "cuda/cache_parts.cuh"

namespace assay::cuda {
namespace {

constexpr int group_queries = 8, tile = 16;

/// Loads four matrices of 8 x 8 elements for a warp; each lane has the address of a row.
__device__ void load_matrices(unsigned (&to)[4], const Pack* row) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}
__device__ void load_transposed(unsigned (&to)[4], const Pack* row) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}

/// c += a x b of 16 x 16 and 16 x 8 elements; only the first 8 rows of a and c are used.
__device__ void multiply(float (&c)[4], unsigned a_low, unsigned a_high, unsigned b_low, unsigned b_high) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %5}, {%7, %8}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a_low), "r"(0U), "r"(a_high), "r"(b_low), "r"(b_high));
}

__device__ unsigned packed(float low, float high) {
  const __nv_bfloat162 pair{half_of(low), half_of(high)};
  return *reinterpret_cast<const unsigned*>(&pair);
}

/// A tile of keys or values, rows of `chunks` packs: a pack lies where eight rows do not meet in a bank.
template <int chunks>
__device__ int place_of(int row, int chunk) {
  return row * chunks + (chunk ^ (row & 7));
}

/// What a lane has of the results of its row, the head lane / 4: two elements in every eight.
template <int width>
struct RowState {
  float out[width / lanes][4] = {};
  float best = nothing, sum = 0.0F;
};

/// Adds 16 keys and values, of which the first `valid` are seen.
template <int width>
__device__ void add_tile(RowState<width>& state, const unsigned (&query)[width / 16][2], const Pack* keys,
                         const Pack* values, Count valid, float scale) {
  constexpr int chunks = width / lanes;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float scores[2][4] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int chunk = 0; chunk < chunks; chunk += 4) {
      unsigned b[4];
      load_matrices(b, keys + place_of<chunks>(half * 8 + lane % 8, chunk + lane / 8));
      multiply(scores[half], query[chunk / 2][0], query[chunk / 2][1], b[0], b[1]);
      multiply(scores[half], query[chunk / 2 + 1][0], query[chunk / 2 + 1][1], b[2], b[3]);
    }
  float largest = state.best;
#pragma unroll
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 2; ++i) {
      const bool is_seen = half * 8 + lane % 4 * 2 + i < valid;
      scores[half][i] = is_seen ? scores[half][i] * scale : -CUDART_INF_F;
      largest = fmaxf(largest, scores[half][i]);
    }
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 2));
  if (__any_sync(0xffffffffU, largest > state.best)) {
    const float kept = exp2f(state.best - largest);
    state.best = largest;
    state.sum *= kept;
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      state.out[chunk][0] *= kept;
      state.out[chunk][1] *= kept;
    }
  }
  unsigned weights[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float low = exp2f(scores[half][0] - largest), high = exp2f(scores[half][1] - largest);
    state.sum += low + high;
    weights[half] = packed(low, high);
  }
#pragma unroll
  for (int chunk = 0; chunk < chunks; chunk += 2) {
    unsigned b[4];
    load_transposed(b, values + place_of<chunks>(lane % 8 + (lane / 8 & 1) * 8, chunk + lane / 16));
    multiply(state.out[chunk], weights[0], weights[1], b[0], b[1]);
    multiply(state.out[chunk + 1], weights[0], weights[1], b[2], b[3]);
  }
}

template <int width>
constexpr int group_bytes = cache_warps* stages * 2 * tile* width* static_cast<int>(sizeof(bf16));

template <int width>
__global__ __launch_bounds__(cache_threads,
                             resident(group_queries)) void group_attention_kernel(CacheOperands on, float* scratch,
                                                                                  CacheAttention s, PartLayout layout) {
  constexpr int chunks = width / lanes, packs = tile * chunks;
  static_assert(sizeof(Joined<group_queries, width>) <= group_bytes<width>);
  extern __shared__ Pack tiles[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const BlockWork work = block_work<group_queries>(on, s, layout);
  const Count stride = s.kv_heads * width;
  constexpr Count ahead = cache_warps * tile;

  Pack* slots = tiles + warp * stages * 2 * packs;
  const auto fetch = [&](int stage, Count base) {
    if (base < work.end) {
#pragma unroll
      for (int i = lane; i < packs; i += 32) {
        const int row = i / chunks, chunk = i % chunks;
        const Count from = work.start + min(base + row, work.end - 1) * stride + chunk * lanes;
        Pack* to = slots + stage * 2 * packs + place_of<chunks>(row, chunk);
        __pipeline_memcpy_async(to, on.k + from, sizeof(Pack));
        __pipeline_memcpy_async(to + packs, on.v + from, sizeof(Pack));
      }
    }
    __pipeline_commit();
  };

  unsigned query[width / 16][2];
  const Count head = min(work.heads.first + lane / 4, work.heads.end - 1);
  const bf16* own = on.q + (work.row * s.heads + head) * width + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < width / 16; ++i)
    for (int half = 0; half < 2; ++half) query[i][half] = *reinterpret_cast<const unsigned*>(own + i * 16 + half * 8);

  RowState<width> state;
  const Count begin = work.first + warp * tile;
#pragma unroll
  for (int stage = 0; stage + 1 < stages; ++stage) fetch(stage, begin + stage * ahead);
  int stage = 0;
  for (Count base = begin; base < work.end; base += ahead) {
    __pipeline_wait_prior(stages - 2);
    __syncwarp();
    fetch((stage + stages - 1) % stages, base + (stages - 1) * ahead);
    const Pack* keys = slots + stage * 2 * packs;
    stage = (stage + 1) % stages;
    add_tile<width>(state, query, keys, keys + packs, work.end - base, s.scale * CUDART_L2E_F);
  }
  float sum = state.sum;
  sum += __shfl_xor_sync(0xffffffffU, sum, 1);
  sum += __shfl_xor_sync(0xffffffffU, sum, 2);
  __pipeline_wait_prior(0);
  __syncthreads();  // all have read their tiles
  auto& joined = *reinterpret_cast<Joined<group_queries, width>*>(tiles);
  joined.best[warp][lane / 4] = state.best;
  joined.sum[warp][lane / 4] = sum;
#pragma unroll
  for (int chunk = 0; chunk < chunks; ++chunk)
    for (int i = 0; i < 2; ++i) joined.out[warp][lane / 4][chunk * lanes + lane % 4 * 2 + i] = state.out[chunk][i];
  __syncthreads();
  store_part(joined, work.heads, on.o, scratch, s, layout);
}

template <int width>
void launch(const CacheOperands& on, float* scratch, const CacheAttention& s, cudaStream_t stream) {
  const PartLayout layout = parts_of(s);
  const dim3 grid(static_cast<unsigned>(s.sequences * s.tokens), static_cast<unsigned>(s.kv_heads * query_blocks_of(s)),
                  static_cast<unsigned>(layout.parts));
  const auto kernel = group_attention_kernel<width>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, group_bytes<width>);
  kernel<<<grid, cache_threads, group_bytes<width>, stream>>>(on, scratch, s, layout);
  join_parts(scratch, on.o, s, layout, stream);
}

}  // namespace

void group_attention(const CacheOperands& on, float* scratch, const CacheAttention& s, cudaStream_t stream) {
  (s.width == 64 ? launch<64> : launch<128>)(on, scratch, s, stream);
}

}  // namespace assay::cuda
