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

}  // namespace assay
