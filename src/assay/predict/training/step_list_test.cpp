#include "assay/predict/training/step_list.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "assay/testing/sampling.h"
#include "assay/testing/training_case.h"

namespace assay::training {
namespace {

using testing::TrainingCase;

/// The priced pass of a block; negative for updates.
double priced_pass(const MicrobatchCost& microbatch, const program::Block& block) {
  if (block.phase == program::Phase::update || block.is_shared) return -1.0;
  const auto& passes = block.kind >= 0             ? microbatch.layers[static_cast<std::size_t>(block.kind)]
                       : block.name == "embedding" ? microbatch.embedding
                                                   : microbatch.head;
  const PassTime& pass = passes[block.phase == program::Phase::forward ? 0 : 1];
  return (pass.chain() + pass.exposed).value();
}

struct RandomStep {
  TrainingCase c;
  Strategy strategy;
};

RandomStep random_step(std::mt19937& draw) {
  const auto any = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  const std::int64_t experts = any(3) == 0 ? 8 : 0;
  RandomStep out{TrainingCase(any(2) == 0 ? "h100-sxm:64" : "tpu-v5p:4x4x4", 64, experts), {}};
  TrainingQuestion& question = out.c.question;
  question.overlap = any(4) != 0;
  numbers::StepEffects& effects = question.setup.effects;
  effects.overlap = {
      0.2 * any(3), Seconds(1e-6 * any(6)), 0.1, static_cast<numbers::TensorOverlap>(any(3)), any(2) == 0, any(2) == 0,
      any(2) == 0};
  effects.joins_products = any(2) == 0;
  effects.launch = Seconds(1e-6 * std::max(0, any(8) - 3));
  // The axes get the factors of 64 at random.
  std::array<std::int64_t, 4> ways{1, 1, 1, 1};
  for (int i = 0; i < 6; ++i) ways[static_cast<std::size_t>(any(4))] *= 2;
  while (ways[2] > 8) ways[2] /= 2, ways[1] *= 2;
  out.strategy = testing::strategy_of(ways[0], ways[1], ways[2], ways[3],
                                      experts > 0 ? std::min<std::int64_t>(8, ways[0] * ways[1]) : 1);
  lower::Parallelism& p = out.strategy.parallelism;
  p.residual = static_cast<lower::ResidualScheme>(any(3));
  p.context_scheme = static_cast<lower::ContextScheme>(any(2));
  p.zero = p.data > 1 ? any(3) : 0;
  out.strategy.micro_batch = 1 + any(2);
  out.strategy.recompute = any(3) == 0 ? lower::Recompute::full() : lower::Recompute::none();
  return out;
}

// What is listed and drawn is what is priced: kernels, copies and what collectives add make up each pass, its picture
// ends when it does, and no lane does two things at once.
TEST(StepList, PassesAreDrawnAndListedAsPriced) {
  std::mt19937 draw(7);
  int hidden = 0, seen = 0;
  for (int round = 0; round < testing::sampled_count(400); ++round) {
    RandomStep drawn = random_step(draw);
    const auto& [c, strategy] = drawn;
    drawn.c.question.setup.model = &drawn.c.model;
    const auto links = strategy_links(c.question, c.cluster, strategy);
    if (!links) continue;
    const TrainingProfile profile = make_profile(c.question.setup, profile_key(strategy, testing::sequence));
    MicrobatchCost microbatch;
    fill_passes({c.question, strategy, profile, nullptr, *links}, microbatch);
    const program::Program program = training_program(c.question, testing::sequence, strategy);
    const auto times = training_step_times(c.question, testing::sequence, c.cluster, strategy, program);
    ASSERT_TRUE(times);
    ++seen;
    for (const program::Block& block : program.blocks) {
      const double priced = priced_pass(microbatch, block);
      if (priced < 0.0) continue;
      const auto where = [&] {
        return fmt::format("round {}: {}, {} {}", round, program::mesh_text(program.mesh), block.name,
                           program::name(block.phase));
      };
      double listed = times->host_waits[static_cast<std::size_t>(&block - program.blocks.data())].value();
      for (std::int32_t i = block.first; i < block.last; ++i) {
        const clock::StepTime& time = times->steps[static_cast<std::size_t>(i)];
        if (!program.steps[static_cast<std::size_t>(i)].once) listed += (time.exposed + time.copies).value();
      }
      ASSERT_NEAR(listed, priced, 1e-9 * priced) << where();
      const clock::OverlapSchedule schedule = clock::schedule_blocks(program, {block, block}, *times);
      ASSERT_NEAR(schedule.passes[0].value(), priced, 1e-9 * priced) << where();
      ASSERT_NEAR(schedule.end.value(), 2.0 * priced, 2e-9 * priced) << where();
      std::map<std::int32_t, std::vector<std::pair<double, double>>> lanes;
      std::map<std::int32_t, double> moved;
      for (const clock::ScheduledStep& step : schedule.steps) {
        lanes[step.lane].emplace_back(step.start.value(), step.end.value());
        if (step.lane > 0) moved[step.step] += (step.end - step.start).value() / 2.0;
      }
      for (auto& [lane, bars] : lanes) {
        std::sort(bars.begin(), bars.end());
        for (std::size_t i = 0; i < bars.size(); ++i) {
          if (i > 0) ASSERT_GE(bars[i].first, bars[i - 1].second - 1e-9 * priced) << where() << " lane " << lane;
          ASSERT_LE(bars[i].second, schedule.end.value()) << where();
        }
      }
      for (const auto& [step, seconds] : moved) {  // all of a collective is drawn, wherever it is hidden
        const clock::StepTime& time = times->steps[static_cast<std::size_t>(step)];
        ASSERT_NEAR(seconds, time.time.value(), 1e-9 * priced) << where();
        hidden += time.exposed < 0.9 * time.time;
      }
    }
  }
  EXPECT_GT(seen, testing::sampled_count(200));
  EXPECT_GT(hidden, testing::sampled_count(400));
}

// Ten equal layers: the first two run freely, each further one waits for the busiest of the chip and the host's lane.
TEST(Overlap, ALayerTakesAsLongAsItsBusiestLane) {
  const TrainingCase c("h100-sxm:1", 1);
  const Strategy s = testing::strategy_of(1, 1, 1);
  const program::Program program = training_program(c.question, testing::sequence, s);
  const clock::StepTimes times = *training_step_times(c.question, testing::sequence, c.cluster, s, program);
  const program::Block &forward = program.blocks[1],
                       &backward =
                           *std::find_if(program.blocks.begin(), program.blocks.end(), [&](const program::Block&b) {
                             return b.phase == program::Phase::backward && b.kind == program.blocks[1].kind;
                           });
  for (const program::Block& block : {forward, backward}) {
    const double alone = clock::schedule_blocks(program, {block}, times).end.value();
    for (double factor : {0.3, 1.0, 2.5}) {
      const Seconds copy(factor * alone);
      const std::vector<program::Block> layers(10, block);
      const clock::OverlapSchedule schedule = clock::schedule_blocks(program, layers, times, {copy, copy});
      EXPECT_EQ(schedule.copies.size(), 10u);
      const double longest = std::max(alone, copy.value());
      const double expected =
          block.phase == program::Phase::forward ? 2.0 * alone + 8.0 * longest : copy.value() + 9.0 * longest + alone;
      EXPECT_NEAR(schedule.end.value(), expected, 1e-9 * expected) << factor;
    }
  }
}

}  // namespace
}  // namespace assay::training
