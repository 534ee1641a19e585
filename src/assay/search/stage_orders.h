// Orders of a pipeline's stages as a search sees them: a bit each, and together where stages hold the same layers.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "assay/search/training_space.h"

namespace assay {

/// Orders under which stages hold the same layers, a bit each.
struct AlikeOrders {
  StageSplit split;
  std::uint64_t orders = 0;
};

/// Orders that exist for so many microbatches, a bit each.
std::uint64_t possible_orders(const std::vector<StageOrder>& orders, std::int64_t stages, std::int64_t microbatches);

/// By the layers that stages hold under them: it depends on their number alone, and each is made once.
class OrdersByLayers {
 public:
  OrdersByLayers(const Transformer& model, const TrainingSpace& space) : model_(model), space_(space) {}
  const std::vector<AlikeOrders>& of(const Parallelism& p);

 private:
  const Transformer& model_;
  const TrainingSpace& space_;
  std::map<std::int64_t, std::vector<AlikeOrders>> known_;  ///< by stages
};

}  // namespace assay
