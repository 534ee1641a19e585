// The parts of the answer of `assay scaling` that are about the network: thresholds, splits, slices, experts.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/report/document.h"
#include "assay/ask/verbs/scaling/query.h"
#include "assay/predict/roofline/scaling_splits.h"

namespace assay::verbs::scaling {

/// The links that each scheme uses. On a torus these are whole axes, as if no other scheme used them.
struct SchemeLinks {
  collective::CollectiveGroup weights;      ///< of pure FSDP or data parallelism, over all chips of a slice
  collective::CollectiveGroup activations;  ///< of tensor parallelism
  collective::CollectiveGroup whole;        ///< of tensor parallelism over all chips
  std::string weights_text, activations_text;
  /// FSDP and tensor parallelism together; on a torus of two axes or more.
  struct Mixed {
    collective::CollectiveGroup weights, activations;
    std::string weights_text, activations_text;
    double weights_axes = 1, activations_axes = 1;
  };
  std::optional<Mixed> mixed;
};
Result<SchemeLinks> scheme_links(const ScalingQuery& query);

/// The split that --fsdp, --tp and --pp give, if any; the axes of --axes-fsdp and --axes-tp count as whole.
Result<std::optional<roofline::PlacedSplit>> given_split(const ScalingQuery& query, const SchemeLinks& links);

/// Tokens of the batch that one slice takes.
Tokens slice_batch(const ScalingQuery& query);
roofline::LayerRates<Plain> rates_of(const ScalingQuery& query, const collective::CollectiveGroup& weights,
                                     const collective::CollectiveGroup& activations,
                                     roofline::Counting counting = roofline::Counting::exact);

report::Members data_parallel_section(const ScalingQuery& query, const SchemeLinks& links, roofline::WeightsAre scheme);
report::Members tensor_parallel_section(const ScalingQuery& query, const SchemeLinks& links);
report::Members mixed_section(const ScalingQuery& query, const SchemeLinks::Mixed& links, const SchemeLinks& all);
report::Members split_section(const ScalingQuery& query, const roofline::PlacedSplit& split);
report::Members slices_section(const ScalingQuery& query, const collective::CollectiveGroup& between);
report::Members expert_section(const ScalingQuery& query, const collective::CollectiveGroup& group);
/// Each level of a switched network; `split` says how many chips hold one copy of the weights.
report::Items level_rows(const ScalingQuery& query, const roofline::PlacedSplit& split);
report::Items split_rows(const ScalingQuery& query, const std::vector<roofline::PlacedSplit>& splits);

}  // namespace assay::verbs::scaling
