// What a roofline request says, checked: the work, the roof, the free size.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/roofline/roofline.h"

namespace assay::verbs::roofline_verb {

/// A letter and the sizes it takes.
struct Sweep {
  std::string letter;
  std::vector<double> values;
};

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
  std::optional<Sweep> sweep;
  std::optional<std::string> letter;  ///< the size left free
  bool pad = false;
  std::vector<hardware::MemoryRoof> shown_roofs;  ///< in the picture, in addition to the level in question
  std::vector<std::string> notes;
};

Result<RooflineQuery> read_roofline_query(const Request& request, const Context& context);

}  // namespace assay::verbs::roofline_verb
