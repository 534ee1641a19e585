// Splits of a slice into FSDP, pipeline and tensor parallelism on its real axes or levels, and their traffic.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/hardware/cluster.h"
#include "assay/predict/roofline/scaling.h"

namespace assay::roofline {

/// One collective of a layer; `bytes` is the size of the array that one group of chips gathers or reduces.
struct LayerCollective {
  Pass pass = Pass::forward;
  program::Collective kind = program::Collective::all_gather;
  std::string_view tensor;
  bool over_fsdp = false;  ///< otherwise over the tensor axis
  bool needed = true;      ///< false: only if the forward pass did not save the result
  Bytes bytes;
};
/// The collectives of a layer in the order of the algorithm. A gate adds one more matrix like W_in.
std::vector<LayerCollective> layer_collectives(const MlpShape& shape, const Split& split, Tokens batch,
                                               WeightsAre scheme);
/// Bytes of a pass; an all-reduce counts twice, because it moves the array twice.
Bytes collective_bytes(const std::vector<LayerCollective>& collectives, Pass pass);

/// A split with the links that its collectives use.
struct PlacedSplit {
  Split split;
  std::string placed;  ///< in words, if a mesh axis is not one physical axis
  collective::CollectiveGroup weights, activations;
  LayerRates<Plain> rates;

  /// Batch above which it is compute-bound; none if tensor parallelism is too wide for any batch.
  std::optional<Tokens> min_batch() const;
};

/// Maps fsdp outermost and tensor innermost on one slice; the error says why it does not fit.
Result<PlacedSplit> place_split(const hardware::Cluster& slice, const MlpShape& shape,
                                const Sourced<FlopsPerSecond>& peak, const Split& split, Counting counting,
                                std::string_view where);
/// A split on given links.
PlacedSplit assume_split(const MlpShape& shape, const Sourced<FlopsPerSecond>& peak, const Split& split,
                         Counting counting, const collective::CollectiveGroup& weights,
                         const collective::CollectiveGroup& activations);

/// Every split into fsdp and tensor that fits the slice, for a number of pipeline stages; the fastest for the batch
/// first: by the overlapped time of both passes, then by the time without overlap.
std::vector<PlacedSplit> placed_splits(const hardware::Cluster& slice, const MlpShape& shape,
                                       const Sourced<FlopsPerSecond>& peak, double pipeline, Tokens batch);
/// The time of both passes with sharded weights and full overlap.
Seconds layer_lower(const PlacedSplit& split, Tokens batch);

/// The forward pass of a layer with sharded weights.
LayerTimes<Plain> forward_times(const PlacedSplit& split, Tokens batch);
/// "compute" or "network".
std::string_view limiter_of(const LayerTimes<Plain>& times);
/// The share of the overlapped time that is arithmetic.
double efficiency_of(const LayerTimes<Plain>& times);
/// The slower of arithmetic and communication, at the shares of their rates that are reached in practice.
Seconds expected_layer_time(const hardware::Chip& chip, const LayerTimes<Plain>& times);

/// The fastest split of a batch and its forward pass; nothing where no split can be placed.
struct FastestSplit {
  PlacedSplit split;
  LayerTimes<Plain> times;
};
std::optional<FastestSplit> fastest_split(const hardware::Cluster& slice, const MlpShape& shape,
                                          const Sourced<FlopsPerSecond>& peak, double pipeline, Tokens batch);

/// How far parallelism goes over one level of a switched network.
struct LevelThresholds {
  struct DataParallel {
    BytesPerSecond bandwidth;  ///< into one group of chips that holds a copy of the weights
    Tokens min_tokens, approximate_min_tokens;
  };
  std::size_t level = 0;                      ///< number of the level in the slice
  std::optional<DataParallel> data_parallel;  ///< where weights cross the level; tokens are per chip
  double max_tensor = 0, approximate_max_tensor = 0;
};
/// Thresholds of each level from the chip upwards; `split` says how many chips hold one copy of the weights.
std::vector<LevelThresholds> level_thresholds(const hardware::Cluster& slice, const MlpShape& shape,
                                              const PlacedSplit& split);

}  // namespace assay::roofline
