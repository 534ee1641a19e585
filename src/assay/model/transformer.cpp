#include "assay/model/transformer.h"

#include <algorithm>

#include "assay/model/layer_parts.h"

namespace assay::model {

std::int64_t LayerStack::count(std::size_t kind) const {
  return std::count(order.begin(), order.end(), static_cast<std::uint16_t>(kind));
}

void LayerStack::add(const Layer& layer) {
  const auto found = std::find(kinds.begin(), kinds.end(), layer);
  order.push_back(static_cast<std::uint16_t>(found - kinds.begin()));
  if (found == kinds.end()) kinds.push_back(layer);
}

bool has_sandwich_norms(const Layer& layer) {
  const int blocks =
      (layer.attention || layer.state_space ? 1 : 0) + (layer.cross_attention ? 1 : 0) + (layer.feed_forward ? 1 : 0);
  // The token input has its own norm.
  const int norms = layer.norms - (layer.token_input > 0 ? 1 : 0);
  return blocks > 0 && norms == 2 * blocks && !layer.parallel;
}

std::int64_t token_input_width(const LayerStack& stack) {
  return stack.kinds.empty() ? 0 : stack.kinds.front().token_input;
}

std::int64_t key_lender(const LayerStack& stack, std::int64_t layer) {
  const auto kind = [&](std::int64_t i) -> const Layer& {
    return stack.kinds[stack.order[static_cast<std::size_t>(i)]];
  };
  const auto attention = [&](std::int64_t i) -> const std::optional<Attention>& { return kind(i).attention; };
  if (!attention(layer)) {
    while (--layer >= 0)
      if (const auto& s = kind(layer).state_space; s && s->lends_values) return layer;
    return -1;
  }
  const Attention& a = *attention(layer);
  for (std::int64_t i = layer; i-- > 0;)
    if (const auto& b = attention(i); b && b->shares_kv_with_later && b->kv_heads == a.kv_heads &&
                                      b->head_dim == a.head_dim && b->value_dim == a.value_dim && b->window == a.window)
      return i;
  return -1;
}

}  // namespace assay::model
