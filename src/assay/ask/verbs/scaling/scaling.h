// The parts of `assay scaling`: the question, the sections of its answer, and its pictures.
#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/ranges.h"
#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/roofline/scaling.h"
#include "assay/predict/roofline/scaling_splits.h"

namespace assay::verbs::scaling {

// What `assay scaling` is asked, read and checked.

struct ScalingQuery {
  hardware::Cluster cluster;
  hardware::Cluster slice;  ///< one slice of it; the whole cluster if it has one
  std::string model;
  roofline::MlpShape shape;
  double attention_params = 0;               ///< elements of a layer's attention matrices
  Flops attention_per_key;                   ///< forward FLOP that one token spends on one key
  double layers = 0;                         ///< 0: not known
  std::optional<double> parameters, active;  ///< of the whole model
  Dtype dtype = Dtype::bf16;
  Sourced<FlopsPerSecond> peak;
  roofline::StateFormat state;
  double kept = 0;  ///< elements saved per token and layer
  std::string kept_text;
  std::optional<Tokens> batch, tokens;
  std::int64_t sequence = 0;
  double mfu = 1;  ///< share of the peak that training reaches
  std::optional<std::int64_t> fsdp, tensor, pipeline, expert, micro_batches;
  std::int64_t chunks = 1;
  std::optional<std::int64_t> axes_fsdp, axes_tensor;
  std::optional<Variation> sweep;  ///< tokens of a batch, ways of tensor parallelism ("tp"), or chips
  bool times_in_picture = false, list = false;
  std::vector<std::string> notes;  ///< defaults taken

  double slice_chips() const { return static_cast<double>(cluster.chips_per_slice); }
  double chips() const { return static_cast<double>(cluster.chips()); }
};

Result<ScalingQuery> read_scaling_query(const Request& request, const Context& context);
/// Counts that are whole numbers, kept as doubles for arithmetic.
inline std::int64_t whole(double count) { return static_cast<std::int64_t>(std::llround(count)); }

// The parts of the answer of `assay scaling` that are about the network: thresholds, splits, slices, experts.

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

// The decision walk: which parallelism a batch needs, one test after the other.

/// Reads the tests from the results of one batch: what there is, what a scheme needs, whether that holds, and what
/// follows.
report::Items walk_rows(const report::Members& results);

// Pictures of `assay scaling`: arithmetic over communication, or both times, against the batch.

/// Arithmetic over communication of a forward pass against tokens per chip, for each scheme; 1 is where they are equal.
draw::Chart ratio_chart(const ScalingQuery& query, const SchemeLinks& links,
                        const std::optional<roofline::PlacedSplit>& given);
/// Forward time of one layer against the batch: the arithmetic, and the communication of some splits.
draw::Chart time_chart(const ScalingQuery& query, const SchemeLinks& links,
                       const std::optional<roofline::PlacedSplit>& given);

/// Strong and weak scaling: forward time of one layer against chips, from the rows of a sweep.
draw::Chart chips_chart(const ScalingQuery& query, const report::Items& rows);

}  // namespace assay::verbs::scaling
