#include "assay/schedule/stage_split.h"

#include "assay/base/result.h"

namespace assay {

StageSplit split_stages(const Transformer& model, std::int64_t stages) {
  std::vector<std::size_t> order;  // kinds of the decoder are numbered first
  if (model.encoder)
    for (std::uint16_t kind : model.encoder->order) order.push_back(model.decoder.kinds.size() + kind);
  for (std::uint16_t kind : model.decoder.order) order.push_back(kind);
  const auto layers = static_cast<std::int64_t>(order.size());
  StageSplit split;
  std::int64_t next = 0;
  for (std::int64_t s = 0; s < stages; ++s) {
    // Stages with one layer more lie in the middle: the ends also hold the embedding and the head.
    const std::int64_t extra = layers % stages, low = (stages - extra) / 2;
    const std::int64_t mine = layers / stages + (s >= low && s < low + extra ? 1 : 0);
    StageSplit::Part part;
    part.stages = 1;
    part.first = s == 0, part.last = s == stages - 1;
    for (std::int64_t i = 0; i < mine; ++i, ++next) {
      const std::size_t kind = order[static_cast<std::size_t>(next)];
      if (kind >= max_layer_kinds) throw InternalError("a model with more kinds of layers than can be priced");
      ++part.layers[kind];
    }
    bool merged = false;
    for (StageSplit::Part& known : split.parts)
      if (known.layers == part.layers && known.first == part.first && known.last == part.last) {
        ++known.stages;
        merged = true;
        break;
      }
    if (!merged) split.parts.push_back(part);
  }
  return split;
}

}  // namespace assay
