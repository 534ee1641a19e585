// Memory of one stage over a training step: what is allocated when, from the events of its pipeline.
#pragma once
#include <vector>

#include "assay/pipeline/simulation.h"
#include "assay/training/step.h"

namespace assay::training {

struct MemoryMoment {
  Seconds at;
  double held = 0;     ///< microbatches whose activations are there, through a whole stage
  MemoryParts memory;  ///< without what the allocator holds besides
};

/// What a stage has allocated from the start of each of its events on; at the end of the step no activation is left.
/// Activations are there from the start of a forward pass to the end of its weights' gradients; logits or the
/// workspace of a layer during backward work. The largest is what memory_at() says of the stage.
std::vector<MemoryMoment> memory_curve(const MicrobatchCost& microbatch, const pipeline::StageSplit& split,
                                       const pipeline::PipelineShape& shape,
                                       const std::vector<pipeline::PipelineEvent>& events, std::int64_t stage);

}  // namespace assay::training
