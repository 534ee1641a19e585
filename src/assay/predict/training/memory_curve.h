// Memory of one stage over a training step: what is allocated when, from the events of its pipeline.
#pragma once
#include <vector>

#include "assay/predict/clock/simulation.h"
#include "assay/predict/training/step.h"

namespace assay::training {

struct MemoryMoment {
  Seconds at;
  double held = 0;     ///< microbatches whose activations are held, of a whole stage
  MemoryParts memory;  ///< without the allocator's reserve
};

/// Memory allocated by a stage from the start of each of its events; at the end of the step no activations are left.
/// Activations are held from the start of a forward pass to the end of its weight gradients, logits or the workspace of
/// a layer during backward work. The maximum equals memory_at() of the stage.
std::vector<MemoryMoment> memory_curve(const MicrobatchCost& microbatch, const clock::StageSplit& split,
                                       const clock::PipelineShape& shape,
                                       const std::vector<clock::PipelineEvent>& events, std::int64_t stage);

}  // namespace assay::training
