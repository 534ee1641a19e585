#include "assay/predict/roofline/scaling_splits.h"

#include <algorithm>
#include <limits>

#include "assay/predict/collective/placement.h"

namespace assay::roofline {
namespace {

/// Arithmetic over communication in the pass where it is less.
double least_ratio(const PlacedSplit& split, Tokens batch) {
  double least = std::numeric_limits<double>::infinity();
  for (Pass pass : {Pass::forward, Pass::backward}) {
    const LayerTimes<Plain> times = layer_times(Plain{}, split.rates, split.split, batch, WeightsAre::sharded, pass);
    least = std::min(least, times.compute / times.communication);
  }
  return least;
}

}  // namespace

std::vector<LayerCollective> layer_collectives(const MlpShape& shape, const Split& split, Tokens batch,
                                               WeightsAre scheme) {
  std::vector<LayerCollective> all;
  const Bytes matrix = layer_weight_bytes(Plain{}, shape) / (shape.matrices * split.tensor);
  const Bytes rows = shape.element * shape.d_model * batch.value() / split.fsdp;
  const bool shards = split.fsdp > 1.0 && scheme == WeightsAre::sharded;
  const bool gated = shape.matrices > 2.0;
  const auto weights = [&](Pass pass, program::Collective kind, std::string_view tensor) {
    all.push_back({pass, kind, tensor, true, true, matrix});
  };
  const auto tokens = [&](Pass pass, program::Collective kind, std::string_view tensor, bool needed = true) {
    if (split.tensor > 1.0) all.push_back({pass, kind, tensor, false, needed, rows});
  };
  using enum program::Collective;
  tokens(Pass::forward, all_gather, "In");
  if (shards) {
    weights(Pass::forward, all_gather, "W_in");
    if (gated) weights(Pass::forward, all_gather, "W_gate");
    weights(Pass::forward, all_gather, "W_out");
  }
  tokens(Pass::forward, reduce_scatter, "Out");
  // Backward: the gradient of each weight is reduced, and FSDP gathers the weight again for the gradient of its input.
  const auto back = [&](std::string_view gradient, std::string_view weight) {
    if (split.fsdp <= 1.0) return;
    weights(Pass::backward, shards ? reduce_scatter : all_reduce, gradient);
    if (shards) weights(Pass::backward, all_gather, weight);
  };
  tokens(Pass::backward, all_gather, "dOut");
  back("dW_out", "W_out");
  tokens(Pass::backward, all_gather, "In", false);
  if (gated) back("dW_gate", "W_gate");
  back("dW_in", "W_in");
  tokens(Pass::backward, reduce_scatter, "dIn");
  return all;
}

Bytes collective_bytes(const std::vector<LayerCollective>& collectives, Pass pass) {
  Bytes sum;
  for (const LayerCollective& one : collectives)
    if (one.pass == pass && one.needed) sum += (one.kind == program::Collective::all_reduce ? 2.0 : 1.0) * one.bytes;
  return sum;
}

std::optional<Tokens> PlacedSplit::min_batch() const {
  if (split.tensor > 1.0 && max_tensor_ways(Plain{}, rates) < split.tensor) return std::nullopt;
  return split.fsdp * min_tokens_data_parallel(Plain{}, rates, WeightsAre::sharded);
}

PlacedSplit assume_split(const MlpShape& shape, const Sourced<FlopsPerSecond>& peak, const Split& split,
                         Counting counting, const collective::CollectiveGroup& weights,
                         const collective::CollectiveGroup& activations) {
  return {split, "", weights, activations, layer_rates(Plain{}, shape, peak, {weights, activations}, counting)};
}

Result<PlacedSplit> place_split(const hardware::Cluster& slice, const MlpShape& shape,
                                const Sourced<FlopsPerSecond>& peak, const Split& split, Counting counting,
                                std::string_view where) {
  const program::Mesh mesh{{program::axis_of(program::Role::fsdp, static_cast<std::int64_t>(split.fsdp)),
                            program::axis_of(program::Role::pipeline, static_cast<std::int64_t>(split.pipeline)),
                            program::axis_of(program::Role::tensor, static_cast<std::int64_t>(split.tensor))}};
  ASSAY_TRY(placement, collective::Placement::make(mesh, slice, where));
  PlacedSplit placed = assume_split(shape, peak, split, counting, placement.group(program::axis_bit(0)),
                                    placement.group(program::axis_bit(2)));
  if (slice.torus && !placement.plain()) placed.placed = collective::placement_text(placement, mesh, slice);
  return placed;
}

Seconds layer_lower(const PlacedSplit& split, Tokens batch) {
  Seconds sum;
  for (Pass pass : {Pass::forward, Pass::backward})
    sum += layer_times(Plain{}, split.rates, split.split, batch, WeightsAre::sharded, pass).lower;
  return sum;
}

std::vector<PlacedSplit> placed_splits(const hardware::Cluster& slice, const MlpShape& shape,
                                       const Sourced<FlopsPerSecond>& peak, double pipeline, Tokens batch) {
  std::vector<PlacedSplit> all;
  const auto chips = static_cast<std::int64_t>(static_cast<double>(slice.chips_per_slice) / pipeline);
  for (std::int64_t tensor = 1; tensor <= chips; ++tensor) {
    if (chips % tensor != 0) continue;
    const Split split{static_cast<double>(chips / tensor), static_cast<double>(tensor), pipeline};
    if (auto placed = place_split(slice, shape, peak, split, Counting::exact, "--tp"))
      all.push_back(*std::move(placed));
  }
  std::stable_sort(all.begin(), all.end(), [&](const PlacedSplit& a, const PlacedSplit& b) {
    // Splits that are compute-bound take equally long, but for the last bits of sums: the one farthest from the
    // network's limit is the better.
    const auto rounded = [&](const PlacedSplit& split) {
      return static_cast<float>(layer_lower(split, batch).value());
    };
    const float lower_a = rounded(a), lower_b = rounded(b);
    return lower_a != lower_b ? lower_a < lower_b : least_ratio(a, batch) > least_ratio(b, batch);
  });
  return all;
}

LayerTimes<Plain> forward_times(const PlacedSplit& split, Tokens batch) {
  return layer_times(Plain{}, split.rates, split.split, batch, WeightsAre::sharded, Pass::forward);
}

std::string_view limiter_of(const LayerTimes<Plain>& times) {
  return times.compute >= times.communication ? "compute" : "network";
}

double efficiency_of(const LayerTimes<Plain>& times) { return times.compute / times.lower; }

Seconds expected_layer_time(const hardware::Chip& chip, const LayerTimes<Plain>& times) {
  return max(times.compute / chip.efficiency.matrix.value, times.communication / hardware::network_efficiency(chip));
}

std::optional<FastestSplit> fastest_split(const hardware::Cluster& slice, const MlpShape& shape,
                                          const Sourced<FlopsPerSecond>& peak, double pipeline, Tokens batch) {
  const std::vector<PlacedSplit> splits = placed_splits(slice, shape, peak, pipeline, batch);
  if (splits.empty()) return std::nullopt;
  return FastestSplit{splits.front(), forward_times(splits.front(), batch)};
}

std::vector<LevelThresholds> level_thresholds(const hardware::Cluster& slice, const MlpShape& shape,
                                              const PlacedSplit& split) {
  std::vector<LevelThresholds> out;
  const double copy_chips = split.split.tensor * split.split.pipeline;
  const Bytes weights = layer_weight_bytes(Plain{}, shape), token = shape.element * shape.d_model;
  double below = 1.0;  // chips under one child
  for (const auto& level : split.weights.levels) {
    const double children = below;
    below = static_cast<double>(slice.levels[level.level].chips);
    LevelThresholds row;
    row.level = level.level;
    if (level.groups > 1.0) {
      const BytesPerSecond bandwidth = copy_chips * level.lanes * level.chip_bandwidth;
      const Tokens about = weights / bandwidth / split.rates.arithmetic;
      row.data_parallel = LevelThresholds::DataParallel{bandwidth, (level.groups - 1.0) / level.groups * about, about};
    }
    // Tensor parallelism over whole children: Y - c of Y parts come from outside of a child of c chips.
    const BytesPerSecond into_child = children * level.chip_bandwidth;
    row.approximate_max_tensor = split.rates.arithmetic * Tokens(1) / (2.0 * token / into_child);
    row.max_tensor = children + row.approximate_max_tensor;
    out.push_back(row);
  }
  return out;
}

}  // namespace assay::roofline
