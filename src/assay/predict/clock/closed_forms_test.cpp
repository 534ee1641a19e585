#include "assay/predict/clock/closed_forms.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace assay::clock {
namespace {

using Schedule = PipelineSchedule;

/// Relative, as sums of many terms round differently.
bool equal(Seconds a, Seconds b) { return std::abs((a - b).value()) <= 1e-12 * std::max(1.0, std::abs(b.value())); }

PipelineInput uniform(const PipelineShape& shape, const StageTimes& whole) {
  const double parts = static_cast<double>(model_parts(shape)) / static_cast<double>(shape.stages);
  return {.shape = shape,
          .times = {{whole.forward / parts, whole.backward_input / parts, whole.backward_weight / parts}}};
}

PipelineResult quick_run(const PipelineInput& input) {
  Result<PipelineResult> result = simulate_pipeline(input, no_stage);
  if (!result) throw std::runtime_error(result.error().what);
  return *std::move(result);
}

template <class Visit>
void for_all_shapes(Visit visit) {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1,
                                  Schedule::zb_h2, Schedule::zb_v, Schedule::dualpipe})
    for (std::int64_t p = 1; p <= 7; ++p)
      for (std::int64_t m = 1; m <= 24; ++m)
        for (std::int64_t v = 1; v <= 4; ++v)
          if (is_possible({schedule, p, m, v})) visit(PipelineShape{schedule, p, m, v});
}

TEST(PipelineForms, PeaksAreThoseOfTheOrders) {
  for_all_shapes([](const PipelineShape& shape) {
    const PipelineResult result = quick_run(uniform(shape, {1_s, 1_s, 1_s}));
    for (std::int64_t stage = 0; stage < shape.stages; ++stage)
      EXPECT_DOUBLE_EQ(peak_microbatches(shape, stage), result.peak_microbatches[static_cast<std::size_t>(stage)])
          << schedule_name(shape.schedule) << " p " << shape.stages << " m " << shape.microbatches << " v "
          << shape.chunks;
  });
}

// Why a search may bound a step from below by passes that leave something out.
TEST(PipelineForms, IntervalsDoNotShrinkWhenAPassTakesLonger) {
  const Seconds longer = 0.3_s;
  for_all_shapes([&](const PipelineShape& shape) {
    for (const double f : {0.2, 1.0, 3.0})
      for (const double b : {0.2, 1.0, 3.0})
        for (const double w : {0.2, 1.0, 3.0}) {
          const StageTimes stage{Seconds(f), Seconds(b), Seconds(w)};
          const Seconds before = interval_of_equal_stages(shape, stage);
          for (Seconds StageTimes::*pass : {&StageTimes::forward, &StageTimes::backward_input}) {
            StageTimes slower = stage;
            slower.*pass += longer;
            EXPECT_GE(interval_of_equal_stages(shape, slower).value(), before.value() - 1e-12)
                << schedule_name(shape.schedule) << " p " << shape.stages << " m " << shape.microbatches << " f " << f
                << " b " << b << " w " << w;
          }
        }
  });
}

TEST(PipelineForms, EqualTheSimulation) {
  for_all_shapes([&](const PipelineShape& shape) {
    for (const StageTimes& whole : {StageTimes{1_s, 1_s, 1_s},
                                    {1_s, 1.25_s, 0.75_s},
                                    {2_s, 1_s, 1.5_s},
                                    {0.75_s, 1.5_s, 2_s},
                                    {1_s, 3_s, 0.5_s},
                                    {1_s, 0.5_s, 3_s}}) {
      const Seconds form = interval_of_equal_stages(shape, whole),
                    simulated = quick_run(uniform(shape, whole)).interval;
      EXPECT_TRUE(equal(form, simulated))
          << schedule_name(shape.schedule) << " p " << shape.stages << " m " << shape.microbatches << " v "
          << shape.chunks << ": form " << form.value() << ", simulated " << simulated.value();
    }
  });
}

// Whatever stages differ in, and however few microbatches there are: no path of the bound is longer than the events.
TEST(PipelineForms, NoIntervalIsBelowTheBoundOfAStage) {
  std::mt19937 random(3);
  const auto any = [&](double from, double to) { return std::uniform_real_distribution<double>(from, to)(random); };
  for_all_shapes([&](const PipelineShape& shape) {
    if (shape.stages == 1) return;
    for (int i = 0; i < 6; ++i) {
      PipelineInput input{.shape = shape};
      const double spread = i % 2 == 0 ? 0.1 : 1.0;
      const StageTimes usual{Seconds(any(0.5, 2)), Seconds(any(0.5, 2)), Seconds(any(0.2, 2))};
      for (std::int64_t part = 0; part < model_parts(shape); ++part)
        input.times.push_back({any(1 - spread, 1 + spread) * usual.forward,
                               any(1 - spread, 1 + spread) * usual.backward_input,
                               any(1 - spread, 1 + spread) * usual.backward_weight});
      if (i >= 4) input.times.back().forward = input.times.back().backward_input = Seconds(any(0, 8));
      for (std::int64_t stage = 0; stage < shape.stages; ++stage) input.at_end.emplace_back(any(0, 3));
      input.transfer = Seconds(i % 3 == 0 ? 0.0 : any(0, 0.5));
      const double interval = quick_run(input).interval.value();
      EXPECT_LE(least_interval(input).value(), interval * (1 + 1e-12));
      for (std::int64_t stage = 0; stage < shape.stages; ++stage)
        EXPECT_LE(least_interval(shape, stage_among(input, stage)).value(), interval * (1 + 1e-12))
            << schedule_name(shape.schedule) << " p " << shape.stages << " m " << shape.microbatches << " v "
            << shape.chunks << " stage " << stage;
    }
  });
}

