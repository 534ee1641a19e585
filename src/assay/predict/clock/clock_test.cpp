#include "assay/predict/clock/clock.h"

#include <gtest/gtest.h>

#include <random>

namespace assay::clock {
namespace {

/// Any shape, with parts that differ a little, a lot, or in their ends.
class RandomPipelines {
 public:
  PipelineInput next() {
    using enum PipelineSchedule;
    constexpr PipelineSchedule schedules[] = {gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, zb_v, dualpipe};
    PipelineInput input;
    PipelineShape& shape = input.shape;
    do {
      shape.schedule = schedules[whole(0, 6)];
      shape.stages = whole(2, 9);
      shape.chunks = shape.schedule == interleaved ? whole(1, 5) : 1;
      shape.microbatches = whole(0, 3) == 0 ? whole(1, 400) : whole(1, 40);
      if (shape.chunks > 1) shape.microbatches = shape.stages * whole(1, shape.microbatches > 40 ? 60 : 6);
    } while (!is_possible(shape));
    const double spread = any(0.0, 1.0) < 0.5 ? 0.05 : 1.0;
    const StageTimes usual{Seconds(any(0.5, 2.0)), Seconds(any(0.5, 2.0)), Seconds(any(0.2, 2.0))};
    for (std::int64_t part = 0; part < model_parts(shape); ++part) {
      const double longer = any(1.0 - spread, 1.0 + spread);
      input.times.push_back(
          {longer * usual.forward, longer * usual.backward_input, any(0.9, 1.1) * usual.backward_weight});
    }
    if (whole(0, 1) == 0) input.times.back() = {any(0.5, 5.0) * usual.forward, 2.0 * usual.backward_input, 1_s};
    input.transfer = Seconds(whole(0, 1) == 0 ? any(0.0, 0.5) : 0.0);
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) input.at_end.emplace_back(any(0.0, 5.0));
    return input;
  }

 private:
  double any(double from, double to) { return std::uniform_real_distribution<double>(from, to)(random_); }
  std::int64_t whole(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
  }
  std::mt19937 random_{7};
};

TEST(PipelineClock, TakesAsLongAsTheEvents) {
  RandomPipelines pipelines;
  PipelineClock clock;
  for (int i = 0; i < 4000; ++i) {
    const PipelineInput input = pipelines.next();
    const auto events = simulate_pipeline(input, no_stage);
    ASSERT_TRUE(events);
    EXPECT_NEAR(clock.interval(input).value(), events->interval.value(), 1e-11 * events->interval.value())
        << schedule_name(input.shape.schedule) << " " << input.shape.stages << " stages " << input.shape.chunks
        << " chunks " << input.shape.microbatches << " microbatches";
  }
}

// A first stage that is hardly slower than the last one: what is in flight between them grows for a long time.
TEST(PipelineClock, PlaysAllWhereStagesDoNotSettle) {
  for (const double ahead : {1.0, 1.0001, 1.01, 1.1}) {
    PipelineInput input;
    input.shape = {PipelineSchedule::one_f_one_b, 4, 3000, 1};
    input.times = {{Seconds(ahead), 1_s, 1_s}, {0.5_s, 0.5_s, 0.5_s}, {0.5_s, 0.5_s, 0.5_s}, {1_s, 1_s, 1_s}};
    PipelineClock clock;
    const double events = simulate_pipeline(input, no_stage)->interval.value();
    EXPECT_NEAR(clock.interval(input).value(), events, 1e-11 * events);
  }
}

}  // namespace
}  // namespace assay::clock
