#include <cuda_pipeline.h>
#include <math_constants.h>

#include "cuda/cache_parts.cuh"

namespace assay::cuda {
namespace {

__global__ void cache_write_kernel(const bf16* fresh, const int* places, bf16* cache, CacheWrite s) {
  const Count token = blockIdx.x % s.tokens, sequence = blockIdx.x / s.tokens;
  const bf16* from = fresh + blockIdx.x * s.width;
  bf16* to = cache + (places[sequence] * s.room + s.first + token) * s.width;
  for (Count i = threadIdx.x * lanes; i < s.width; i += blockDim.x * lanes) store(to + i, load(from + i));
}

constexpr int unrolled = 4;  // keys of a lane at once
constexpr int ring_bytes = cache_threads * stages * 2 * unrolled * static_cast<int>(sizeof(Pack));

/// Sums of `count` values over the lanes of a key, of which each lane gets count / key_lanes: those from
/// lane x count / key_lanes on. Halves of the values are exchanged for each other, so that few are sent.
template <int key_lanes, int count>
__device__ void sum_over_lanes(float (&values)[count], int lane) {
  int left = count;
#pragma unroll
  for (int step = key_lanes / 2; step > 0; step /= 2) {
    if (left == 1) {
      values[0] += __shfl_xor_sync(0xffffffffU, values[0], step);
      continue;
    }
    left /= 2;
    const bool upper = (lane & step) != 0;
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      if (i >= left) break;
      const float sent = upper ? values[i] : values[i + left], mine = upper ? values[i + left] : values[i];
      values[i] = mine + __shfl_xor_sync(0xffffffffU, sent, step);
    }
  }
}

/// Joins the lanes of a warp that have other keys.
template <int key_lanes, int queries, int width>
__device__ void join_lanes(Joined<queries, width>& joined, float best, float sum, float (&out)[queries][lanes]) {
  static_assert(sizeof(joined) <= ring_bytes);
  constexpr int query_lanes = key_lanes / queries;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int mine = lane % key_lanes * lanes, which = lane / key_lanes;
  for (int q = 0; q < queries; ++q) {
    const float own = __shfl_sync(0xffffffffU, best, which * key_lanes + q * query_lanes);
    float all = __shfl_sync(0xffffffffU, sum, which * key_lanes + q * query_lanes), largest = own;
    for (int step = 16; step >= key_lanes; step /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, step));
    const float kept = exp2f(own - largest);
    all *= kept;
    for (int step = 16; step >= key_lanes; step /= 2) all += __shfl_xor_sync(0xffffffffU, all, step);
    for (int j = 0; j < lanes; ++j) {
      out[q][j] *= kept;
      for (int step = 16; step >= key_lanes; step /= 2) out[q][j] += __shfl_xor_sync(0xffffffffU, out[q][j], step);
      if (which == 0) joined.out[warp][q][mine + j] = out[q][j];
    }
    if (lane == 0) {
      joined.best[warp][q] = largest;
      joined.sum[warp][q] = all;
    }
  }
}

