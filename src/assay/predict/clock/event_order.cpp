#include "assay/predict/clock/event_order.h"

#include <algorithm>
#include <array>
#include <utility>

#include "assay/predict/clock/orders.h"

namespace assay::clock {
namespace {

using Work = PipelineWork;

/// Chunks of stages as nodes, numbered in the order in which microbatches pass: dualpipe's second direction follows the
/// first, with no connection between them.
class Nodes {
 public:
  explicit Nodes(const PipelineShape& shape)
      : stages_(static_cast<std::size_t>(shape.stages)),
        count_(stages_ * static_cast<std::size_t>(chunks_per_stage(shape))),
        is_dual_(shape.schedule == PipelineSchedule::dualpipe),
        is_v_(is_dual_ || shape.schedule == PipelineSchedule::zb_v) {}

  std::size_t count() const { return count_; }
  std::size_t stages() const { return stages_; }
  std::size_t at(std::size_t stage, std::int32_t chunk) const {
    if (is_v_) return chunk == 0 ? stage : 2 * stages_ - 1 - stage;
    return static_cast<std::size_t>(chunk) * stages_ + stage;
  }
  std::size_t stage_of(std::size_t node) const {
    return is_v_ && node >= stages_ ? 2 * stages_ - 1 - node : node % stages_;
  }
  std::size_t part_of(std::size_t node) const { return is_dual_ ? node % stages_ : node; }
  bool is_first(std::size_t node) const { return node == 0 || (is_dual_ && node == stages_); }
  bool is_last(std::size_t node) const { return node + 1 == count_ || (is_dual_ && node + 1 == stages_); }
  /// Whether the result of an operation leaves the stage.
  bool is_sent(std::size_t node, Work work) const {
    if (work == Work::backward_weight) return false;
    if (work == Work::forward) return !is_last(node) && stage_of(node + 1) != stage_of(node);
    return !is_first(node) && stage_of(node - 1) != stage_of(node);
  }

 private:
  std::size_t stages_, count_;
  bool is_dual_, is_v_;
};

// Durations by number: four kinds of work for each node, none at all, and for each stage the pairs by the chunk that
// runs forward, each followed by its second send.
constexpr std::array<Work, 4> kinds{Work::forward, Work::backward_input, Work::backward_weight, Work::backward};
std::size_t duration_of(std::size_t node, Work work) { return kinds.size() * node + static_cast<std::size_t>(work); }
std::size_t no_duration(const Nodes& nodes) { return kinds.size() * nodes.count(); }
std::size_t pair_duration(const Nodes& nodes, std::size_t stage, std::size_t forward) {
  return no_duration(nodes) + 1 + 2 * (2 * stage + forward);
}

class Writer {
 public:
  explicit Writer(const PipelineShape& shape)
      : nodes_(shape), microbatches_(static_cast<std::size_t>(shape.microbatches)), lanes_(nodes_.stages()) {
    for (std::size_t node = 0; node < nodes_.count(); ++node)
      ways_.push_back({nodes_.is_first(node) ? none : nodes_.stage_of(node - 1),
                       nodes_.is_last(node) ? none : nodes_.stage_of(node + 1)});
    forward_.assign(nodes_.count() * microbatches_, not_done);
    backward_ = forward_;
    std::size_t operations = 1;
    for (std::size_t stage = 0; stage < lanes_.size(); ++stage) {
      lanes_[stage].order = stage_order(shape, static_cast<std::int64_t>(stage));
      operations += lanes_[stage].order.size();
    }
    if (shape.schedule == PipelineSchedule::dualpipe) operations += operations / 2;  // most are pairs
    out_.shape = shape;
    out_.operations.reserve(operations);
    out_.operations.push_back({0, 0, static_cast<std::uint32_t>(no_duration(nodes_))});
  }

