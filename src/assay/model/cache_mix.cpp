#include "assay/model/cache_mix.h"

#include <fmt/format.h>

#include <map>

namespace assay::model {
namespace {

Result<void> set_heads(std::int64_t kv_heads, const std::string& id, Attention& attention) {
  if (attention.kv_rank > 0)
    return fail("--kv-heads", fmt::format("{} caches a compressed latent, not heads", id), "leave it out");
  if (attention.heads % kv_heads != 0)
    return fail("--kv-heads", fmt::format("{} attention heads cannot share {} KV heads", attention.heads, kv_heads),
                fmt::format("it must divide {}", attention.heads));
  attention.kv_heads = kv_heads;
  return {};
}

/// Windows and shared keys are of plain attention.
Result<void> check_plain(const char* option, const std::string& id, const Attention& attention) {
  if (attention.kv_rank > 0 || attention.compression > 0 || attention.index_heads > 0)
    return fail(option, fmt::format("{} caches compressed keys", id), "leave it out, or take a model without them");
  if (attention.shares_kv || attention.shares_kv_with_later)
    return fail(option, fmt::format("{} already has layers that share keys and values", id), "leave it out");
  return {};
}

}  // namespace

Result<void> apply_cache_mix(const CacheMix& mix, Transformer& model) {
  LayerStack changed;
  std::int64_t number = 0;                      // of attention layers
  std::map<std::int64_t, std::int64_t> places;  // by window: how many layers share the keys that are lent last
  for (const std::uint16_t kind : model.decoder.order) {
    Layer layer = model.decoder.kinds[kind];
    if (layer.attention) {
      Attention& attention = *layer.attention;
      if (mix.kv_heads) ASSAY_CHECK(set_heads(*mix.kv_heads, model.id, attention));
      if (mix.window && number % mix.period < mix.local) {
        ASSAY_CHECK(check_plain("--window", model.id, attention));
        attention.window = *mix.window;
        attention.chunk = 0;
      }
      if (mix.shared_by > 1) {
        ASSAY_CHECK(check_plain("--share-cache", model.id, attention));
        std::int64_t& place = places[attention.window];
        attention.shares_kv = place > 0;
        attention.shares_kv_with_later = place == 0;
        place = (place + 1) % mix.shared_by;
      }
      ++number;
    }
    changed.add(layer);
  }
  model.decoder = std::move(changed);
  return {};
}

bool remove_windows(Transformer& model) {
  LayerStack changed;
  bool found = false;
  for (const std::uint16_t kind : model.decoder.order) {
    Layer layer = model.decoder.kinds[kind];
    if (layer.attention && layer.attention->window > 0) {
      layer.attention->window = 0;
      found = true;
    }
    changed.add(layer);
  }
  model.decoder = std::move(changed);
  return found;
}

}  // namespace assay::model
