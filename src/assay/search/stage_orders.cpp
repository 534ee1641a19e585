#include "assay/search/stage_orders.h"

#include <algorithm>

namespace assay {

std::uint64_t possible_orders(const std::vector<StageOrder>& orders, std::int64_t stages, std::int64_t microbatches) {
  std::uint64_t bits = 0;
  for (std::size_t o = 0; o < orders.size(); ++o)
    if (stages == 1 || is_possible({orders[o].schedule, stages, microbatches, orders[o].interleave}))
      bits |= std::uint64_t{1} << o;
  return bits;
}

const std::vector<AlikeOrders>& OrdersByLayers::of(const Parallelism& p) {
  const auto [known, is_new] = known_.try_emplace(p.pipeline);
  std::vector<AlikeOrders>& splits = known->second;
  if (!is_new) return splits;
  const std::vector<StageOrder> orders = space_.orders(p);
  for (std::size_t o = 0; o < orders.size(); ++o) {
    StageSplit split = stage_split(model_, p.pipeline, orders[o].schedule, orders[o].interleave);
    auto alike = std::find_if(splits.begin(), splits.end(), [&](const auto& one) { return one.split == split; });
    if (alike == splits.end()) alike = splits.insert(alike, {std::move(split), 0});
    alike->orders |= std::uint64_t{1} << o;
  }
  return splits;
}

}  // namespace assay
