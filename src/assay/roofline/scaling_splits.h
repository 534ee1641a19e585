// Splits of a slice into FSDP, pipeline and tensor parallelism on its real axes or levels, and their traffic.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/hardware/cluster.h"
#include "assay/roofline/scaling.h"

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
/// In the order of the algorithm. A gate adds one more matrix like W_in.
std::vector<LayerCollective> layer_collectives(const MlpShape& shape, const Split& split, Tokens batch,
                                               WeightsAre scheme);
/// Bytes of a pass; an all-reduce counts twice, because it moves the array twice.
Bytes collective_bytes(const std::vector<LayerCollective>& collectives, Pass pass);

/// A split with the links that its collectives use.
struct PlacedSplit {
  Split split;
  std::string placed;  ///< in words, if a mesh axis is not one physical axis
  network::CollectiveGroup weights, activations;
  LayerRates<Plain> rates;

  /// Batch above which it is compute-bound; none if tensor parallelism is too wide for any batch.
  std::optional<Tokens> min_batch() const;
};

/// Maps fsdp outermost and tensor innermost on one slice; the error says why it does not fit.
Result<PlacedSplit> place_split(const hardware::Cluster& slice, const MlpShape& shape,
                                const Sourced<FlopsPerSecond>& peak, const Split& split, Counting counting,
                                std::string_view where);
/// The same on given links.
PlacedSplit assume_split(const MlpShape& shape, const Sourced<FlopsPerSecond>& peak, const Split& split,
                         Counting counting, const network::CollectiveGroup& weights,
                         const network::CollectiveGroup& activations);

/// Every split into fsdp and tensor that fits the slice, for a number of pipeline stages; the fastest for the batch
/// first: by the overlapped time of both passes, then by the time without overlap.
std::vector<PlacedSplit> placed_splits(const hardware::Cluster& slice, const MlpShape& shape,
                                       const Sourced<FlopsPerSecond>& peak, double pipeline, Tokens batch);
/// Lower bound over both passes, with sharded weights.
Seconds layer_lower(const PlacedSplit& split, Tokens batch);

}  // namespace assay::roofline
