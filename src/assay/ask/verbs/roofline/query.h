// The parts of `assay roofline`: the question, and the calibrated estimate of it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/report/document.h"
#include "assay/ask/verbs/ranges.h"
#include "assay/ask/verbs/request.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/kernel/measured/operation_estimate.h"
#include "assay/predict/roofline/roofline.h"

namespace assay::verbs::roofline_verb {

// What a roofline request says, checked: the work, the roof, the free size.

/// Everything the request says, checked.
struct RooflineQuery {
  hardware::Cluster cluster;
  std::vector<roofline::Operation> operations;  ///< empty for raw work
  Flops flops;
  Bytes bytes;
  roofline::TrafficCounting counting;
  roofline::Roof roof;
  std::string unit;  ///< "matrix unit, bf16"
  Dtype compute = Dtype::bf16;
  std::string measured;         ///< the way of measuring that the estimate is for
  bool measured_given = false;  ///< by the request, not by default
  hardware::AttentionKernel attention = hardware::AttentionKernel::automatic;
  std::optional<Variation> sweep;     ///< a letter and the sizes that it takes
  std::optional<std::string> letter;  ///< the size left free
  bool pad = false;
  std::vector<hardware::MemoryRoof> shown_roofs;  ///< in the picture, in addition to the level in question
  std::vector<std::string> notes;
};

Result<RooflineQuery> read_roofline_query(const Request& request, const Context& context);

// The calibrated estimate of a roofline request, and how the answer shows it.

/// Nothing where the chip has no calibration for the operations, the work does not come from main memory on one chip,
/// or the user has set an efficiency; it is an error then to name a way of measuring.
Result<std::optional<kernel::OperationEstimate>> calibrated_estimate(const Request& request, const Context& context,
                                                                     const RooflineQuery& query);

/// The range of a time with this estimate, and the interval that contains four of five measurements.
report::Members estimate_range(const kernel::OperationEstimate& estimate, const roofline::Bound<Plain>& bound,
                               const roofline::Operation& operation);
/// The calibration and the parts of the time.
report::Members estimate_details(const kernel::OperationEstimate& estimate, const roofline::Operation& operation);
/// The calibration and the way of measuring, in words.
/// What padding would gain where rows of a product are odd; empty otherwise.
std::string padding_note(const kernel::OperationEstimate& estimate, const roofline::Operation& operation);
std::string estimate_note(const kernel::OperationEstimate& estimate, const RooflineQuery& query);

}  // namespace assay::verbs::roofline_verb
