// Attention over a cache in parts of the keys: how blocks share the work, and how they join what they found.
#pragma once
#include <algorithm>

#include "cuda/cache_kernels.h"
#include "cuda/pack.cuh"

namespace assay::cuda {

constexpr int cache_threads = 128, cache_warps = cache_threads / 32;
constexpr int stages = 3;          // keys of a warp that are on their way, as often as it takes some
constexpr float nothing = -1e30F;  // below every score
constexpr Count least_part = 256;  // keys
constexpr Count part_step = 64;    // keys that a block takes at once, or a multiple of them

/// Attention of some queries over a part of the keys: the largest score, the sum of powers of two relative to it, and
/// as many values.
struct PartLayout {
  Count parts, keys_of_part;
};
/// Blocks of a kernel that a multiprocessor runs at once.
constexpr int resident(int queries) { return queries > 4 ? 2 : 4; }
/// Whether the heads of a group are rows of small matrices.
inline bool has_group_attention(const CacheAttention& s) { return s.heads / s.kv_heads > 2 && s.width <= 128; }
/// Heads of a group that a block has, and the blocks of a group.
inline Count queries_of(const CacheAttention& s) {
  const Count group = s.heads / s.kv_heads;
  return group > 4 || has_group_attention(s) ? 8 : group > 2 ? 4 : group;
}
inline Count query_blocks_of(const CacheAttention& s) {
  return (s.heads / s.kv_heads + queries_of(s) - 1) / queries_of(s);
}

/// As many parts as run at once: a second round would leave most of the chip idle at its end.
inline PartLayout parts_of(const CacheAttention& s) {
  const Count blocks = s.sequences * s.tokens * s.kv_heads * query_blocks_of(s);
  const Count round = static_cast<Count>(processors) * resident(static_cast<int>(queries_of(s)));
  const Count parts = std::max<Count>(1, std::min(round / blocks, s.keys / least_part));
  const Count each = ((s.keys + parts - 1) / parts + part_step - 1) / part_step * part_step;
  return {(s.keys + each - 1) / each, each};
}

/// Partial results of the warps of a block, each over other keys.
template <int queries, int width>
struct Joined {
  float best[cache_warps][queries], sum[cache_warps][queries], out[cache_warps][queries][width];
};

struct HeadRange {
  Count first, end;
};
/// Joins the warps of a block, and stores the result, or that of its part of the keys.
template <int queries, int width>
__device__ void store_part(const Joined<queries, width>& joined, HeadRange heads, bf16* o, float* scratch,
                           const CacheAttention& s, const PartLayout& layout) {
  for (int i = static_cast<int>(threadIdx.x); i < queries * width; i += cache_threads) {
    const int q = i / width, element = i % width;
    if (heads.first + q >= heads.end) continue;
    float largest = nothing, all = 0.0F, value = 0.0F;
    for (int w = 0; w < cache_warps; ++w) largest = fmaxf(largest, joined.best[w][q]);
    for (int w = 0; w < cache_warps; ++w) {
      const float share = exp2f(joined.best[w][q] - largest);
      all += share * joined.sum[w][q];
      value += share * joined.out[w][q][element];
    }
    const Count head = blockIdx.x * s.heads + heads.first + q;
    if (layout.parts == 1) {
      o[head * width + element] = half_of(value / all);
      continue;
    }
    float* part = scratch + (head * layout.parts + blockIdx.z) * (width + 2);
    part[2 + element] = value;
    if (element == 0) {
      part[0] = largest;
      part[1] = all;
    }
  }
}

/// What a block computes: the heads of a group, over some of the keys that its query sees.
struct BlockWork {
  Count row, kv_head, start;  ///< `start`: where the cache has the sequence's keys of the head
  HeadRange heads;
  Count first, end;  ///< range of keys
};
template <int queries>
inline __device__ BlockWork block_work(const CacheOperands& on, const CacheAttention& s, const PartLayout& layout) {
  const Count group = s.heads / s.kv_heads, query_blocks = (group + queries - 1) / queries;
  const Count row = blockIdx.x, kv_head = blockIdx.y / query_blocks;
  const Count first_head = kv_head * group + blockIdx.y % query_blocks * queries;
  const Count seen = s.keys - s.tokens + row % s.tokens + 1, first = blockIdx.z * layout.keys_of_part;
  return {row,
          kv_head,
          (on.places[row / s.tokens] * s.room * s.kv_heads + kv_head) * s.width,
          {first_head, min(first_head + queries, (kv_head + 1) * group)},
          first,
          min(first + layout.keys_of_part, seen)};
}

/// Joins the parts of all heads, where there are several.
void join_parts(const float* scratch, bf16* o, const CacheAttention& s, const PartLayout& layout, cudaStream_t stream);

void group_attention(const CacheOperands& on, float* scratch, const CacheAttention& s, cudaStream_t stream);

}  // namespace assay::cuda