// Where only the last stage is slower, as that with the head, or all are alike.
TEST(PipelineForms, TheBoundOfASlowLastStageIsTheInterval) {
  const StageTimes usual{1_s, 1.125_s, 0.875_s};
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1})
    for (const std::int64_t p : {2, 4, 8})
      for (const double longer : {1.0, 1.25, 2.0}) {
        if (longer > 1.0 && schedule == Schedule::zb_h1) continue;
        const PipelineShape shape{schedule, p, 3 * p, schedule == Schedule::interleaved ? 3 : 1};
        PipelineInput input{.shape = shape};
        for (std::int64_t part = 0; part < model_parts(shape); ++part) {
          const double times = stage_of_part(shape, part) == p - 1 ? longer : 1.0;
          input.times.push_back({times * usual.forward, times * usual.backward_input, times * usual.backward_weight});
        }
        input.at_end.assign(static_cast<std::size_t>(p), 1_s);
        const double interval = quick_run(input).interval.value();
        EXPECT_NEAR(least_interval(shape, stage_among(input, p - 1)).value(), interval, 1e-12 * interval)
            << schedule_name(schedule) << " p " << p << " longer " << longer;
      }
}

TEST(PipelineForms, ReduceToThePublishedBubbles) {
  const double f = 1, b = 1.125, w = 0.875;  // weight gradients are the cheapest, as in practice
  const StageTimes whole{Seconds(f), Seconds(b), Seconds(w)};
  for (const double p : {2.0, 4.0, 8.0, 16.0}) {
    const double m = 4 * p, work = m * (f + b + w);
    const auto form = [&](Schedule schedule, std::int64_t chunks = 1, StageTimes times = {}) {
      if (times.forward == 0_s) times = whole;
      return interval_of_equal_stages({schedule, static_cast<std::int64_t>(p), static_cast<std::int64_t>(m), chunks},
                                      times);
    };
    EXPECT_DOUBLE_EQ(form(Schedule::gpipe).value(), work + (p - 1) * (f + b + w));
    EXPECT_DOUBLE_EQ(form(Schedule::one_f_one_b).value(), work + (p - 1) * (f + b + w));
    EXPECT_DOUBLE_EQ(form(Schedule::interleaved, 4).value(), work + (p - 1) / 4 * (f + b + w));
    EXPECT_DOUBLE_EQ(form(Schedule::zb_h1).value(), work + (p - 1) * (f + b - w));
    EXPECT_DOUBLE_EQ(form(Schedule::zb_h2).value(), work + (p - 1) * (f + b - 2 * w));
    EXPECT_DOUBLE_EQ(form(Schedule::zb_v, 1, {1_s, 1_s, 1_s}).value(), 3 * m);
    // (p/2 - 1)(F&B + B - 3W), B being both gradients: printed for forwards as long as input gradients.
    EXPECT_DOUBLE_EQ(form(Schedule::dualpipe, 1, {1_s, 1_s, Seconds(w)}).value(),
                     m * (2 + w) + (p / 2 - 1) * ((2 + w) + (1 + w) - 3 * w));
  }
}

StageTimes any_times() {
  const auto time = [] { return Seconds(static_cast<double>(*rc::gen::inRange(1, 100)) / 16.0); };
  return {time(), time(), time()};
}

PipelineShape any_shape() {
  const auto upto = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high + 1); };
  PipelineShape shape{*rc::gen::element(Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1,
                                        Schedule::zb_h2, Schedule::zb_v, Schedule::dualpipe),
                      upto(1, 10), upto(1, 40), 1};
  if (shape.schedule == Schedule::interleaved) {
    shape.chunks = upto(1, 5);
    shape.microbatches = shape.stages * upto(1, 5);
  }
  if (shape.schedule == Schedule::dualpipe) {
    shape.stages = 2 * upto(1, 5);
    shape.microbatches = 2 * (shape.stages + upto(0, 20));
  }
  return shape;
}

