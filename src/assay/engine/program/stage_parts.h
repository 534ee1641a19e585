// Which layers of a model the stages of a pipeline hold, and in which order they run them.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/model/transformer.h"
#include "assay/predict/clock/orders.h"
#include "assay/program/form/program.h"

namespace assay::engine {

/// Layers [first, last) of a part of the model.
struct StagePart {
  std::int64_t first = 0, last = 0;
};

/// What a stage of a pipeline has of a model, or one device has all of.
struct HeldLayers {
  std::vector<char> layers;  ///< by number
  bool embeds = true, ends = true;
  bool counts_squares = true;  ///< whether no other stage has the same gradients

  /// Whether a block of a layer (below 0: embedding and head) is among them.
  bool has(const program::Block& block, std::int64_t layer) const {
    if (layer >= 0) return layers[static_cast<std::size_t>(layer)] != 0;
    return block.name == "embedding" ? embeds : ends;
  }
};

/// The parts of a model, in its order. One stage has one part.
class StageParts {
 public:
  StageParts(const model::Transformer& model, clock::PipelineShape shape, std::int64_t microbatches);

  const clock::PipelineShape& shape() const { return shape_; }
  std::int64_t count() const { return static_cast<std::int64_t>(parts_.size()); }
  const StagePart& operator[](std::int64_t part) const { return parts_[static_cast<std::size_t>(part)]; }

  /// Whether two copies of the model are trained, from both ends.
  bool is_dual() const { return shape_.schedule == clock::PipelineSchedule::dualpipe && shape_.stages > 1; }
  /// Which of the two copies an operation belongs to.
  std::int64_t direction(const clock::PipelineOperation& operation) const { return is_dual() ? operation.chunk : 0; }
  std::int64_t stage_of(std::int64_t part, std::int64_t direction) const;
  std::int64_t part_of(std::int64_t stage, std::int32_t chunk) const;
  HeldLayers held_by(std::int64_t stage) const;
  clock::StageOrder order(std::int64_t stage) const;

 private:
  clock::PipelineShape shape_;
  std::vector<StagePart> parts_;
};

}  // namespace assay::engine
