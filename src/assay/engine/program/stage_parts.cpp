#include "assay/engine/program/stage_parts.h"

#include <algorithm>

#include "assay/base/index.h"
#include "assay/base/result.h"
#include "assay/predict/clock/stage_split.h"

namespace assay::engine {

StageParts::StageParts(const model::Transformer& model, clock::PipelineShape shape, std::int64_t microbatches)
    : shape_(shape) {
  shape_.microbatches = microbatches;
  const std::int64_t layers = clock::layers_of(model);
  if (shape_.stages == 1) {
    parts_ = {{0, layers}};
    return;
  }
  const bool folded = shape_.schedule == clock::PipelineSchedule::zb_v;
  const clock::StageSplit split = clock::split_parts(
      model, shape_.stages, shape_.schedule == clock::PipelineSchedule::interleaved ? shape_.chunks : 1,
      folded ? clock::StageLayout::folded : clock::StageLayout::straight);
  std::int64_t first = 0;
  for (const std::int16_t kind : split.part_of) {
    std::int64_t count = 0;
    for (const std::int16_t n : split.parts[at(kind)].layers) count += n;
    parts_.push_back({first, first + count});
    first += count;
  }
  if (first != layers) throw InternalError("stages do not hold all layers");
}

std::int64_t StageParts::stage_of(std::int64_t part, std::int64_t direction) const {
  return shape_.stages == 1 ? 0 : clock::stage_of_part(shape_, part, direction);
}

std::int64_t StageParts::part_of(std::int64_t stage, std::int32_t chunk) const {
  if (shape_.stages == 1) return 0;
  std::int32_t found = 0;
  for (std::int64_t part = 0; part < count(); ++part) {
    if (is_dual()) {
      if (stage_of(part, chunk) == stage) return part;
    } else if (stage_of(part, 0) == stage && found++ == chunk) {
      return part;
    }
  }
  throw InternalError("a stage has no such chunk");
}

HeldLayers StageParts::held_by(std::int64_t stage) const {
  HeldLayers held{std::vector<char>(at(parts_.back().last), 0), false, false, !is_dual() || 2 * stage < shape_.stages};
  const std::int64_t chunks = shape_.stages == 1 ? 1 : clock::chunks_per_stage(shape_);
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t part = part_of(stage, chunk);
    const auto [first, last] = parts_[at(part)];
    std::fill(held.layers.begin() + first, held.layers.begin() + last, char{1});
    held.embeds = held.embeds || part == 0;
    held.ends = held.ends || part + 1 == count();
  }
  return held;
}

clock::StageOrder StageParts::order(std::int64_t stage) const {
  if (shape_.stages > 1) return clock::stage_order(shape_, stage);
  clock::StageOrder order;
  for (std::int64_t m = 0; m < shape_.microbatches; ++m) {
    order.push_back({clock::PipelineWork::forward, 0, m});
    order.push_back({clock::PipelineWork::backward, 0, m});
  }
  return order;
}

}  // namespace assay::engine
