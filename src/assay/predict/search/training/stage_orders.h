// Orders of a pipeline's stages as a search sees them: a bit each, grouped where stages hold the same layers.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "assay/predict/search/training/space.h"

namespace assay::search {

/// Orders under which stages hold the same layers, a bit each.
struct AlikeOrders {
  clock::StageSplit split;
  std::uint64_t orders = 0;
};

/// Layers as one order of stages cuts them.
struct OrderLayers {
  clock::StageSplit runs;  ///< stage_runs()
  /// For each part of the split: layers of the first runs on all stages before the last one of the kind.
  std::vector<std::array<std::int16_t, model::max_layer_kinds>> before;
};

/// All orders of a number of stages.
struct StageLayers {
  std::vector<AlikeOrders> alike;
  std::vector<OrderLayers> each;  ///< one entry for each order
};

/// Orders that exist for this number of microbatches, a bit each.
std::uint64_t possible_orders(const std::vector<StageOrder>& orders, std::int64_t stages, std::int64_t microbatches);

/// The layers that stages hold under all orders of so many stages; each is made once.
class LayersOfOrders {
 public:
  LayersOfOrders(const model::Transformer& model, const TrainingSpace& space) : model_(model), space_(space) {}
  const StageLayers& of(const lower::Parallelism& p);

 private:
  const model::Transformer& model_;
  const TrainingSpace& space_;
  std::map<std::int64_t, StageLayers> known_;  ///< by number of stages
};

}  // namespace assay::search
