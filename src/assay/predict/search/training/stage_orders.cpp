#include "assay/predict/search/training/stage_orders.h"

#include <algorithm>

namespace assay::search {

std::uint64_t possible_orders(const std::vector<StageOrder>& orders, std::int64_t stages, std::int64_t microbatches) {
  std::uint64_t bits = 0;
  for (std::size_t o = 0; o < orders.size(); ++o)
    if (stages == 1 || clock::is_possible({orders[o].schedule, stages, microbatches, orders[o].interleave}))
      bits |= std::uint64_t{1} << o;
  return bits;
}

const StageLayers& LayersOfOrders::of(const lower::Parallelism& p) {
  const auto [known, is_new] = known_.try_emplace(p.pipeline);
  StageLayers& layers = known->second;
  if (!is_new) return layers;
  for (const StageOrder& order : space_.orders(p)) {
    clock::StageSplit split = training::stage_split(model_, p.pipeline, order.schedule, order.interleave);
    OrderLayers& cut = layers.each.emplace_back();
    cut.runs = training::stage_runs(model_, p.pipeline, order.schedule, order.interleave);
    for (const clock::StageSplit::Part& part : split.parts) {
      auto& before = cut.before.emplace_back();
      for (std::int16_t stage = 0; stage < part.to; ++stage) {
        const auto run = static_cast<std::size_t>(cut.runs.part_of[static_cast<std::size_t>(stage)]);
        for (std::size_t k = 0; k < before.size(); ++k)
          before[k] = static_cast<std::int16_t>(before[k] + cut.runs.parts[run].layers[k]);
      }
    }
    auto alike = std::find_if(layers.alike.begin(), layers.alike.end(),
                              [&](const AlikeOrders& one) { return one.split == split; });
    if (alike == layers.alike.end()) alike = layers.alike.insert(alike, {std::move(split), 0});
    alike->orders |= std::uint64_t{1} << (layers.each.size() - 1);
  }
  return layers;
}

}  // namespace assay::search