/// `key_lanes` lanes have a key, 8 elements each; a block has `queries` heads of one group. Every lane fetches what it
/// reads itself, some keys ahead.
template <int key_lanes, int queries>
__global__ __launch_bounds__(cache_threads,
                             resident(queries)) void cache_attention_kernel(CacheOperands on, float* scratch,
                                                                            CacheAttention s, PartLayout layout) {
  constexpr int width = key_lanes * lanes, at_once = 32 / key_lanes, count = unrolled * queries;
  constexpr int mine_of = count > key_lanes ? count / key_lanes : 1;  // scores of a lane
  constexpr int copies = count < key_lanes ? key_lanes / count : 1;   // lanes with the same score
  constexpr int query_lanes = key_lanes / queries;                    // lanes with scores of the same query
  extern __shared__ Pack ring[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int place = lane % key_lanes, mine = place * lanes, which = lane / key_lanes;
  const BlockWork work = block_work<queries>(on, s, layout);
  const Count row = work.row, first = work.first, end = work.end;
  const Count stride = s.kv_heads * width, start = work.start + mine;
  constexpr Count ahead = cache_warps * at_once * unrolled;

  Pack* slots = ring + warp * stages * 2 * unrolled * 32 + lane;
  const auto fetch = [&](int stage, Count base) {
    if (base < end) {
#pragma unroll
      for (int u = 0; u < unrolled; ++u) {
        const Count from = start + min(base + u * at_once + which, end - 1) * stride;
        __pipeline_memcpy_async(slots + (stage * 2 * unrolled + u) * 32, on.k + from, sizeof(Pack));
        __pipeline_memcpy_async(slots + (stage * 2 * unrolled + unrolled + u) * 32, on.v + from, sizeof(Pack));
      }
    }
    __pipeline_commit();
  };

  float query[queries][lanes], out[queries][lanes] = {}, best = nothing, sum = 0.0F;
  for (int q = 0; q < queries; ++q) {
    const Count head = min(work.heads.first + q, work.heads.end - 1);
    const Pack pack = load(on.q + (row * s.heads + head) * width + mine);
    for (int j = 0; j < lanes; ++j) query[q][j] = number(pack.values[j]) * s.scale * CUDART_L2E_F;
  }
  const Count begin = first + warp * at_once * unrolled;
#pragma unroll
  for (int stage = 0; stage + 1 < stages; ++stage) fetch(stage, begin + stage * ahead);
  int stage = 0;
  for (Count base = begin; base < end; base += ahead) {
    __pipeline_wait_prior(stages - 2);
    fetch((stage + stages - 1) % stages, base + (stages - 1) * ahead);
    const Pack* fetched = slots + stage * 2 * unrolled * 32;
    stage = (stage + 1) % stages;
    float scores[count];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      const Pack pack = fetched[u * 32];
      float of_key[lanes];
      for (int j = 0; j < lanes; ++j) of_key[j] = number(pack.values[j]);
#pragma unroll
      for (int q = 0; q < queries; ++q) {
        float score = 0.0F;
        for (int j = 0; j < lanes; ++j) score += query[q][j] * of_key[j];
        scores[q * unrolled + u] = score;
      }
    }
    sum_over_lanes<key_lanes>(scores, place);
    float largest = best;
#pragma unroll
    for (int i = 0; i < mine_of; ++i) {
      const int u = (place / copies * mine_of + i) % unrolled;
      if (base + u * at_once + which >= end) scores[i] = -CUDART_INF_F;
      largest = fmaxf(largest, scores[i]);
    }
#pragma unroll
    for (int step = query_lanes / 2; step > 0; step /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, step));
    if (__any_sync(0xffffffffU, largest > best)) {
      const float kept = exp2f(best - largest);
      best = largest;
      sum *= kept;
#pragma unroll
      for (int q = 0; q < queries; ++q) {
        const float share = __shfl_sync(0xffffffffU, kept, which * key_lanes + q * query_lanes);
        for (int j = 0; j < lanes; ++j) out[q][j] *= share;
      }
    }
#pragma unroll
    for (int i = 0; i < mine_of; ++i) sum += scores[i] = exp2f(scores[i] - best);
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      const Pack pack = fetched[(unrolled + u) * 32];
      float of_value[lanes];
      for (int j = 0; j < lanes; ++j) of_value[j] = number(pack.values[j]);
#pragma unroll
      for (int q = 0; q < queries; ++q) {
        constexpr int per_lane = mine_of;
        const int index = q * unrolled + u;
        const float weight =
            __shfl_sync(0xffffffffU, scores[index % per_lane], which * key_lanes + index / per_lane * copies);
        for (int j = 0; j < lanes; ++j) out[q][j] += weight * of_value[j];
      }
    }
  }
#pragma unroll
  for (int step = query_lanes / 2; step >= copies; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
  __pipeline_wait_prior(0);
  __syncthreads();  // all have read what they fetched
  auto& joined = *reinterpret_cast<Joined<queries, width>*>(ring);
  join_lanes<key_lanes>(joined, best, sum, out);
  __syncthreads();
  store_part(joined, work.heads, on.o, scratch, s, layout);
}

template <int key_lanes, int queries>
void launch(const CacheOperands& on, float* scratch, const CacheAttention& s, cudaStream_t stream) {
  const PartLayout layout = parts_of(s);
  const dim3 grid(static_cast<unsigned>(s.sequences * s.tokens), static_cast<unsigned>(s.kv_heads * query_blocks_of(s)),
                  static_cast<unsigned>(layout.parts));
  const auto kernel = cache_attention_kernel<key_lanes, queries>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ring_bytes);
  kernel<<<grid, cache_threads, ring_bytes, stream>>>(on, scratch, s, layout);
  join_parts(scratch, on.o, s, layout, stream);
}

template <int key_lanes>
void launch_for_group(const CacheOperands& on, float* scratch, const CacheAttention& s, cudaStream_t stream) {
  const Count queries = queries_of(s);
  if constexpr (key_lanes > 16) {
    if (queries > 4) return launch<key_lanes, 8>(on, scratch, s, stream);
    if (queries > 2) return launch<key_lanes, 4>(on, scratch, s, stream);
  }
  (queries > 1 ? launch<key_lanes, 2> : launch<key_lanes, 1>)(on, scratch, s, stream);
}

__global__ void last_tokens_kernel(const bf16* x, bf16* y, LastTokens s) {
  const bf16* from = x + ((blockIdx.x + 1) * s.tokens - 1 - s.before) * s.width;
  for (Count i = threadIdx.x * lanes; i < s.width; i += blockDim.x * lanes)
    store(y + blockIdx.x * s.width + i, load(from + i));
}

