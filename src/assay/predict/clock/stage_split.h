// How the layers of a model are split over pipeline stages.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "assay/model/transformer.h"

namespace assay::clock {

/// The layers of a model, an encoder's first, split evenly over stages; the remainder goes to stages in the middle.
struct StageSplit {
  struct Part {
    std::array<std::int16_t, model::max_layer_kinds> layers{};   ///< by kind
    std::array<std::int16_t, model::max_layer_kinds> leading{};  ///< layers in the first of two runs, if folded
    std::int16_t stages = 0;                                     ///< number of stages like this
    std::int16_t at = 0, to = 0;                                 ///< the first and the last of these stages
    bool first = false, last = false;                            ///< holds the embedding, the head
    double passed = 1;                                           ///< share of its layers that one microbatch passes
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::vector<Part> parts;
  std::vector<std::int16_t> part_of;  ///< by stage: index in `parts`
  bool is_folded = false;             ///< see StageLayout
  friend bool operator==(const StageSplit&, const StageSplit&) = default;
};
/// All layers, including an encoder's.
std::int64_t layers_of(const model::Transformer& model);
enum class StageLayout : std::uint8_t {
  straight,
  folded,   ///< two runs of layers per stage, folded as a V: the first stage holds both ends of the model
  mirrored  ///< two copies of the model from opposite ends: a microbatch passes one of a stage's two runs
};
/// Straight stages hold `chunks` runs each, the first ones of all stages before the second ones.
StageSplit split_stages(const model::Transformer& model, std::int64_t stages,
                        StageLayout layout = StageLayout::straight, std::int64_t chunks = 1);
/// Every run of layers of one copy as its own part, in model order: `chunks` per stage, or two if folded.
StageSplit split_parts(const model::Transformer& model, std::int64_t stages, std::int64_t chunks,
                       StageLayout layout = StageLayout::straight);

}  // namespace assay::clock
