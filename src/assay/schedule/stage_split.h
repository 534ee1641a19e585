// How the layers of a model lie on pipeline stages.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "assay/model/transformer.h"

namespace assay {

/// Kinds of layers that a model may have to be priced; load_model's catalogue has far fewer.
inline constexpr std::size_t max_layer_kinds = 24;

/// How the layers of a model, those of an encoder first, lie on `stages` stages: as many in each as possible, the rest
/// in the middle.
struct StageSplit {
  struct Part {
    std::array<std::int16_t, max_layer_kinds> layers{};  ///< by kind
    std::int16_t stages = 0;                             ///< that are like this
    std::int16_t at = 0;                                 ///< the first of them
    bool first = false, last = false;                    ///< holds the embedding, the head
  };
  std::vector<Part> parts;
  std::vector<std::int16_t> part_of;  ///< which of them each stage is
};
/// Folded, a stage has two runs of layers that lie like a V, so that the first one holds both ends of the model.
StageSplit split_stages(const Transformer& model, std::int64_t stages, bool folded = false);
/// Every run of layers by itself, in model order: `chunks` a stage, or two where they are folded.
StageSplit split_parts(const Transformer& model, std::int64_t stages, std::int64_t chunks, bool folded = false);

}  // namespace assay
