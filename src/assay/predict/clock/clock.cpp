#include "assay/predict/clock/clock.h"

#include <algorithm>

#include "assay/predict/clock/gpipe.h"

namespace assay::clock {
namespace {

constexpr double most_clock_operations = 16.0 * 1024.0 * 1024.0;

/// Microbatches after which an order repeats itself; no result is waited for longer.
std::int64_t period_of(const PipelineShape& shape) {
  return shape.schedule == PipelineSchedule::interleaved && shape.chunks > 1 ? shape.stages : 4;
}

/// The fewest microbatches with two whole periods between the first weight gradients and the last forwards.
std::int64_t with_periods(const PipelineShape& shape) { return 4 * shape.stages + 2 * period_of(shape); }

Seconds interval_of_gpipe(const PipelineInput& input) {
  const auto times = [&](std::size_t stage) { return input.times[input.times.size() == 1 ? 0 : stage]; };
  return gpipe_interval(
      Plain{}, input.shape, input.transfer, [&](std::size_t stage) { return times(stage).forward; },
      [&](std::size_t stage) { return times(stage).backward_input + times(stage).backward_weight; },
      [&](std::size_t stage) {
        return input.at_end.empty() ? Seconds() : input.at_end[input.at_end.size() == 1 ? 0 : stage];
      });
}

}  // namespace

Seconds PipelineClock::interval(const PipelineInput& input) {
  const Sample of = sample(input);
  return of.interval + of.left_out * of.period;
}

PipelineClock::Sample PipelineClock::sample(const PipelineInput& input) {
  if (input.shape.schedule == PipelineSchedule::gpipe) return {input.shape, interval_of_gpipe(input), 0.0, {}, {}};
  const std::int64_t all = input.shape.microbatches, period = period_of(input.shape);
  const double each = 3.0 * static_cast<double>(input.shape.stages * chunks_per_stage(input.shape));
  times_.fill(input);
  PipelineShape shape = input.shape;
  for (std::int64_t tried = with_periods(shape) + 2 * shape.stages;; tried *= 3) {
    const bool is_all = 5 * tried >= 4 * all, is_last = each * 3.0 * static_cast<double>(tried) > most_clock_operations;
    const std::int64_t left_out = is_all ? 0 : (all - tried) / period;
    shape.microbatches = all - left_out * period;
    const Played played = play(input, score_of(shape));
    if (left_out == 0 || played.is_settled || is_last)
      return {shape, played.interval, static_cast<double>(left_out), played.period, played.echo};
  }
}

const PipelineClock::Score& PipelineClock::score_of(const PipelineShape& shape) {
  const auto [known, is_new] =
      known_.try_emplace({static_cast<std::int64_t>(shape.schedule), shape.stages, shape.microbatches, shape.chunks});
  Score& score = known->second;
  if (!is_new) return score;
  score.order = event_order(shape);
  if (shape.microbatches < with_periods(shape)) return score;
  const std::int64_t each = shape.schedule == PipelineSchedule::dualpipe ? 1 : chunks_per_stage(shape);
  const std::int64_t end = each * (shape.microbatches - 2 * shape.stages), period = each * period_of(shape);
  std::vector<std::vector<std::uint32_t>> lanes(static_cast<std::size_t>(shape.stages));
  const std::vector<EventOrder::Operation>& operations = score.order.operations;
  for (std::uint32_t i = 1; i < operations.size(); ++i) lanes[operations[i].stage].push_back(i);
  for (const std::vector<std::uint32_t>& lane : lanes) {
    std::int64_t back = 0;
    std::array<std::size_t, 3> cuts{};  // where the last two periods begin, and the last one ends
    for (std::size_t i = 0; i < lane.size(); ++i)
      if (operations[lane[i]].is_back) {
        ++back;
        if (const std::int64_t left = end - back; left % period == 0 && left >= 0 && left <= 2 * period)
          cuts[static_cast<std::size_t>(2 - left / period)] = i + 1;
      }
    const std::size_t count = cuts[2] - cuts[1];
    for (std::size_t i = cuts[1]; i < cuts[2]; ++i) {
      if (operations[lane[i - count]].duration != operations[lane[i]].duration)
        throw InternalError("a pipeline schedule is not periodic");
      score.echoes.emplace_back(lane[i - count], lane[i]);
    }
  }
  return score;
}

PipelineClock::Played PipelineClock::play(const PipelineInput& input, const Score& score) {
  run(score.order, times_, ends_, [](std::size_t, Seconds) {});
  Played played;
  Seconds longest;
  for (std::size_t stage = 0; stage < ends_.free.size(); ++stage) {
    const Seconds at_end = input.at_end.empty() ? Seconds() : input.at_end[input.at_end.size() == 1 ? 0 : stage];
    longest = std::max(longest, ends_.free[stage]);
    played.interval = std::max(played.interval, ends_.free[stage] + at_end - ends_.first[stage]);
  }
  if (score.echoes.empty()) return played;
  constexpr double rounding = 1e-13;
  Seconds least = longest;
  for (const Echo& echo : score.echoes) {
    const Seconds period = ends_.done[echo.second] - ends_.done[echo.first];
    least = std::min(least, period);
    if (!(played.period < period)) continue;
    played.period = period;
    played.echo = echo;
  }
  played.is_settled = played.period - least <= rounding * longest;
  return played;
}

}  // namespace assay::clock