/// The larger of two values with their places; the first of equal ones.
__device__ float2 larger(float2 a, float2 b) {
  return b.x > a.x || (b.x == a.x && __float_as_int(b.y) < __float_as_int(a.y)) ? b : a;
}

/// Writes the best token of a row to `chosen` or, with its logit, to `best`.
__global__ void sample_kernel(const bf16* logits, int* chosen, float2* best, Sampled s) {
  const bf16* row = logits + blockIdx.x * s.vocabulary;
  float2 found{-CUDART_INF_F, __int_as_float(0x7fffffff)};
  for (Count i = threadIdx.x * lanes; i < s.vocabulary; i += blockDim.x * lanes) {
    const Pack pack = load(row + i);
    for (int j = 0; j < lanes; ++j)
      found = larger(found, {number(pack.values[j]), __int_as_float(static_cast<int>(i) + j)});
  }
  found = block_joined(found, [](float2 a, float2 b) { return larger(a, b); });
  if (threadIdx.x != 0) return;
  const int token = static_cast<int>(s.first) + __float_as_int(found.y);
  if (best)
    best[blockIdx.x] = {found.x, static_cast<float>(token)};
  else
    chosen[blockIdx.x] = token;
}

__global__ void best_part_kernel(const float2* best, int* chosen, Count rows, Count parts) {
  const Count row = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  if (row >= rows) return;
  float2 found = best[row * parts];
  for (Count i = 1; i < parts; ++i)
    if (best[row * parts + i].x > found.x) found = best[row * parts + i];
  chosen[row] = static_cast<int>(found.y);
}

constexpr int sample_threads = 512;

__global__ void join_parts_kernel(const float* scratch, bf16* o, Count parts, Count width) {
  const float* mine = scratch + blockIdx.x * parts * (width + 2);
  float largest = nothing;
  for (Count p = 0; p < parts; ++p) largest = fmaxf(largest, mine[p * (width + 2)]);
  float all = 0.0F, value = 0.0F;
  for (Count p = 0; p < parts; ++p) {
    const float* part = mine + p * (width + 2);
    const float share = exp2f(part[0] - largest);
    all += share * part[1];
    value += share * part[2 + threadIdx.x];
  }
  o[blockIdx.x * width + threadIdx.x] = half_of(value / all);
}

}  // namespace

void join_parts(const float* scratch, bf16* o, const CacheAttention& s, const PartLayout& layout, cudaStream_t stream) {
  if (layout.parts > 1)
    join_parts_kernel<<<static_cast<unsigned>(s.sequences * s.tokens * s.heads), static_cast<unsigned>(s.width), 0,
                        stream>>>(scratch, o, layout.parts, s.width);
}

void cache_write(const bf16* fresh, const int* places, bf16* cache, CacheWrite shape, cudaStream_t stream) {
  cache_write_kernel<<<static_cast<unsigned>(shape.sequences * shape.tokens), cache_threads, 0, stream>>>(
      fresh, places, cache, shape);
}

bool has_cache_attention(Count width) { return width == 64 || width == 128 || width == 256; }

Count cache_scratch(const CacheAttention& s) {
  return s.sequences * s.tokens * s.heads * parts_of(s).parts * (s.width + 2);
}

void cache_attention(CacheOperands on, float* scratch, CacheAttention shape, cudaStream_t stream) {
  if (has_group_attention(shape))
    group_attention(on, scratch, shape, stream);
  else if (shape.width == 64)
    launch_for_group<8>(on, scratch, shape, stream);
  else if (shape.width == 128)
    launch_for_group<16>(on, scratch, shape, stream);
  else
    launch_for_group<32>(on, scratch, shape, stream);
}

void last_tokens(const bf16* x, bf16* y, LastTokens shape, cudaStream_t stream) {
  last_tokens_kernel<<<static_cast<unsigned>(shape.sequences), cache_threads, 0, stream>>>(x, y, shape);
}

void sample(const bf16* logits, int* chosen, Sampled shape, cudaStream_t stream) {
  sample_kernel<<<static_cast<unsigned>(shape.rows), sample_threads, 0, stream>>>(logits, chosen, nullptr, shape);
}

void best_of_part(const bf16* logits, float2* best, Sampled shape, cudaStream_t stream) {
  sample_kernel<<<static_cast<unsigned>(shape.rows), sample_threads, 0, stream>>>(logits, nullptr, best, shape);
}

void best_part(const float2* best, int* chosen, Count rows, Count parts, cudaStream_t stream) {
  best_part_kernel<<<blocks_for(rows), threads, 0, stream>>>(best, chosen, rows, parts);
}

}  // namespace assay::cuda
