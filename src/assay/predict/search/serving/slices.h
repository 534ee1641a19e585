// Other slices of a chip that would serve a model: the first that does what is asked, and the fastest.
#pragma once
#include <functional>

#include "assay/predict/search/serving/fit.h"

namespace assay::search {

struct SliceQuestion {
  const serving::ServingQuestion& question;
  const hardware::Chip& chip;
  ServingChoices choices;  ///< shardings are searched anew, since another slice needs another one
  /// The cluster of a slice; a slice that does not exist is skipped.
  std::function<Result<hardware::Cluster>(const SliceSize&)> cluster_of;
};

/// Beyond this, splitting one copy of a model further no longer helps decoding.
inline constexpr std::int64_t most_slice_chips = 512;

struct SliceFound {
  SliceSize slice;
  serving::ServingPoint point;
};

/// The first slice from `fewest` chips on where something fits, or meets the limits, and its best point.
std::optional<SliceFound> first_slice(const SliceQuestion& of, std::int64_t fewest, ServingGoal goal);
/// The slice with the least time to the first token or per token, ignoring latency limits.
std::optional<SliceFound> fastest_slice(const SliceQuestion& of, bool first_token);

/// The chip's format of 8 or 4 bits: floating if it multiplies in it, else integer.
Dtype narrow_format(const hardware::Chip& chip, int bits);

/// The widest of the narrower weight formats that fits on the cluster and meets the limits.
struct NarrowerWeights {
  Dtype weights = Dtype::int8;
  serving::ServingPoint point;
};
std::optional<NarrowerWeights> narrower_weights(const serving::ServingQuestion& question,
                                                const hardware::Cluster& cluster, const ServingChoices& choices);

/// The first slice with more chips than `chips` that meets the limits; where more chips do not help, the first with as
/// many or more and narrower weights and cache.
struct MeetingSlice {
  SliceFound found;
  lower::Formats formats;
};
std::optional<MeetingSlice> first_meeting_slice(const SliceQuestion& of, std::int64_t chips);

/// Weights and caches in one format: where they fit.
struct FormatFit {
  struct Slice {
    SliceSize slice;
    Bytes left;                          ///< memory left for caches
    std::optional<std::int64_t> caches;  ///< sequences that fit there; nothing for a model without a cache
  };
  Dtype format = Dtype::bf16;
  Bytes weights, token_cache, sequence_cache;
  double chips_for_weights = 0;  ///< weights over the memory of one chip
  std::int64_t least_chips = 1;
  std::optional<Slice> smallest;       ///< the smallest slice that holds the weights
  std::optional<SliceSize> for_batch;  ///< the smallest slice that also holds the caches of the batch
  std::optional<double> max_batch;     ///< largest batch on the cluster
};
/// One entry each for formats of 16, 8 and 4 bits.
std::vector<FormatFit> format_fits(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                                   double parameters, double batch);

}  // namespace assay::search
