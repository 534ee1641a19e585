#include "assay/predict/clock/simulation.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace assay::clock {
namespace {

using Schedule = PipelineSchedule;
using Work = PipelineWork;

constexpr Schedule schedules[] = {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1,
                                  Schedule::zb_h2, Schedule::zb_v,        Schedule::dualpipe};

PipelineInput uniform(PipelineShape shape, double f, double b, double w) {
  return {.shape = shape, .times = {{Seconds(f), Seconds(b), Seconds(w)}}};
}

PipelineResult run(const PipelineInput& input) {
  Result<PipelineResult> result = simulate_pipeline(input);
  if (!result) throw std::runtime_error(result.error().what);
  return *std::move(result);
}

/// Checks a run against the definition of a step, knowing nothing of orders: what must exist, what must wait for what,
/// and that a stage does one thing at a time.
void expect_valid(const PipelineInput& input, const PipelineResult& result) {
  const PipelineShape& shape = input.shape;
  const bool dual = shape.schedule == Schedule::dualpipe;
  const std::int64_t p = shape.stages, parts = model_parts(shape);
  std::map<std::tuple<Work, std::int64_t, std::int64_t>, PipelineEvent> by_part;  // work, part, microbatch
  std::map<std::int64_t, Seconds> free;
  const auto direction = [&](std::int64_t microbatch) { return dual && microbatch >= shape.microbatches / 2 ? 1 : 0; };
  for (const PipelineEvent& event : result.events) {
    EXPECT_GE(event.start, free[event.stage]);
    EXPECT_GE(event.end, event.start);
    EXPECT_LE(event.end, result.makespan);
    free[event.stage] = event.end;
    if (event.work == Work::send || event.work == Work::at_end) continue;
    std::int64_t part = event.chunk * p + event.stage;
    if (shape.schedule == Schedule::zb_v && event.chunk == 1) part = 2 * p - 1 - event.stage;
    if (dual) part = event.chunk == 0 ? event.stage : p - 1 - event.stage;
    EXPECT_EQ(stage_of_part(shape, part, direction(event.microbatch)), event.stage);
    EXPECT_TRUE(by_part.emplace(std::tuple(event.work, part, event.microbatch), event).second);
  }
  const double hop = input.transfer.value();
  std::size_t seen = 0;
  for (std::int64_t k = 0; k < shape.microbatches; ++k)
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto find = [&](Work work, std::int64_t at) -> const PipelineEvent* {
        const auto found = by_part.find({work, at, k});
        return found == by_part.end() ? nullptr : &found->second;
      };
      const auto gradient = [&](std::int64_t at) {
        const PipelineEvent* whole = find(Work::backward, at);
        return whole ? whole : find(Work::backward_input, at);
      };
      const auto way = [&](std::int64_t a, std::int64_t b) {
        return stage_of_part(shape, a, direction(k)) == stage_of_part(shape, b, direction(k)) ? 0.0 : hop;
      };
      const PipelineEvent *forward = find(Work::forward, part), *backward = gradient(part);
      ASSERT_TRUE(forward && backward);
      seen += 2;
      EXPECT_GE(backward->start, forward->end);
      if (part > 0) {
        EXPECT_GE(forward->start.value(), find(Work::forward, part - 1)->end.value() + way(part - 1, part));
      }
      if (part + 1 < parts) {
        EXPECT_GE(backward->start.value(), gradient(part + 1)->end.value() + way(part + 1, part));
      }
      const PipelineEvent* weight = find(Work::backward_weight, part);
      EXPECT_EQ(weight != nullptr, backward->work == Work::backward_input);
      if (!weight) continue;
      EXPECT_GE(weight->start, backward->end);
      seen += 1;
    }
  EXPECT_EQ(seen, by_part.size());
}

TEST(Pipeline, NamesAreReadBackAndZbIsTheFirstOfItsKind) {
  for (const Schedule schedule : schedules) EXPECT_EQ(parse_schedule(schedule_name(schedule), "--schedule"), schedule);
  EXPECT_EQ(parse_schedule("zb", "--schedule"), Schedule::zb_h1);
  const auto unknown = parse_schedule("dualpip", "--schedule");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().where, "--schedule");
  EXPECT_NE(unknown.error().hint.find("dualpipe"), std::string::npos);
  EXPECT_NE(parse_schedule("none", "--schedule").error().hint.find("interleaved, zb, zb-h1"), std::string::npos);
}

