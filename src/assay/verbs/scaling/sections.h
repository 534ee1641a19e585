// The parts of the answer of `assay scaling` that are about the network: thresholds, splits, slices, experts.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/report/document.h"
#include "assay/roofline/scaling_splits.h"
#include "assay/verbs/scaling/query.h"

namespace assay::verbs::scaling {

/// The links that each scheme uses. On a torus these are whole axes, as if no other scheme used them.
struct SchemeLinks {
  network::CollectiveGroup weights;      ///< of pure FSDP or data parallelism, over all chips of a slice
  network::CollectiveGroup activations;  ///< of tensor parallelism
  network::CollectiveGroup whole;        ///< of tensor parallelism over all chips
  std::string weights_text, activations_text;
  /// FSDP and tensor parallelism together; on a torus of two axes or more.
  struct Mixed {
    network::CollectiveGroup weights, activations;
    std::string weights_text, activations_text;
    double weights_axes = 1, activations_axes = 1;
  };
  std::optional<Mixed> mixed;
};
Result<SchemeLinks> scheme_links(const ScalingQuery& query);

/// The split that --fsdp, --tp and --pp give, if any; the axes of --axes-fsdp and --axes-tp count as whole.
Result<std::optional<assay::roofline::PlacedSplit>> given_split(const ScalingQuery& query, const SchemeLinks& links);

/// Tokens of the batch that one slice takes.
Tokens slice_batch(const ScalingQuery& query);
assay::roofline::LayerRates<Plain> rates_of(const ScalingQuery& query, const network::CollectiveGroup& weights,
                                            const network::CollectiveGroup& activations,
                                            assay::roofline::Counting counting = assay::roofline::Counting::exact);

report::Members data_parallel_section(const ScalingQuery& query, const SchemeLinks& links,
                                      assay::roofline::WeightsAre scheme);
report::Members tensor_parallel_section(const ScalingQuery& query, const SchemeLinks& links);
report::Members mixed_section(const ScalingQuery& query, const SchemeLinks::Mixed& links, const SchemeLinks& all);
report::Members split_section(const ScalingQuery& query, const assay::roofline::PlacedSplit& split);
report::Members slices_section(const ScalingQuery& query, const network::CollectiveGroup& between);
report::Members expert_section(const ScalingQuery& query, const network::CollectiveGroup& group);
/// Each level of a switched network; `split` says how many chips hold one copy of the weights.
report::Items level_rows(const ScalingQuery& query, const assay::roofline::PlacedSplit& split);
report::Items split_rows(const ScalingQuery& query, const std::vector<assay::roofline::PlacedSplit>& splits);

}  // namespace assay::verbs::scaling
