// The parts of the answer of `assay scaling` that are about the network: thresholds, splits, slices, experts.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/report/document.h"
#include "assay/roofline/scaling_splits.h"
#include "assay/verbs/scaling/query.h"

namespace assay {

/// The links that each scheme uses. On a torus these are whole axes, as if each scheme had them to itself.
struct SchemeLinks {
  CollectiveGroup weights;      ///< of pure FSDP or data parallelism, over all chips of a slice
  CollectiveGroup activations;  ///< of tensor parallelism
  CollectiveGroup whole;        ///< of tensor parallelism over all chips
  std::string weights_text, activations_text;
  /// FSDP and tensor parallelism together; on a torus of two axes or more.
  struct Mixed {
    CollectiveGroup weights, activations;
    std::string weights_text, activations_text;
    double weights_axes = 1, activations_axes = 1;
  };
  std::optional<Mixed> mixed;
};
Result<SchemeLinks> scheme_links(const ScalingQuery& query);

/// The split that --fsdp, --tp and --pp give, if any; the axes that --axes-fsdp and --axes-tp name are taken as whole.
Result<std::optional<PlacedSplit>> given_split(const ScalingQuery& query, const SchemeLinks& links);

/// Tokens of the batch that one slice takes.
Tokens slice_batch(const ScalingQuery& query);
LayerRates<Plain> rates_of(const ScalingQuery& query, const CollectiveGroup& weights,
                           const CollectiveGroup& activations, Counting counting = Counting::exact);

Members data_parallel_section(const ScalingQuery& query, const SchemeLinks& links, WeightsAre scheme);
Members tensor_parallel_section(const ScalingQuery& query, const SchemeLinks& links);
Members mixed_section(const ScalingQuery& query, const SchemeLinks::Mixed& links, const SchemeLinks& all);
Members split_section(const ScalingQuery& query, const PlacedSplit& split);
Members slices_section(const ScalingQuery& query, const CollectiveGroup& between);
Members expert_section(const ScalingQuery& query, const CollectiveGroup& group);
/// Each level of a switched network by itself; `split` says how many chips hold one copy of the weights.
Items level_rows(const ScalingQuery& query, const PlacedSplit& split);
Items split_rows(const ScalingQuery& query, const std::vector<PlacedSplit>& splits);

}  // namespace assay