// Two stages, two microbatches, F = 1, B + W = 2. Stage 0: F F . B B, stage 1: . F B F B after one hop of nothing.
//   stage 0: F0 0-1, F1 1-2, B0 4-6, B1 7-9      stage 1: F0 1-2, B0 2-4, F1 4-5, B1 5-7
TEST(Pipeline, TwoStagesByHand) {
  const PipelineResult result = run(uniform({Schedule::one_f_one_b, 2, 2, 1}, 1, 1, 1));
  EXPECT_EQ(result.makespan, 9_s);
  EXPECT_DOUBLE_EQ(result.bubble, 1.0 - 12.0 / 18.0);
  std::vector<double> starts, ends;
  for (const PipelineEvent& event : result.events) {
    starts.push_back(event.start.value());
    ends.push_back(event.end.value());
  }
  EXPECT_EQ(starts, (std::vector<double>{0, 1, 4, 7, 1, 2, 4, 5}));
  EXPECT_EQ(ends, (std::vector<double>{1, 2, 6, 9, 2, 4, 5, 7}));
  EXPECT_EQ(result.peak_microbatches, (std::vector<double>{2, 1}));
}

TEST(Pipeline, SmallStepsKeepEveryRuleOfTheDefinition) {
  for (const Schedule schedule : schedules)
    for (std::int64_t p = 1; p <= 6; ++p)
      for (std::int64_t m = 1; m <= 16; ++m)
        for (const std::int64_t v : {1, 2, 3}) {
          const PipelineShape shape{schedule, p, m, v};
          if (!is_possible(shape)) continue;
          PipelineInput input = uniform(shape, 1, 1.25, 0.75);
          input.transfer = Seconds(0.125);
          expect_valid(input, run(input));
          input.at_end = {Seconds(2)};
          for (std::int64_t part = 1; part < model_parts(shape); ++part)
            input.times.push_back({Seconds(1.0 + static_cast<double>(part % 3)), 1_s, Seconds(0.5)});
          expect_valid(input, run(input));
        }
}

TEST(Pipeline, OneStageHasNoBubbleAndNoTransfer) {
  for (const Schedule schedule : schedules) {
    if (schedule == Schedule::dualpipe) continue;
    PipelineInput input = uniform({schedule, 1, 6, 1}, 1, 2, 3);
    input.transfer = 100_s;
    const double chunks = schedule == Schedule::zb_v ? 2 : 1;
    EXPECT_DOUBLE_EQ(run(input).makespan.value(), 36.0 * chunks) << schedule_name(schedule);
    EXPECT_DOUBLE_EQ(run(input).bubble, 0.0);
  }
}

// Four stages, eight microbatches, F = B = W = 1, as in the figures of the zero-bubble paper: ZB-H1's bubble is a third
// of 1F1B's, ZB-H2's and ZB-V's stages are never idle between their first and last operation.
TEST(Pipeline, ZeroBubbleFigures) {
  const PipelineShape shape{Schedule::one_f_one_b, 4, 8, 1};
  const auto with = [&](Schedule schedule) {
    PipelineShape other = shape;
    other.schedule = schedule;
    const double chunk = schedule == Schedule::zb_v ? 0.5 : 1.0;
    return run(uniform(other, chunk, chunk, chunk));
  };
  EXPECT_EQ(with(Schedule::one_f_one_b).interval, Seconds(24 + 9));
  EXPECT_EQ(with(Schedule::zb_h1).interval, Seconds(24 + 3));
  EXPECT_EQ(with(Schedule::zb_h2).interval, 24_s);
  EXPECT_EQ(with(Schedule::zb_v).interval, 24_s);
  EXPECT_EQ(with(Schedule::zb_h1).peak_microbatches, std::vector<double>(4, 4));
  EXPECT_EQ(with(Schedule::zb_h2).peak_microbatches, std::vector<double>(4, 7));
  EXPECT_EQ(with(Schedule::zb_v).peak_microbatches, std::vector<double>(4, 4));
}

