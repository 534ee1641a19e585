#include "assay/predict/training/memory_curve.h"

#include <algorithm>

namespace assay::training {

std::vector<MemoryMoment> memory_curve(const MicrobatchCost& microbatch, const clock::StageSplit& split,
                                       const clock::PipelineShape& shape,
                                       const std::vector<clock::PipelineEvent>& events, std::int64_t stage) {
  const MicrobatchCost::Part& part =
      microbatch.parts[static_cast<std::size_t>(split.part_of[static_cast<std::size_t>(stage)])];
  // Parts of one copy of the model divide a stage's activations; parts of two copies hold a stage's worth each.
  const double chunks = layout_of(shape.schedule) == clock::StageLayout::mirrored
                            ? 1.0
                            : static_cast<double>(clock::chunks_per_stage(shape));
  Strategy order;
  order.schedule = shape.schedule;
  order.interleave = shape.chunks;
  const double largest = largest_chunk(microbatch, order, part.layers);
  std::vector<MemoryMoment> curve;
  double held = 0.0;
  const auto add = [&](Seconds at, bool goes_back) {
    const double whole = std::min(microbatch.microbatches, largest * (held / chunks));
    MemoryMoment moment{at, whole, memory_holding(microbatch, part, whole)};
    if (!goes_back) moment.memory.head = moment.memory.workspace = Bytes();
    moment.memory.reserve = moment.memory.context = Bytes();
    moment.memory.stage = stage;
    curve.push_back(moment);
  };
  for (const clock::PipelineEvent& event : events) {
    if (event.stage != stage) continue;
    const bool frees =
        event.work == clock::PipelineWork::backward || event.work == clock::PipelineWork::backward_weight;
    if (event.work == clock::PipelineWork::forward) held += 1.0;
    add(event.start, frees || event.work == clock::PipelineWork::backward_input);
    if (!frees) continue;
    held -= 1.0;
    add(event.end, false);
  }
  return curve;
}

}  // namespace assay::training
