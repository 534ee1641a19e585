#include "assay/predict/clock/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/predict/clock/event_order.h"
#include "assay/predict/clock/orders.h"

namespace assay::clock {
namespace {

using Work = PipelineWork;

constexpr std::int64_t most_operations = std::int64_t{1} << 20;

Result<void> check_times(const PipelineInput& input) {
  const auto bad = [](Seconds time) { return !std::isfinite(time.value()) || time < Seconds(0.0); };
  const auto parts = static_cast<std::size_t>(model_parts(input.shape));
  if (input.times.size() != 1 && input.times.size() != parts)
    return fail("pipeline", fmt::format("{} stage times for {} parts of the model", input.times.size(), parts),
                "give one for all parts, or one per part");
  if (input.at_end.size() > 1 && input.at_end.size() != static_cast<std::size_t>(input.shape.stages))
    return fail("pipeline", fmt::format("{} end-of-step times for {} stages", input.at_end.size(), input.shape.stages),
                "give none, one for all stages, or one per stage");
  bool wrong = bad(input.transfer);
  for (const StageTimes& times : input.times)
    wrong = wrong || bad(times.forward) || bad(times.backward_input) || bad(times.backward_weight);
  for (const Seconds& time : input.at_end) wrong = wrong || bad(time);
  if (wrong) return fail("pipeline", "a time is negative or not finite", "times are seconds, zero or more");
  const double operations = 3.0 * static_cast<double>(input.shape.microbatches) *
                            static_cast<double>(input.shape.stages * chunks_per_stage(input.shape));
  if (operations > static_cast<double>(most_operations))
    return fail("pipeline",
                fmt::format("the step has up to {} operations, and at most {} are simulated", human_number(operations),
                            human_count(most_operations)),
                "use fewer microbatches or stages");
  return {};
}

/// A stage at work.
struct Lane {
  std::size_t stage = 0;
  bool has_events = false;
  StageOrder order;
  std::size_t next = 0;  ///< index into `order`
  int pair_step = 0;     ///< the next of the three operations of a pair
  Seconds compute;
  std::vector<PipelineEvent> events;

  void record(const PipelineOperation& operation, Work work, Seconds start, Seconds end, bool paired = false) {
    events.push_back(
        {static_cast<std::int64_t>(stage), operation.chunk, operation.microbatch, work, start, end, paired});
  }

  /// Records the next operation of the order, which took that long.
  void record_next(const PipelineShape& shape, const EventTimes& times, Seconds start, EventTimes::Duration taken) {
    const PipelineOperation& operation = order[next];
    const Seconds end = start + taken.work;
    const auto send = [&](const PipelineOperation& result) {
      if (taken.send > Seconds()) record(result, Work::send, end, end + taken.send);
    };
    if (!operation.with_next) {
      record(operation, operation.work, start, end);
      send(operation);
      next += 1;
      return;
    }
    const PipelineOperation& partner = order[next + 1];
    if (pair_step == 1) {
      const Seconds alone = times.work_of(shape, stage, operation), both = alone + times.work_of(shape, stage, partner);
      const Seconds middle = start + (both > Seconds() ? taken.work * (alone / both) : Seconds());
      record(operation, operation.work, start, middle, true);
      record(partner, partner.work, middle, end, true);
      send(operation);
    }
    if (pair_step == 2) {
      send(partner);
      next += 2;
    }
    pair_step = (pair_step + 1) % 3;
  }
};

PipelineResult result_of(const PipelineInput& input, const EventEnds& ends, std::vector<Lane>& lanes) {
  PipelineResult all;
  Seconds at_end;
  // Dualpipe's chunks are whole stages' worth of layers, of two copies of the model.
  const bool is_dual = input.shape.schedule == PipelineSchedule::dualpipe;
  const double share = is_dual ? 1.0 : 1.0 / static_cast<double>(chunks_per_stage(input.shape));
  for (std::size_t stage = 0; stage < lanes.size(); ++stage) {
    Lane& lane = lanes[stage];
    Seconds end = ends.free[stage];
    if (!input.at_end.empty()) {
      const Seconds last = input.at_end[input.at_end.size() == 1 ? 0 : stage];
      if (last > Seconds() && lane.has_events) lane.record({Work::at_end, 0, -1}, Work::at_end, end, end + last);
      end += last;
      at_end += last;
    }
    all.makespan = std::max(all.makespan, end);
    all.interval = std::max(all.interval, end - ends.first[stage]);
    all.compute += lane.compute;
    all.peak_microbatches.push_back(share * static_cast<double>(most_in_flight(lane.order)));
    all.events.insert(all.events.end(), lane.events.begin(), lane.events.end());
  }
  const Seconds available = static_cast<double>(input.shape.stages) * all.makespan;
  all.bubble = available > Seconds() ? std::max(0.0, 1.0 - (all.compute + at_end) / available) : 0.0;
  return all;
}

}  // namespace

Result<PipelineResult> simulate_pipeline(const PipelineInput& input, std::int64_t events_of) {
  ASSAY_CHECK(check_pipeline(input.shape));
  ASSAY_CHECK(check_times(input));
  const EventOrder order = event_order(input.shape);
  EventTimes times;
  times.fill(input);
  std::vector<Lane> lanes(static_cast<std::size_t>(input.shape.stages));
  for (std::size_t stage = 0; stage < lanes.size(); ++stage) {
    lanes[stage].stage = stage;
    lanes[stage].order = stage_order(input.shape, static_cast<std::int64_t>(stage));
    lanes[stage].has_events = events_of == every_stage || events_of == static_cast<std::int64_t>(stage);
    if (lanes[stage].has_events) lanes[stage].events.reserve(lanes[stage].order.size() + 1);
  }
  EventEnds ends;
  run(order, times, ends, [&](std::size_t i, Seconds start) {
    const EventTimes::Duration& taken = times[order.operations[i].duration];
    Lane& lane = lanes[order.operations[i].stage];
    if (lane.has_events) lane.record_next(input.shape, times, start, taken);
    lane.compute += taken.work;
  });
  return result_of(input, ends, lanes);
}

}  // namespace assay::clock
