// What `assay scaling` is asked, read and checked.
#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/roofline/scaling.h"

namespace assay::verbs::scaling {

/// One sweep: tokens of a batch, tensor-parallel ways, or chips.
struct ScalingSweep {
  enum class Over { batch, tensor, chips };
  Over over = Over::batch;
  std::vector<double> values;
};

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
  std::optional<ScalingSweep> sweep;
  bool times_in_picture = false, list = false;
  std::vector<std::string> notes;  ///< defaults taken

  double slice_chips() const { return static_cast<double>(cluster.chips_per_slice); }
  double chips() const { return static_cast<double>(cluster.chips()); }
};

Result<ScalingQuery> read_scaling_query(const Request& request, const Context& context);
/// The options of the verb.
std::vector<OptionSpec> scaling_options();

/// Counts that are whole numbers, kept as doubles for arithmetic.
inline std::int64_t whole(double count) { return static_cast<std::int64_t>(std::llround(count)); }

}  // namespace assay::verbs::scaling
