#include "assay/predict/clock/stage_split.h"

#include "assay/base/result.h"

namespace assay::clock {

namespace {

/// Lengths of the runs of layers in model order: `chunks` per stage, the first runs of all stages before the second
/// runs; or two per stage if folded, the second runs from the last stage back. Stages with one more layer are in the
/// middle, or at the far end if folded, since the ends also hold the embedding and the head. If the layers of a stage
/// do not divide evenly, its last runs have one more: all stages reach them at about the same time, when the head runs,
/// too. The very last run does not, because it ends with the head.
std::vector<std::int64_t> runs_of(std::int64_t layers, std::int64_t stages, std::int64_t chunks, bool folded) {
  const std::int64_t extra = layers % stages, low = folded ? stages - extra : (stages - extra) / 2;
  const auto layers_of = [&](std::int64_t s) { return layers / stages + (s >= low && s < low + extra ? 1 : 0); };
  std::vector<std::int64_t> runs;
  if (folded) {
    for (std::int64_t s = 0; s < stages; ++s) runs.push_back(layers_of(s) / 2);
    for (std::int64_t s = stages; s-- > 0;) runs.push_back(layers_of(s) - layers_of(s) / 2);
    return runs;
  }
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (std::int64_t s = 0; s < stages; ++s) {
      const std::int64_t n = layers_of(s), more = n % chunks;
      const std::int64_t first = chunks - more - (more > 0 && s + 1 == stages ? 1 : 0);
      runs.push_back(n / chunks + (chunk >= first && chunk < first + more ? 1 : 0));
    }
  return runs;
}

/// Runs of layers on `stages` stages, placed by `stage_of`; if mirrored, also at the same distance from the other end.
template <class F>
StageSplit laid(const model::Transformer& model, std::int64_t stages, const std::vector<std::int64_t>& runs,
                StageLayout layout, F&& stage_of) {
  std::vector<std::size_t> order;  // kinds of the decoder are numbered first
  if (model.encoder)
    for (std::uint16_t kind : model.encoder->order) order.push_back(model.decoder.kinds.size() + kind);
  for (std::uint16_t kind : model.decoder.order) order.push_back(kind);
  std::vector<StageSplit::Part> all(static_cast<std::size_t>(stages));
  std::size_t next = 0;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    StageSplit::Part& part = all[stage_of(run)];
    part.first |= run == 0;
    part.last |= run + 1 == runs.size();
    for (std::int64_t i = 0; i < runs[run]; ++i) {
      const std::size_t kind = order[next++];
      ++part.layers[kind];
      if (layout == StageLayout::folded && run < all.size()) ++part.leading[kind];
    }
  }
  for (std::size_t s = 0; layout == StageLayout::mirrored && s < all.size() - 1 - s; ++s) {
    StageSplit::Part &near = all[s], &far = all[all.size() - 1 - s];
    for (std::size_t k = 0; k < model::max_layer_kinds; ++k)
      near.layers[k] = static_cast<std::int16_t>(near.layers[k] + far.layers[k]);
    near.first |= far.first;
    near.last |= far.last;
    near.passed = 0.5;
    far = near;
  }
  StageSplit split;
  split.is_folded = layout == StageLayout::folded;
  for (std::size_t s = 0; s < all.size(); ++s) {
    StageSplit::Part& part = all[s];
    part.stages = 1;
    part.at = part.to = static_cast<std::int16_t>(s);
    std::size_t known = 0;
    while (known < split.parts.size() &&
           !(split.parts[known].layers == part.layers && split.parts[known].leading == part.leading &&
             split.parts[known].first == part.first && split.parts[known].last == part.last))
      ++known;
    if (known < split.parts.size()) {
      ++split.parts[known].stages;
      split.parts[known].to = part.to;
    } else
      split.parts.push_back(part);
    split.part_of.push_back(static_cast<std::int16_t>(known));
  }
  return split;
}

}  // namespace

std::int64_t layers_of(const model::Transformer& model) {
  return model.decoder.layers() + (model.encoder ? model.encoder->layers() : 0);
}

StageSplit split_stages(const model::Transformer& model, std::int64_t stages, StageLayout layout, std::int64_t chunks) {
  const auto p = static_cast<std::size_t>(stages);
  const bool folded = layout == StageLayout::folded;
  return laid(model, stages, runs_of(layers_of(model), stages, chunks, folded), layout,
              [=](std::size_t run) { return folded && run >= p ? 2 * p - 1 - run : run % p; });
}

StageSplit split_parts(const model::Transformer& model, std::int64_t stages, std::int64_t chunks, StageLayout layout) {
  const std::vector<std::int64_t> runs = runs_of(layers_of(model), stages, chunks, layout == StageLayout::folded);
  return laid(model, static_cast<std::int64_t>(runs.size()), runs, StageLayout::straight,
              [](std::size_t run) { return run; });
}

}  // namespace assay::clock
