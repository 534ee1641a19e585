// What-if of a model's KV cache: fewer heads, layers that see a window only, layers that share keys and values.
#pragma once
#include <cstdint>
#include <optional>

#include "assay/base/result.h"
#include "assay/model/transformer.h"

namespace assay::model {

/// What is absent stays as the model has it.
struct CacheMix {
  std::optional<std::int64_t> kv_heads = {};
  std::optional<std::int64_t> window = {};  ///< tokens that local layers see
  std::int64_t local = 1, period = 1;       ///< the first `local` of every `period` attention layers are local
  std::int64_t shared_by = 1;  ///< layers in a row, of one window, that use the keys and values of their first
};

/// Changes the decoder. Errors name the options --kv-heads, --window, --local-layers and --share-cache.
Result<void> apply_cache_mix(const CacheMix& mix, Transformer& model);

/// Layers that see a window see all tokens; false if there are none.
bool remove_windows(Transformer& model);

}  // namespace assay::model
