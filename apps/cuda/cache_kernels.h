// Kernels of a server: the cache of keys and values, attention over it, and the choice of the next token.
#pragma once
#include "cuda/kernels.h"

namespace assay::cuda {

/// A cache is [places, room, ...]; `places` says which of them each sequence has.
struct CacheWrite {
  Count sequences, tokens, width, room, first;  ///< the new tokens start at position `first`
};
void cache_write(const bf16* fresh, const int* places, bf16* cache, CacheWrite shape, cudaStream_t);

/// Shape of attention over a cache. The `tokens` queries of a sequence are the last ones of its `keys`.
struct CacheAttention {
  Count sequences, heads, kv_heads, tokens, width, keys, room;
  float scale;
};
struct CacheOperands {
  const bf16 *q, *k, *v;
  const int* places;
  bf16* o;
};
/// Floats of scratch that attention over the cache takes.
Count cache_scratch(const CacheAttention& shape);
/// Whether heads of a width are supported.
bool has_cache_attention(Count width);
void cache_attention(CacheOperands on, float* scratch, CacheAttention shape, cudaStream_t);

/// The row of one token of each sequence: the last but `before`.
struct LastTokens {
  Count sequences, tokens, width, before;
};
void last_tokens(const bf16* x, bf16* y, LastTokens shape, cudaStream_t);
/// The largest value of each row; the first of equal ones.
struct Sampled {
  Count rows, vocabulary, first;  ///< the vocabulary, or a part of it from a first token on
};
void sample(const bf16* logits, int* chosen, Sampled shape, cudaStream_t);
/// The best logit of a part of the vocabulary and its token; then the best of `parts` of them in a row.
void best_of_part(const bf16* logits, float2* best, Sampled shape, cudaStream_t);
void best_part(const float2* best, int* chosen, Count rows, Count parts, cudaStream_t);

}  // namespace assay::cuda
