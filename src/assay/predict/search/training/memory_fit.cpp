#include "assay/predict/search/training/memory_fit.h"

#include <algorithm>
#include <cmath>

namespace assay::search {

const training::MicrobatchCost& TrainingFit::memory(const training::Strategy& strategy,
                                                    const training::TrainingProfile& profile,
                                                    const training::TrainingProfile* traffic,
                                                    const clock::StageSplit& split) {
  sizes_only_.size = training::role_sizes(strategy.parallelism);
  training::fill_memory({question_, strategy, profile, traffic, sizes_only_}, split, scratch_);
  return scratch_;
}

TrainingFit::Least TrainingFit::least_bytes(const training::Strategy& strategy) {
  const lower::Parallelism& p = strategy.parallelism;
  training::Strategy any;
  any.parallelism.tensor = p.tensor;
  any.parallelism.expert = p.expert;
  any.parallelism.data = p.expert_data();
  any.parallelism.expert_over = p.expert_over;
  if (p.expert_over.context) any.parallelism.context = p.context;
  const training::TrainingProfile& profile = profiles_.sharing_of(any);
  Least least{Bytes(HUGE_VAL), Bytes(HUGE_VAL)};
  for (const AlikeOrders& alike : layers_.of(p).alike) {
    memory(strategy, profile, nullptr, alike.split);
    scratch_.frees_gradients = question_.setup.effects.frees_gradients;  // as with one microbatch
    Bytes most;
    for (training::MicrobatchCost::Part& part : scratch_.parts) {
      most = std::max(most, part.memory.weights + part.memory.master + part.memory.moments);
      part.kept = part.memory.workspace = part.memory.head = Bytes();  // what is computed keeps more
    }
    least = {std::min(least.states, most), std::min(least.all, least_memory(scratch_))};
  }
  return least;
}

bool TrainingFit::fits(const training::MicrobatchCost& steady, const training::Strategy& strategy) const {
  for (const training::MicrobatchCost::Part& part : steady.parts) {
    const training::MemoryParts memory = training::memory_at(steady, part, strategy);
    if (memory.total() > capacity_ || memory.host > question_.host.capacity) return false;
  }
  return true;
}

Bytes TrainingFit::excess(const training::TrainingCost& cost) const {
  return std::max(Bytes(), cost.memory.total() - capacity_) +
         std::max(Bytes(), cost.host_memory - question_.host.capacity);
}

}  // namespace assay::search