  EventOrder take() {
    for (std::size_t stage = lanes_.size(); stage-- > 0;) wake(stage);
    while (!waiting_.empty()) {
      const std::size_t stage = waiting_.back();
      waiting_.pop_back();
      lanes_[stage].is_waiting = false;
      advance(stage);
    }
    for (const Lane& lane : lanes_)
      if (lane.next != lane.order.size()) throw InternalError("a pipeline schedule deadlocks");
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t not_done = ~std::uint32_t{0};
  static constexpr std::size_t none = ~std::size_t{0};
  struct Lane {
    StageOrder order;
    std::size_t next = 0;
    bool is_waiting = false;
  };
  /// The stages before and behind a node.
  struct Ways {
    std::size_t before = none, behind = none;
  };
  std::uint32_t& done(std::vector<std::uint32_t>& all, std::size_t node, std::int64_t microbatch) {
    return all[node * microbatches_ + static_cast<std::size_t>(microbatch)];
  }

  void wake(std::size_t stage) {
    if (!std::exchange(lanes_[stage].is_waiting, true)) waiting_.push_back(stage);
  }

  /// The operation whose result is needed; 0: none.
  std::uint32_t input(std::size_t at, const PipelineOperation& operation) {
    const Ways& ways = ways_[at];
    if (operation.work == Work::forward) return ways.before == none ? 0 : done(forward_, at - 1, operation.microbatch);
    if (operation.work == Work::backward_weight) return done(backward_, at, operation.microbatch);
    return ways.behind == none ? done(forward_, at, operation.microbatch)
                               : done(backward_, at + 1, operation.microbatch);
  }

  void write(std::size_t stage, std::uint32_t after, std::size_t duration) {
    out_.operations.push_back({after, static_cast<std::uint32_t>(stage), static_cast<std::uint32_t>(duration)});
  }

  /// The operation written last has the result.
  void deliver(std::size_t stage, std::size_t at, const PipelineOperation& operation) {
    if (operation.work == Work::backward_weight) return;
    const bool is_forward = operation.work == Work::forward;
    out_.operations.back().is_back = !is_forward;
    done(is_forward ? forward_ : backward_, at, operation.microbatch) =
        static_cast<std::uint32_t>(out_.operations.size() - 1);
    const std::size_t to = is_forward ? ways_[at].behind : ways_[at].before;
    if (to != none && to != stage) wake(to);
  }

  void advance(std::size_t stage) {
    Lane& lane = lanes_[stage];
    while (lane.next < lane.order.size()) {
      const PipelineOperation& operation = lane.order[lane.next];
      const std::size_t at = nodes_.at(stage, operation.chunk);
      const std::uint32_t needed = input(at, operation);
      if (needed == not_done) return;
      if (!operation.with_next) {
        write(stage, needed, duration_of(at, operation.work));
        deliver(stage, at, operation);
        lane.next += 1;
        continue;
      }
      const PipelineOperation& partner = lane.order[lane.next + 1];
      const std::size_t other = nodes_.at(stage, partner.chunk);
      const std::uint32_t second = input(other, partner);
      if (second == not_done) return;
      const std::size_t pair = pair_duration(nodes_, stage, static_cast<std::size_t>(operation.chunk));
      write(stage, needed, no_duration(nodes_));
      write(stage, second, pair);
      deliver(stage, at, operation);
      write(stage, 0, pair + 1);
      deliver(stage, other, partner);
      lane.next += 2;
    }
  }

  Nodes nodes_;
  std::size_t microbatches_;
  std::vector<Ways> ways_;  ///< by node
  std::vector<Lane> lanes_;
  std::vector<std::size_t> waiting_;               ///< stages that may go on
  std::vector<std::uint32_t> forward_, backward_;  ///< the operations that have the results
  EventOrder out_;
};

}  // namespace

EventOrder event_order(const PipelineShape& shape) { return Writer(shape).take(); }

Seconds EventTimes::work_of(const PipelineShape& shape, std::size_t stage, const PipelineOperation& operation) const {
  return durations_[duration_of(Nodes(shape).at(stage, operation.chunk), operation.work)].work;
}

void EventTimes::fill(const PipelineInput& input) {
  const Nodes nodes(input.shape);
  const auto work_of = [&](std::size_t node, Work work) {
    const StageTimes& t = input.times[input.times.size() == 1 ? 0 : nodes.part_of(node)];
    return work == Work::forward           ? t.forward
           : work == Work::backward_input  ? t.backward_input
           : work == Work::backward_weight ? t.backward_weight
                                           : t.backward_input + t.backward_weight;
  };
  const auto send_of = [&](std::size_t node, Work work) {
    return nodes.is_sent(node, work) ? input.transfer : Seconds();
  };
  durations_.clear();
  for (std::size_t node = 0; node < nodes.count(); ++node)
    for (const Work work : kinds) durations_.push_back({work_of(node, work), send_of(node, work)});
  durations_.emplace_back();
  if (input.shape.schedule != PipelineSchedule::dualpipe) return;
  for (std::size_t stage = 0; stage < nodes.stages(); ++stage)
    for (const std::int32_t chunk : {0, 1}) {
      const std::size_t forward = nodes.at(stage, chunk), backward = nodes.at(stage, 1 - chunk);
      const Seconds alone = work_of(forward, Work::forward), mate = work_of(backward, Work::backward);
      durations_.push_back({alone + mate, send_of(forward, Work::forward)});
      durations_.push_back({Seconds(), send_of(backward, Work::backward)});
    }
}

OperationWork work_of(const PipelineShape& shape, std::uint32_t duration) {
  const Nodes nodes(shape);
  const std::size_t alone = no_duration(nodes);
  if (duration < alone) {
    const std::size_t node = duration / kinds.size();
    const Work work = kinds[duration % kinds.size()];
    return {nodes.part_of(node), work, nodes.is_sent(node, work), OperationWork::none};
  }
  if (duration == alone) return {};
  const std::size_t pair = (duration - alone - 1) / 2, stage = pair / 2;
  const auto chunk = static_cast<std::int32_t>(pair % 2);
  const std::size_t forward = nodes.at(stage, chunk), backward = nodes.at(stage, 1 - chunk);
  if (duration != pair_duration(nodes, stage, static_cast<std::size_t>(chunk)))
    return {OperationWork::none, Work::backward, nodes.is_sent(backward, Work::backward), OperationWork::none};
  return {nodes.part_of(forward), Work::forward, nodes.is_sent(forward, Work::forward), nodes.part_of(backward)};
}

}  // namespace assay::clock
