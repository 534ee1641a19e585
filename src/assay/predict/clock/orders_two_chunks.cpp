// Orders of the schedules with two chunks per stage.
#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "assay/predict/clock/orders.h"

namespace assay::clock {
namespace {

using Work = PipelineWork;

/// Writes an order chunk by chunk: the next microbatch of each kind of work follows from how many were written.
class OrderWriter {
 public:
  /// Microbatches of chunk c are numbered from `first[c]` on.
  explicit OrderWriter(std::array<std::int64_t, 2> first) : forward_(first), backward_(first) {}

  void forward(std::size_t chunk, bool with_next = false) { write(Work::forward, chunk, forward_[chunk]++, with_next); }
  void backward(std::size_t chunk) { write(Work::backward, chunk, backward_[chunk]++); }
  /// The input gradient alone; its weight gradient is owed.
  void backward_input(std::size_t chunk) {
    owed_[chunk].push_back(backward_[chunk]);
    oldest_.push_back(chunk);
    write(Work::backward_input, chunk, backward_[chunk]++);
  }
  void backward_weight(std::size_t chunk) {
    oldest_.erase(std::find(oldest_.begin(), oldest_.end(), chunk));
    write(Work::backward_weight, chunk, owed_[chunk].front());
    owed_[chunk].pop_front();
  }
  void oldest_weight() { backward_weight(oldest_.front()); }
  bool owes(std::size_t chunk) const { return !owed_[chunk].empty(); }
  std::int64_t forwards(std::size_t chunk) const { return forward_[chunk]; }
  StageOrder take() { return std::move(order_); }

 private:
  void write(Work work, std::size_t chunk, std::int64_t microbatch, bool with_next = false) {
    order_.push_back({work, static_cast<std::int32_t>(chunk), microbatch, with_next});
  }
  std::array<std::int64_t, 2> forward_, backward_;
  std::array<std::deque<std::int64_t>, 2> owed_;
  std::deque<std::size_t> oldest_;
  StageOrder order_;
};

}  // namespace

/// The V turns on the last stage, so a microbatch is back on the first one after 2p forwards: until then the stage
/// fills up with its first chunk, then with both, and at p microbatches (2p chunks) every forward waits for the weight
/// gradient that makes room for it.
StageOrder zb_v_order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages;
  // The rule needs 2p-1 microbatches to fill the pipeline; with fewer, those that do not exist are left out.
  const std::int64_t m = std::max(shape.microbatches, 2 * p - 1);
  OrderWriter order({0, 0});
  for (std::int64_t k = 0; k < 2 * (p - stage) - 1; ++k) order.forward(0);
  for (std::int64_t k = 0; k < stage; ++k) {
    order.forward(1);
    order.forward(0);
  }
  const auto both_gradients = [&](std::size_t chunk) {
    order.backward_input(chunk);
    order.backward_weight(chunk);
  };
  for (std::int64_t k = 0; k < p - stage; ++k) {
    order.forward(1);
    both_gradients(1);
  }
  while (order.forwards(1) < m) {
    if (order.forwards(0) < m) order.forward(0);
    both_gradients(0);
    order.forward(1);
    both_gradients(1);
  }
  // Nothing is left to run forward: input gradients leave first, since stages upstream wait for them.
  for (std::int64_t k = 0; k < stage; ++k) {
    order.backward_input(0);
    order.backward_input(1);
  }
  for (std::int64_t k = 0; k < p - stage; ++k) both_gradients(0);
  for (const std::size_t chunk : {1U, 0U})
    while (order.owes(chunk)) order.backward_weight(chunk);
  StageOrder written = order.take();
  std::erase_if(written,
                [&](const PipelineOperation& operation) { return operation.microbatch >= shape.microbatches; });
  return written;
}

/// Both halves of the pipeline mirror each other: `near` is the chunk whose microbatches enter at the closer end. The
/// steady state runs a forward of one direction together with a backward of the other.
StageOrder dualpipe_order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages, half = p / 2, per_direction = shape.microbatches / 2;
  const std::int64_t depth = std::min(stage, p - 1 - stage);  // stages between this one and its end
  const std::int64_t inner = half - 1 - depth;                // stages between this one and the middle
  const std::size_t near = stage < half ? 0 : 1, far = 1 - near;
  OrderWriter order({0, per_direction});
  const auto pair = [&](std::size_t forward, std::size_t backward) {
    order.forward(forward, true);
    order.backward(backward);
  };
  for (std::int64_t k = 0; k < 2 * inner; ++k) order.forward(near);
  for (std::int64_t k = 0; k <= depth; ++k) {
    order.forward(near);
    order.forward(far);
  }
  for (std::int64_t k = 0; k < inner; ++k) {  // the far direction turns: its gradients come back, its forwards go on
    order.backward_input(far);
    order.oldest_weight();
    order.forward(far);
  }
  for (std::int64_t k = 0; k < per_direction - p + depth + 1; ++k) {
    if (k == 0 && inner == 0) {  // the middle has just sent the forward that this gradient answers: nothing to pair yet
      order.forward(near);
      order.backward(far);
    } else {
      pair(near, far);
    }
    pair(far, near);
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    order.backward(far);
    pair(far, near);
  }
  // Forwards are over. From the middle of the remaining gradients on, weight gradients are deferred to fill the waits.
  for (std::int64_t k = 0; k < 2 * (depth + 1); ++k) {
    const std::size_t chunk = k % 2 == 0 ? far : near;
    if (k <= depth)
      order.backward(chunk);
    else
      order.backward_input(chunk);
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    order.oldest_weight();
    order.backward_input(near);
  }
  for (std::int64_t k = 0; k <= depth; ++k) order.oldest_weight();
  return order.take();
}

}  // namespace assay::clock
