#include "assay/predict/clock/orders.h"

#include <algorithm>

namespace assay::clock {
namespace {

using Work = PipelineWork;

/// Reserves room for `each` operations of each microbatch.
StageOrder with_room(std::int64_t microbatches, std::int64_t each) {
  StageOrder order;
  order.reserve(static_cast<std::size_t>(each * microbatches));
  return order;
}

StageOrder gpipe_order(std::int64_t microbatches) {
  StageOrder order = with_room(microbatches, 2);
  for (const Work work : {Work::forward, Work::backward})
    for (std::int64_t k = 0; k < microbatches; ++k) order.push_back({work, 0, k});
  return order;
}

StageOrder one_f_one_b_order(std::int64_t microbatches, std::int64_t warm_up) {
  StageOrder order = with_room(microbatches, 2);
  std::int64_t forward = 0;
  const auto forward_to = [&](std::int64_t end) {
    for (; forward < std::min(end, microbatches); ++forward) order.push_back({Work::forward, 0, forward});
  };
  forward_to(warm_up);
  for (std::int64_t k = 0; k < microbatches; ++k) {
    forward_to(warm_up + k + 1);
    order.push_back({Work::backward, 0, k});
  }
  return order;
}

/// Microbatches go in groups of as many as there are stages; a group passes through all chunks before the next one
/// starts. The warm-up reaches past the round trip of the last chunk, so that no stage ever waits for its neighbours
/// in the steady state.
StageOrder interleaved_order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages, v = shape.chunks, passes = shape.microbatches * v;
  struct Next {
    Work work;
    std::int64_t group = 0, chunk = 0, member = 0;
  };
  StageOrder order(static_cast<std::size_t>(2 * passes));
  std::size_t written = 0;
  const auto write = [&](Next& next) {
    const std::int64_t taken = next.work == Work::forward ? next.chunk : v - 1 - next.chunk;
    order[written++] = {next.work, static_cast<std::int32_t>(taken), next.group * p + next.member, false};
    if (++next.member < p) return;
    next.member = 0;
    if (++next.chunk < v) return;
    next.chunk = 0;
    ++next.group;
  };
  Next forward{Work::forward}, backward{Work::backward};
  const std::int64_t warm_up = std::min(passes, 2 * (p - 1 - stage) + (v - 1) * p);
  for (std::int64_t k = 0; k < warm_up; ++k) write(forward);
  for (std::int64_t k = 0; k < passes; ++k) {
    if (warm_up + k < passes) write(forward);
    write(backward);
  }
  return order;
}

/// `ahead` forwards come before the first input gradient, and weight gradients stay `behind` input gradients back: what
/// is held is ahead + behind, the same on all stages. The late weight gradients of the last stages run while the last
/// input gradients travel to the first one.
StageOrder zero_bubble_order(std::int64_t microbatches, std::int64_t ahead, std::int64_t behind) {
  StageOrder order = with_room(microbatches, 3);
  const std::int64_t first = std::min(ahead, microbatches);
  for (std::int64_t k = 0; k < first; ++k) order.push_back({Work::forward, 0, k});
  for (std::int64_t k = 0; k < microbatches; ++k) {
    order.push_back({Work::backward_input, 0, k});
    if (k >= behind) order.push_back({Work::backward_weight, 0, k - behind});
    if (first + k < microbatches) order.push_back({Work::forward, 0, first + k});
  }
  for (std::int64_t k = std::max<std::int64_t>(0, microbatches - behind); k < microbatches; ++k)
    order.push_back({Work::backward_weight, 0, k});
  return order;
}

}  // namespace

StageOrder stage_order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages, m = shape.microbatches;
  switch (shape.schedule) {
    case PipelineSchedule::gpipe:
      return gpipe_order(m);
    case PipelineSchedule::one_f_one_b:
      return one_f_one_b_order(m, p - 1 - stage);
    case PipelineSchedule::interleaved:
      return shape.chunks == 1 ? one_f_one_b_order(m, p - 1 - stage) : interleaved_order(shape, stage);
    case PipelineSchedule::zb_h1:
      return zero_bubble_order(m, p - stage, stage);
    case PipelineSchedule::zb_h2:
      return zero_bubble_order(m, 2 * (p - stage) - 1, 2 * stage);
    case PipelineSchedule::zb_v:
      return zb_v_order(shape, stage);
    case PipelineSchedule::dualpipe:
      return dualpipe_order(shape, stage);
  }
  throw InternalError("unknown pipeline schedule");
}

std::int64_t most_in_flight(const StageOrder& order) {
  std::int64_t held = 0, most = 0;
  for (const PipelineOperation& operation : order) {
    if (operation.work == Work::forward) most = std::max(most, ++held);
    if (operation.work == Work::backward_weight || operation.work == Work::backward) --held;
  }
  return most;
}

}  // namespace assay::clock