// Eight stages and ten microbatches from each end, F = B = W = 1: the bubble of (8/2 - 1)(F&B + B - 3W) is
// 3 (3 + 2 - 3) = 6, and each stage holds 8 + 1 microbatches.
TEST(Pipeline, DualpipeFigureHasTheBubbleOfItsReport) {
  const PipelineResult result = run(uniform({Schedule::dualpipe, 8, 20, 2}, 1, 1, 1));
  EXPECT_EQ(result.makespan, Seconds(60 + 6));
  EXPECT_EQ(result.peak_microbatches, std::vector<double>(8, 9));
}

TEST(Pipeline, WorkAtTheEndStartsWhenItsStageIsDone) {
  // Only the first stage reduces gradients: it is the last one to finish, so the whole of it shows.
  PipelineInput input = uniform({Schedule::one_f_one_b, 4, 8, 1}, 1, 1, 1);
  const Seconds before = run(input).makespan;
  input.at_end = {5_s, 0_s, 0_s, 0_s};
  EXPECT_EQ(run(input).makespan, before + 5_s);
  // The last stage is done three backwards, six seconds, earlier: five of them hide its reduction.
  input.at_end = {0_s, 0_s, 0_s, 5_s};
  EXPECT_EQ(run(input).makespan, before);
}

TEST(Pipeline, ATransferTakesTheSendersTime) {
  PipelineInput input = uniform({Schedule::gpipe, 2, 3, 1}, 1, 1, 1);
  input.transfer = Seconds(0.5);
  // Stage 0 sends after each of 3 forwards, stage 1 after each of 3 gradients: 3 x 1.5 + 1, then 3 x 2.5 + 2.
  EXPECT_DOUBLE_EQ(run(input).makespan.value(), 5.5 + 9.5);
}

TEST(Pipeline, FaultsNameTheRuleAndTheNearestLegalValues) {
  const auto refused = [](PipelineShape shape) {
    EXPECT_FALSE(is_possible(shape));
    const auto result = check_pipeline(shape);
    EXPECT_FALSE(result);
    return result ? Error{} : result.error();
  };
  EXPECT_EQ(refused({Schedule::interleaved, 4, 10, 2}).hint, "use 8 or 12 microbatches");
  EXPECT_EQ(refused({Schedule::interleaved, 4, 3, 2}).hint, "use 4 microbatches, or 1f1b");
  EXPECT_EQ(refused({Schedule::dualpipe, 5, 20, 1}).hint, "use 4 or 6 stages");
  EXPECT_EQ(refused({Schedule::dualpipe, 4, 6, 1}).hint, "use 8 microbatches");
  EXPECT_EQ(refused({Schedule::dualpipe, 4, 9, 1}).hint, "use 8 or 10 microbatches");
  EXPECT_EQ(refused({Schedule::gpipe, 4, 8, 2}).hint, "use --schedule interleaved");
  EXPECT_EQ(refused({Schedule::zb_v, 4, 8, 3}).where, "--interleave");
  refused({Schedule::gpipe, 0, 8, 1});
  refused({Schedule::gpipe, 4, std::int64_t{1} << 62, 1});
  EXPECT_TRUE(check_pipeline({Schedule::interleaved, 4, 10, 1}));  // one chunk is 1f1b

  PipelineInput input = uniform({Schedule::gpipe, 4, 8, 1}, 1, 1, 1);
  input.times.resize(3);
  EXPECT_FALSE(simulate_pipeline(input));
  input.times.assign(1, {Seconds(-1), 1_s, 1_s});
  EXPECT_FALSE(simulate_pipeline(input));
  input = uniform({Schedule::gpipe, 4, 8, 1}, 1, 1, 1);
  input.at_end.resize(2);
  EXPECT_FALSE(simulate_pipeline(input));
  EXPECT_FALSE(simulate_pipeline(uniform({Schedule::gpipe, 100'000, 100'000, 1}, 1, 1, 1)));
}

