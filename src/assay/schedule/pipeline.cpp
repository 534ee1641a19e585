#include "assay/schedule/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "assay/base/text.h"
#include "assay/schedule/pipeline_orders.h"

namespace assay {
namespace {

using Work = PipelineWork;

constexpr std::int64_t most_operations = std::int64_t{16} << 20;

Result<void> check_times(const PipelineInput& input) {
  const auto bad = [](Seconds time) { return !std::isfinite(time.value()) || time < Seconds(0.0); };
  const auto parts = static_cast<std::size_t>(model_parts(input.shape));
  if (input.times.size() != 1 && input.times.size() != parts)
    return fail("pipeline", fmt::format("{} stage times for {} parts of the model", input.times.size(), parts),
                "give one for all or one for each");
  if (input.at_end.size() > 1 && input.at_end.size() != static_cast<std::size_t>(input.shape.stages))
    return fail("pipeline", fmt::format("{} times at the end for {} stages", input.at_end.size(), input.shape.stages),
                "give none, one for all or one for each");
  bool wrong = bad(input.transfer) || bad(input.pair_saving);
  for (const StageTimes& times : input.times)
    wrong = wrong || bad(times.forward) || bad(times.backward_input) || bad(times.backward_weight);
  for (const Seconds& time : input.at_end) wrong = wrong || bad(time);
  if (wrong) return fail("pipeline", "a time is negative or not finite", "times are seconds from zero up");
  const double operations = 3.0 * static_cast<double>(input.shape.microbatches) *
                            static_cast<double>(input.shape.stages * chunks_per_stage(input.shape));
  if (operations > static_cast<double>(most_operations))
    return fail("pipeline",
                fmt::format("the step has up to {} operations, at most {} are simulated", human_number(operations),
                            human_count(most_operations)),
                "use fewer microbatches or stages");
  return {};
}

/// The state of a run. A node is one chunk of one stage, numbered in the order in which microbatches pass: dualpipe's
/// second direction follows the first, with no way from one to the other.
class Simulation {
 public:
  explicit Simulation(const PipelineInput& input, bool with_events)
      : input_(input), shape_(input.shape), with_events_(with_events), lanes_(index(shape_.stages)) {
    const std::size_t nodes = index(shape_.stages * chunks_per_stage(shape_));
    forward_done_.assign(nodes * index(shape_.microbatches), not_done);
    backward_done_ = forward_done_;
    for (std::size_t stage = 0; stage < lanes_.size(); ++stage) {
      lanes_[stage].order = stage_order(shape_, static_cast<std::int64_t>(stage));
      if (with_events_) lanes_[stage].events.reserve(lanes_[stage].order.size() + 1);
    }
  }

  PipelineResult run() {
    std::vector<std::size_t> waiting;
    for (std::size_t stage = lanes_.size(); stage-- > 0;) waiting.push_back(stage);
    for (Lane& lane : lanes_) lane.queued = true;
    while (!waiting.empty()) {
      const std::size_t stage = waiting.back();
      waiting.pop_back();
      lanes_[stage].queued = false;
      woken_.clear();
      advance(stage);
      for (const std::size_t other : woken_)
        if (!std::exchange(lanes_[other].queued, true)) waiting.push_back(other);
    }
    for (const Lane& lane : lanes_)
      if (lane.next != lane.order.size()) throw InternalError("a pipeline schedule waits for itself");
    return result();
  }

 private:
  static constexpr double not_done = -1.0;  // times start at zero
  struct Lane {
    StageOrder order;
    std::size_t next = 0;
    bool queued = false;
    double free = 0.0, first = not_done, compute = 0.0;
    std::vector<PipelineEvent> events;
  };

  static std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }
  bool is_v() const { return shape_.schedule == PipelineSchedule::zb_v || is_dual(); }
  bool is_dual() const { return shape_.schedule == PipelineSchedule::dualpipe; }
  std::size_t node(std::size_t stage, std::int32_t chunk) const {
    const std::size_t p = lanes_.size();
    if (is_v()) return chunk == 0 ? stage : 2 * p - 1 - stage;
    return index(chunk) * p + stage;
  }
  std::size_t stage_of(std::size_t node) const {
    const std::size_t p = lanes_.size();
    return is_v() && node >= p ? 2 * p - 1 - node : node % p;
  }
  bool is_first(std::size_t node) const { return node == 0 || (is_dual() && node == lanes_.size()); }
  bool is_last(std::size_t node) const {
    const std::size_t p = lanes_.size();
    return node + 1 == p * index(chunks_per_stage(shape_)) || (is_dual() && node + 1 == p);
  }
  const StageTimes& times(std::size_t node) const {
    if (input_.times.size() == 1) return input_.times.front();
    return input_.times[is_dual() ? node % lanes_.size() : node];
  }
  double& done(std::vector<double>& all, std::size_t node, std::int64_t microbatch) {
    return all[node * index(shape_.microbatches) + index(microbatch)];
  }
  double hop(std::size_t from, std::size_t to) const {
    return stage_of(from) == stage_of(to) || input_.transfer_blocks ? 0.0 : input_.transfer.value();
  }

  /// When the inputs of an operation are on its stage, or not_done.
  double ready(std::size_t at, const PipelineOperation& operation) {
    const auto arrival = [&](std::vector<double>& all, std::size_t from) {
      const double sent = done(all, from, operation.microbatch);
      return sent == not_done ? not_done : sent + hop(from, at);
    };
    switch (operation.work) {
      case Work::forward:
        return is_first(at) ? 0.0 : arrival(forward_done_, at - 1);
      case Work::backward_weight:
        return done(backward_done_, at, operation.microbatch);
      default:
        return is_last(at) ? done(forward_done_, at, operation.microbatch) : arrival(backward_done_, at + 1);
    }
  }