RC_GTEST_PROP(PipelineFormLaws, FormsOfEqualStagesEqualTheSimulation, ()) {
  const PipelineShape shape = any_shape();
  const StageTimes whole = any_times();
  const Seconds form = interval_of_equal_stages(shape, whole), simulated = quick_run(uniform(shape, whole)).interval;
  RC_LOG() << schedule_name(shape.schedule) << " p " << shape.stages << " m " << shape.microbatches << " v "
           << shape.chunks << " F " << whole.forward.value() << " B " << whole.backward_input.value() << " W "
           << whole.backward_weight.value() << ": form " << form.value() << ", simulated " << simulated.value() << "\n";
  RC_ASSERT(equal(form, simulated));
}

/// The slowest of each kind of work, as times of a whole stage. The closed form of its interval is never below
/// the simulated one with the stages as they are.
StageTimes slowest_stage(const PipelineInput& input) {
  StageTimes slowest;
  for (const StageTimes& times : input.times) {
    slowest.forward = std::max(slowest.forward, times.forward);
    slowest.backward_input = std::max(slowest.backward_input, times.backward_input);
    slowest.backward_weight = std::max(slowest.backward_weight, times.backward_weight);
  }
  const double parts = static_cast<double>(model_parts(input.shape)) / static_cast<double>(input.shape.stages);
  return {parts * slowest.forward, parts * slowest.backward_input, parts * slowest.backward_weight};
}

/// A makespan that no schedule of this kind undercuts, for any times: the work of each stage, and the way of the first
/// microbatch to it and of the last gradient back. Exact for gpipe and 1f1b with stages alike and no hops.
/// The input must be one that simulate_pipeline accepts.
Seconds lower_bound_of(const PipelineInput& input) {
  const PipelineShape& shape = input.shape;
  const bool dual = shape.schedule == PipelineSchedule::dualpipe;
  const bool split = splits_backward(shape.schedule);
  const auto times = [&](std::int64_t part) -> const StageTimes& {
    return input.times[input.times.size() == 1 ? 0 : static_cast<std::size_t>(part)];
  };
  const std::int64_t p = shape.stages;
  const auto m = static_cast<double>(shape.microbatches);
  Seconds bound, down, back;  // the way from the first part to this stage, and of a gradient back to it
  for (std::int64_t stage = 0; stage < p; ++stage) {
    Seconds forward, input_gradient, weight_gradient;
    const auto add = [&](const StageTimes& t, double share) {
      forward += share * t.forward;
      input_gradient += share * t.backward_input;
      weight_gradient += share * t.backward_weight;
    };
    if (dual) {
      add(times(stage), m / 2);
      add(times(p - 1 - stage), m / 2);
    } else {
      const bool turns_back = shape.schedule == PipelineSchedule::zb_v;
      for (std::int64_t chunk = 0; chunk < chunks_per_stage(shape); ++chunk)
        add(times(turns_back && chunk == 1 ? 2 * p - 1 - stage : chunk * p + stage), m);
    }
    const Seconds at_end =
        input.at_end.empty() ? Seconds() : input.at_end[input.at_end.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
    const Seconds work = forward + input_gradient + weight_gradient;
    bound = std::max(bound, down + work + at_end);
    // The gradient of the last microbatch goes on from here to the first stage; weight gradients may come after it.
    if (!dual) bound = std::max(bound, down + back + forward + input_gradient + (split ? Seconds() : weight_gradient));
    if (!dual) {
      down += times(stage).forward + input.transfer;
      back += times(stage).backward_input + (split ? Seconds() : times(stage).backward_weight) + input.transfer;
    }
  }
  return bound;
}

RC_GTEST_PROP(PipelineFormLaws, UnevenStagesLieBetweenTheBoundAndTheSlowestStage, ()) {
  PipelineInput input{.shape = any_shape()};
  const std::int64_t parts = model_parts(input.shape);
  for (std::int64_t i = 0; i < parts; ++i) input.times.push_back(any_times());
  input.transfer = Seconds(static_cast<double>(*rc::gen::inRange(0, 16)) / 16.0);
  const Seconds simulated = quick_run(input).makespan;
  RC_ASSERT(lower_bound_of(input).value() <= simulated.value() * (1 + 1e-12));
  input.at_end.assign(static_cast<std::size_t>(input.shape.stages), Seconds(3));
  RC_ASSERT(lower_bound_of(input).value() <= quick_run(input).makespan.value() * (1 + 1e-12));
  input.at_end.clear();
  input.transfer = Seconds();
  RC_ASSERT(quick_run(input).interval.value() <=
            interval_of_equal_stages(input.shape, slowest_stage(input)).value() * (1 + 1e-12));
}

TEST(PipelineForms, TheBoundIsExactForPlainSchedulesWithStagesAlike) {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b})
    for (std::int64_t p = 1; p <= 6; ++p)
      for (std::int64_t m = 1; m <= 12; ++m) {
        const PipelineInput input = uniform({schedule, p, m, 1}, {1_s, 1.25_s, 0.5_s});
        EXPECT_TRUE(equal(lower_bound_of(input), quick_run(input).makespan)) << p << " " << m;
      }
}

}  // namespace
}  // namespace assay::clock