PipelineInput any_input() {
  const auto upto = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high + 1); };
  PipelineShape shape{*rc::gen::elementOf(std::vector<Schedule>(std::begin(schedules), std::end(schedules))),
                      upto(1, 6), upto(1, 20), 1};
  if (shape.schedule == Schedule::interleaved) {
    shape.chunks = upto(1, 3);
    shape.microbatches = shape.stages * upto(1, 4);
  }
  if (shape.schedule == Schedule::dualpipe) {
    shape.stages = 2 * upto(1, 3);
    shape.microbatches = 2 * (shape.stages + upto(0, 6));
  }
  const auto time = [&](std::int64_t most) { return Seconds(static_cast<double>(upto(0, most)) / 8.0); };  // sums exact
  PipelineInput input{.shape = shape};
  const std::int64_t parts = *rc::gen::arbitrary<bool>() ? 1 : model_parts(shape);
  for (std::int64_t i = 0; i < parts; ++i) input.times.push_back({time(40), time(40), time(40)});
  input.transfer = time(8);
  if (*rc::gen::arbitrary<bool>())
    for (std::int64_t i = 0; i < shape.stages; ++i) input.at_end.push_back(time(40));
  return input;
}

RC_GTEST_PROP(PipelineLaws, EveryRunKeepsTheRulesOfTheDefinition, ()) {
  PipelineInput input = any_input();
  expect_valid(input, run(input));
}

RC_GTEST_PROP(PipelineLaws, NothingThatTakesLongerMakesAStepShorter, ()) {
  PipelineInput input = any_input();
  const PipelineResult before = run(input);
  const Seconds more(static_cast<double>(*rc::gen::inRange(1, 20)) / 8.0);
  StageTimes& times = input.times[*rc::gen::inRange<std::size_t>(0, input.times.size())];
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      times.forward += more;
      break;
    case 1:
      times.backward_input += more;
      break;
    case 2:
      times.backward_weight += more;
      break;
    default:
      input.transfer += more;
  }
  RC_ASSERT(run(input).makespan >= before.makespan);
}

RC_GTEST_PROP(PipelineLaws, MoreMicrobatchesTakeLongerButIdleLess, ()) {
  PipelineInput input = any_input();
  const PipelineResult before = run(input);
  PipelineInput larger = input;
  larger.shape.microbatches += input.shape.schedule == Schedule::interleaved ? input.shape.stages
                               : input.shape.schedule == Schedule::dualpipe  ? 2
                                                                             : 1;
  RC_ASSERT(run(larger).makespan >= before.makespan);
  // The share falls for stages alike and free hops; with uneven ones it tends to the imbalance from either side.
  const bool fills_in_waves =
      input.shape.schedule == Schedule::zb_v && input.shape.microbatches < 2 * input.shape.stages - 1;
  if (fills_in_waves) return;
  input.times.resize(1);
  input.transfer = Seconds(0);
  input.at_end.clear();
  larger.times = input.times;
  larger.transfer = Seconds(0);
  larger.at_end.clear();
  RC_ASSERT(run(larger).bubble <= run(input).bubble + 1e-12);
}

RC_GTEST_PROP(PipelineLaws, BusyAndIdleTimeAreAllTheTime, ()) {
  const PipelineInput input = any_input();
  const PipelineResult result = run(input);
  Seconds compute, busy;
  for (const PipelineEvent& event : result.events) {
    if (event.work != Work::send) busy += event.end - event.start;
    if (event.work != Work::send && event.work != Work::at_end) compute += event.end - event.start;
  }
  RC_ASSERT(std::abs((compute - result.compute).value()) <= 1e-9);
  const double available = static_cast<double>(input.shape.stages) * result.makespan.value();
  if (available > 0) RC_ASSERT(std::abs(result.bubble - (1 - busy.value() / available)) <= 1e-9);
  RC_ASSERT(result.interval <= result.makespan);
  RC_ASSERT(simulate_pipeline(input, no_stage)->makespan == result.makespan);
  RC_ASSERT(simulate_pipeline(input, no_stage)->events.empty());
}

}  // namespace
}  // namespace assay::clock