  double duration(std::size_t at, Work work) const {
    const StageTimes& t = times(at);
    switch (work) {
      case Work::forward:
        return t.forward.value();
      case Work::backward_input:
        return t.backward_input.value();
      case Work::backward_weight:
        return t.backward_weight.value();
      default:
        return (t.backward_input + t.backward_weight).value();
    }
  }

  /// Where the result of an operation goes, if it leaves its node.
  bool has_receiver(std::size_t at, Work work) const {
    if (work == Work::backward_weight) return false;
    return work == Work::forward ? !is_last(at) : !is_first(at);
  }
  std::size_t receiver(std::size_t at, Work work) const { return work == Work::forward ? at + 1 : at - 1; }

  void record(std::size_t stage, const PipelineOperation& operation, Work work, double start, double end,
              bool paired = false) {
    if (!with_events_) return;
    lanes_[stage].events.push_back({static_cast<std::int64_t>(stage), operation.chunk, operation.microbatch, work,
                                    Seconds(start), Seconds(end), paired});
  }

  /// The result is complete at `lane.free`: passes it on, or first sends it when that keeps the stage from computing.
  void deliver(std::size_t stage, const PipelineOperation& operation) {
    const std::size_t at = node(stage, operation.chunk);
    Lane& lane = lanes_[stage];
    if (operation.work == Work::backward_weight) return;
    if (has_receiver(at, operation.work)) {
      const std::size_t to = stage_of(receiver(at, operation.work));
      if (to != stage) {
        woken_.push_back(to);
        if (input_.transfer_blocks && input_.transfer > Seconds(0.0)) {
          const double start = lane.free;
          lane.free += input_.transfer.value();
          record(stage, operation, Work::send, start, lane.free);
        }
      }
    }
    done(operation.work == Work::forward ? forward_done_ : backward_done_, at, operation.microbatch) = lane.free;
  }

  void advance(std::size_t stage) {
    Lane& lane = lanes_[stage];
    while (lane.next < lane.order.size()) {
      const PipelineOperation& operation = lane.order[lane.next];
      const std::size_t at = node(stage, operation.chunk);
      const double input = ready(at, operation);
      if (input == not_done) return;
      const double alone = duration(at, operation.work);
      if (!operation.with_next) {
        const double start = begin(lane, input);
        lane.free = start + alone;
        lane.compute += alone;
        record(stage, operation, operation.work, start, lane.free);
        deliver(stage, operation);
        lane.next += 1;
        continue;
      }
      const PipelineOperation& partner = lane.order[lane.next + 1];
      const std::size_t other = node(stage, partner.chunk);
      const double second = ready(other, partner);
      if (second == not_done) return;
      const double mate = duration(other, partner.work), both = alone + mate;
      const double taken = std::max({alone, mate, both - input_.pair_saving.value()});
      const double start = begin(lane, std::max(input, second));
      const double middle = start + (both > 0.0 ? taken * (alone / both) : 0.0);
      lane.free = start + taken;
      lane.compute += taken;
      record(stage, operation, operation.work, start, middle, true);
      record(stage, partner, partner.work, middle, lane.free, true);
      deliver(stage, operation);
      deliver(stage, partner);
      lane.next += 2;
    }
  }

  static double begin(Lane& lane, double input) {
    const double start = std::max(lane.free, input);
    if (lane.first == not_done) lane.first = start;
    return start;
  }

  PipelineResult result() {
    PipelineResult all;
    double makespan = 0.0, interval = 0.0, compute = 0.0, at_end = 0.0;
    // Dualpipe's chunks are whole stages' worth of layers, of two copies of the model.
    const double share = is_dual() ? 1.0 : 1.0 / static_cast<double>(chunks_per_stage(shape_));
    for (std::size_t stage = 0; stage < lanes_.size(); ++stage) {
      Lane& lane = lanes_[stage];
      if (!input_.at_end.empty()) {
        const double last = input_.at_end[input_.at_end.size() == 1 ? 0 : stage].value();
        if (last > 0.0) record(stage, {Work::at_end, 0, -1}, Work::at_end, lane.free, lane.free + last);
        lane.free += last;
        at_end += last;
      }
      makespan = std::max(makespan, lane.free);
      interval = std::max(interval, lane.free - lane.first);
      compute += lane.compute;
      all.peak_microbatches.push_back(share * static_cast<double>(most_in_flight(lane.order)));
      all.events.insert(all.events.end(), lane.events.begin(), lane.events.end());
    }
    all.makespan = Seconds(makespan);
    all.interval = Seconds(interval);
    all.compute = Seconds(compute);
    const double available = static_cast<double>(shape_.stages) * makespan;
    all.bubble = available > 0.0 ? std::max(0.0, 1.0 - (compute + at_end) / available) : 0.0;
    return all;
  }

  const PipelineInput& input_;
  const PipelineShape& shape_;
  bool with_events_;
  std::vector<Lane> lanes_;
  std::vector<double> forward_done_, backward_done_;
  std::vector<std::size_t> woken_;
};

}  // namespace

Result<PipelineResult> simulate_pipeline(const PipelineInput& input, bool with_events) {
  ASSAY_CHECK(check_pipeline(input.shape));
  ASSAY_CHECK(check_times(input));
  return Simulation(input, with_events).run();
}

}  // namespace assay
