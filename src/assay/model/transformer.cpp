#include "assay/model/transformer.h"

#include <algorithm>

namespace assay {

std::int64_t LayerStack::count(std::size_t kind) const {
  return std::count(order.begin(), order.end(), static_cast<std::uint16_t>(kind));
}

void LayerStack::add(const Layer& layer) {
  const auto found = std::find(kinds.begin(), kinds.end(), layer);
  order.push_back(static_cast<std::uint16_t>(found - kinds.begin()));
  if (found == kinds.end()) kinds.push_back(layer);
}

std::int64_t key_lender(const LayerStack& stack, std::int64_t layer) {
  const auto attention = [&](std::int64_t i) -> const std::optional<Attention>& {
    return stack.kinds[stack.order[static_cast<std::size_t>(i)]].attention;
  };
  const Attention& a = *attention(layer);
  for (std::int64_t i = layer; i-- > 0;)
    if (const auto& b = attention(i); b && b->lends_kv && b->kv_heads == a.kv_heads && b->head_dim == a.head_dim &&
                                      b->value_dim == a.value_dim && b->window == a.window)
      return i;
  return -1;
}

}  // namespace assay
