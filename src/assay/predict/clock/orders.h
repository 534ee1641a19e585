// The order of operations on each stage of a pipeline, by rules: no times, no tables.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/predict/clock/simulation.h"

namespace assay::clock {

struct PipelineOperation {
  PipelineWork work = PipelineWork::forward;
  std::int32_t chunk = 0;
  std::int64_t microbatch = 0;
  bool with_next = false;  ///< runs paired with the operation after it
};
using StageOrder = std::vector<PipelineOperation>;

/// The operations of one stage of a possible shape.
StageOrder stage_order(const PipelineShape& shape, std::int64_t stage);

/// Two chunks per stage, folded as a V or fed from both ends.
StageOrder zb_v_order(const PipelineShape& shape, std::int64_t stage);
StageOrder dualpipe_order(const PipelineShape& shape, std::int64_t stage);

/// The most microbatches in flight on a stage that runs this order, each chunk counted as 1.
std::int64_t most_in_flight(const StageOrder& order);

}  // namespace assay::clock
