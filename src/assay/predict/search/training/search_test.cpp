#include "assay/predict/search/training/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "assay/hardware/calibration.h"
#include "assay/testing/sampling.h"
#include "assay/testing/training_search_case.h"

namespace assay::search {
namespace {

using namespace testing::training_search;

// Every split of eight chips over data, fsdp, tensor and pipeline, with every policy of recomputation and everything
// that can go to the host, priced one by one without the search's caches. The link is fast enough that offloading wins
// where memory is short, and slow enough to be waited for.
TEST(TrainingSearch, FindsWhatExhaustiveEnumerationFinds) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  SearchCase c("h100-sxm:8");
  c.question.host = {BytesPerSecond(30e9), 0.8, BytesPerSecond(40e9), Bytes(256e9)};
  constexpr std::array<double, 4> capacities{3e8, 6e8, 1.2e9, 8e10};
  std::array<double, 4> best;
  best.fill(1e30);
  for (std::int64_t tp = 1; tp <= 8; tp *= 2)
    for (std::int64_t pp = 1; pp * tp <= 8 && pp <= 4; pp *= 2)
      for (std::int64_t fsdp = 1; fsdp * pp * tp <= 8; fsdp *= 2) {
        training::Strategy s;
        s.parallelism.tensor = tp;
        s.parallelism.pipeline = pp;
        s.parallelism.fsdp = fsdp;
        s.parallelism.data = 8 / (tp * pp * fsdp);
        const std::int64_t per_group = 32 / (s.parallelism.data * fsdp);
        for (std::int64_t micro = 1; micro <= std::min<std::int64_t>(per_group, 16); micro *= 2)
          for (int zero = 0; zero <= (s.parallelism.data > 1 ? 2 : 0); ++zero)
            for (int residual = 0; residual <= (tp > 1 ? 1 : 0); ++residual)
              for (const lower::RecomputePolicy& policy : lower::recompute_policies)
                for (const training::Offload offload : every_offload) {
                  // On one node all placements are alike.
                  s.micro_batch = micro;
                  s.offload = offload;
                  s.parallelism.zero = zero;
                  s.parallelism.residual = static_cast<lower::ResidualScheme>(residual);
                  s.recompute = policy.parts;
                  const auto cost = training::price_strategy(c.question, sequence, c.cluster, s);
                  ASSERT_TRUE(cost);
                  for (std::size_t i = 0; i < capacities.size(); ++i)
                    if (cost->memory.total().value() <= capacities[i])
                      best[i] = std::min(best[i], cost->estimate.value());
                }
      }
  TrainingChoices choices;
  choices.context = 1;
  choices.schedule = clock::PipelineSchedule::one_f_one_b;
  choices.offloads.assign(std::begin(every_offload), std::end(every_offload));
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    const auto found = search_training(c.question, sequence, c.cluster, choices, {Bytes(capacities[i]), 1});
    ASSERT_TRUE(found);
    ASSERT_EQ(found->best.empty(), best[i] == 1e30);
    const double estimate = found->best.empty() ? best[i] : found->best.front().cost.estimate.value();
    EXPECT_NEAR(estimate, best[i], 1e-9 * best[i]);
  }
}

// Stages with unlike layers, and chunks of unlike lengths: what is found is what its events take, and no order of
// stages that the search leaves to a bound is faster.
TEST(TrainingSearch, RanksUnevenPipelinesByTheirEvents) {
  using enum clock::PipelineSchedule;
  for (const bool alternate : {true, false}) {
    SearchCase c("h100-sxm:8");
    if (alternate) c.model = alternating_model();
    while (c.model.decoder.layers() < 13) c.model.decoder.add(c.model.decoder.kinds.front());
    TrainingChoices choices;
    choices.context = choices.tensor = choices.fsdp = choices.expert = 1;
    choices.zero = 1;
    choices.recompute = lower::Recompute::none();
    for (const std::int64_t pp : {2, 4, 8}) {
      choices.pipeline = pp;
      std::map<clock::PipelineSchedule, double> all;  // the best of each, in sizes of microbatches and chunks
      training::Strategy s;
      s.parallelism.pipeline = pp;
      s.parallelism.data = 8 / pp;
      s.parallelism.zero = 1;
      for (const StageOrder& order : TrainingSpace(c.question, sequence, c.cluster, choices).orders(s.parallelism))
        for (s.micro_batch = 1; s.micro_batch <= 16; s.micro_batch *= 2) {
          s.schedule = order.schedule;
          s.interleave = order.interleave;
          const auto m = static_cast<std::int64_t>(training::microbatches(c.question, s));
          if (m < 1 || !clock::is_possible({order.schedule, pp, m, order.interleave})) continue;
          const auto cost = training::price_strategy(c.question, sequence, c.cluster, s);
          ASSERT_TRUE(cost);
          double& best = all.try_emplace(order.schedule, HUGE_VAL).first->second;
          best = std::min(best, cost->estimate.value());
        }
      const auto found = search_training(c.question, sequence, c.cluster, choices, {Bytes(8e10), 6});
      ASSERT_TRUE(found);
      ASSERT_EQ(found->best.size(), 6u);
      for (const auto& [schedule, best] : all) {
        double least = HUGE_VAL;
        for (const Candidate& candidate : found->best)
          if (candidate.strategy.schedule == schedule) least = std::min(least, candidate.cost.estimate.value());
        EXPECT_NEAR(least, best, 1e-12 * best) << pp;
      }
      for (const Candidate& candidate : found->best) {
        const auto input = training::pipeline_input(c.question, sequence, c.cluster, candidate.strategy);
        ASSERT_TRUE(input);
        const double estimate = candidate.cost.estimate.value();
        EXPECT_NEAR(clock::simulate_pipeline(*input, clock::no_stage)->interval.value(), estimate, 1e-9 * estimate);
      }
    }
  }
}

/// The least estimate over all orders of a strategy's axes; on a torus, over all orders of its axes, too.
double best_of_all_orders(const SearchCase& c, training::Strategy strategy) {
  const training::TrainingProfile profile =
      training::make_profile(c.question.setup, training::profile_key(strategy, sequence));
  const clock::StageSplit split = training::stage_split(c.model, strategy);
  const clock::StageSplit runs =
      training::stage_runs(c.model, strategy.parallelism.pipeline, strategy.schedule, strategy.interleave);
  training::StepEvents events;
  const std::size_t torus_orders =
      c.cluster.torus ? 1 + collective::physical_axis_orders(collective::physical_axes_of(c.cluster)).size() : 1;
  double best = HUGE_VAL;
  collective::AxisLayout& layout = strategy.layout;
  do
    for (layout.torus_order = 0; layout.torus_order < torus_orders; ++layout.torus_order)
      if (const auto links = training::strategy_links(c.question, c.cluster, strategy)) {
        const training::MicrobatchCost steady =
            training::microbatch_cost({c.question, strategy, profile, nullptr, *links}, split);
        training::TrainingCost cost = training::training_cost(steady, strategy);
        events.fill({c.question, strategy, profile, nullptr, *links}, split, runs, steady);
        training::set_interval(steady, events.interval(), cost);
        best = std::min(best, cost.estimate.value());
      }
  while (std::next_permutation(layout.order.begin(), layout.order.begin() + 1 + training::roles));
  return best;
}

// Every split of the chips, each with all 720 orders of its axes: what the bounds and the layouts that stand for others
// leave out must not be faster.
TEST(TrainingSearch, FindsTheBestOfAllPlacements) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  for (const char* where : {"h100-sxm:32", "tpu-v5e:4x8", "2*tpu-v5e:4x4"})
    for (const bool experts : {false, true}) {
      SearchCase c(where);
      if (const auto measured = *hardware::calibration_of(c.cluster.chip, hardware::Catalogue::builtin());
          measured && experts)
        c.question.collectives = measured->values.collective;
      if (experts)
        for (model::Layer& layer : c.model.decoder.kinds) {
          layer.feed_forward->experts = 8;
          layer.feed_forward->experts_per_token = 2;
        }
      TrainingChoices choices;
      choices.schedule = clock::PipelineSchedule::one_f_one_b;
      choices.recompute = lower::Recompute::none();
      choices.residual = lower::ResidualScheme::replicated;
      choices.context_scheme = lower::ContextScheme::gather;
      choices.micro_batch = 1;
      choices.zero = 1;
      choices.expert_over = lower::ExpertAxes{};
      const std::int64_t chips = c.cluster.chips();
      double best = HUGE_VAL;
      int improved = 0, strategies = 0;
      for (const std::int64_t tp : {1, 2, 8})
        for (const std::int64_t pp : {1, 2, 4})
          for (const std::int64_t cp : {1, 2})
            for (const std::int64_t fsdp : {1, 2, 4})
              for (const std::int64_t ep : {1, 4}) {
                const std::int64_t others = tp * pp * cp * fsdp, data = chips / others;
                if (chips % others != 0 || (ep > 1 && (!experts || data * fsdp % ep != 0))) continue;
                training::Strategy s;
                s.parallelism = {data, fsdp, tp, cp, ep, {}, pp, 1};
                const double of_all = best_of_all_orders(c, s);
                if (of_all == HUGE_VAL) continue;
                const auto as_it_is = training::price_strategy(c.question, sequence, c.cluster, s);
                if (!as_it_is || of_all < as_it_is->estimate.value()) ++improved;
                ++strategies;
                best = std::min(best, of_all);
                choices.tensor = tp;
                choices.pipeline = pp;
                choices.context = cp;
                choices.fsdp = fsdp;
                choices.data = data;
                choices.expert = ep;
                for (const bool prune : {true, false}) {
                  const auto found = search_training(c.question, sequence, c.cluster, choices, {Bytes(8e10), 1, prune});
                  ASSERT_TRUE(found && !found->best.empty())
                      << where << " " << program::mesh_text(training::whole_mesh(s.parallelism));
                  EXPECT_NEAR(found->best.front().cost.estimate.value(), of_all, 1e-12 * of_all)
                      << where << " " << program::mesh_text(training::whole_mesh(s.parallelism)) << " " << prune;
                }
              }
      EXPECT_GT(strategies, 20);
      EXPECT_GT(improved, 5) << where << " " << experts;
    }
}

TEST(TrainingSearch, KeepsToAnOrderOfAxesThatIsGiven) {
  const SearchCase c("h100-sxm:16");
  TrainingChoices choices;
  choices.data = 2;
  choices.tensor = 8;
  choices.fsdp = choices.pipeline = choices.context = 1;
  const auto best = search_training(c.question, sequence, c.cluster, choices, {Bytes(8e10), 1});
  choices.layout = collective::AxisLayout{};
  const auto usual = search_training(c.question, sequence, c.cluster, choices, {Bytes(8e10), 1});
  ASSERT_TRUE(best && usual && !usual->best.empty());
  EXPECT_EQ(usual->best.front().strategy.layout, collective::AxisLayout{});
  const auto cost = training::price_strategy(c.question, sequence, c.cluster, usual->best.front().strategy);
  EXPECT_NEAR(usual->best.front().cost.estimate.value(), cost->estimate.value(), 1e-12 * cost->estimate.value());
  EXPECT_LE(best->best.front().cost.estimate, cost->estimate);
}

// Why a policy need not be priced where one fits that recomputes only a part of what it recomputes.
TEST(TrainingSearch, MakingMoreAgainIsNeverFaster) {
  for (const char* where : {"h100-sxm:16", "tpu-v5e:4x4"}) {
    SearchCase c(where);
    c.question.setup.effects.overlap = {0.3, 5_us, 0.1, numbers::TensorOverlap::all, true, true, true};
    training::Strategy s;
    s.parallelism.fsdp = 4;
    s.parallelism.tensor = 2;
    s.parallelism.pipeline = 2;
    for (const clock::PipelineSchedule schedule : {clock::PipelineSchedule::one_f_one_b, clock::PipelineSchedule::zb_v})
      for (const auto& [less_name, less] : lower::recompute_policies)
        for (const auto& [more_name, more] : lower::recompute_policies) {
          if (!more.includes(less)) continue;
          s.schedule = schedule;
          s.recompute = less;
          const auto a = training::price_strategy(c.question, sequence, c.cluster, s);
          s.recompute = more;
          const auto b = training::price_strategy(c.question, sequence, c.cluster, s);
          ASSERT_TRUE(a && b);
          EXPECT_LE(a->estimate, b->estimate * (1.0 + 1e-12)) << less_name << " " << more_name;
        }
  }
}

TEST(TrainingSearch, RunnersUpAreOtherStrategies) {
  const SearchCase c("tpu-v5e:4x4");
  const auto found = search_training(c.question, sequence, c.cluster, {}, {Bytes(8e10), 20});
  ASSERT_TRUE(found);
  for (std::size_t i = 0; i < found->best.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      training::Strategy other = found->best[j].strategy;
      other.layout = found->best[i].strategy.layout;
      EXPECT_FALSE(other == found->best[i].strategy);
    }
}

TEST(TrainingSearch, KeepsWhatIsFixedAndSaysWhatNeedsLeastWhenNothingFits) {
  const SearchCase c("h100-sxm:16");
  TrainingChoices choices;
  choices.tensor = 4;
  choices.pipeline = 2;
  choices.recompute = lower::Recompute::full();
  const auto found = search_training(c.question, sequence, c.cluster, choices, {Bytes(8e10), 4});
  ASSERT_TRUE(found);
  for (const Candidate& candidate : found->best) {
    EXPECT_EQ(candidate.strategy.parallelism.tensor, 4);
    EXPECT_EQ(candidate.strategy.parallelism.pipeline, 2);
    EXPECT_EQ(candidate.strategy.recompute, lower::Recompute::full());
    EXPECT_LE(candidate.cost.memory.total().value(), 8e10);
  }
  const auto none = search_training(c.question, sequence, c.cluster, choices, {Bytes(1e6), 4});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->best.empty());
  ASSERT_TRUE(none->closest);
  EXPECT_GT(none->closest->cost.memory.total().value(), 1e6);
}

// What the search puts together from halves is what a strategy costs when it is priced by itself.
TEST(TrainingSearch, PricesStrategiesAsFromScratch) {
  for (const char* where : {"h100-sxm:16", "tpu-v5e:4x4"}) {
    const SearchCase c(where);
    TrainingChoices choices;
    choices.offloads = {training::Offload::none, training::Offload::optimizer, training::Offload::activations,
                        training::Offload::both};
    SearchCase linked = c;
    linked.question.setup.model = &linked.model;
    linked.question.host = {BytesPerSecond(1e9), 0.8, BytesPerSecond(1.5e9),
                            Bytes(1e12)};  // slow enough to be waited for
    const auto found = search_training(linked.question, sequence, linked.cluster, choices, {Bytes(4e9), 300});
    ASSERT_TRUE(found);
    ASSERT_EQ(found->best.size(), 300u);
    for (const Candidate& candidate : found->best) {
      const auto cost = training::price_strategy(linked.question, sequence, linked.cluster, candidate.strategy);
      ASSERT_TRUE(cost);
      EXPECT_NEAR(candidate.cost.estimate.value(), cost->estimate.value(), 1e-12 * cost->estimate.value());
      EXPECT_NEAR(candidate.cost.memory.total().value(), cost->memory.total().value(), 1.0);
      EXPECT_NEAR(candidate.cost.memory.host.value(), cost->memory.host.value(), 1.0);
    }
  }
}

TEST(TrainingSearch, LeavesOutWhatIsTooSlow) {
  const SearchCase c("h100-sxm:16");
  const auto all = search_training(c.question, sequence, c.cluster, {}, {Bytes(8e10), 5});
  ASSERT_TRUE(all);
  ASSERT_EQ(all->best.size(), 5u);
  const Seconds third = all->best[2].cost.estimate;
  const auto some = search_training(c.question, sequence, c.cluster, {}, {Bytes(8e10), 5, true, third});
  ASSERT_TRUE(some);
  ASSERT_FALSE(some->best.empty());
  for (const Candidate& candidate : some->best) EXPECT_LT(candidate.cost.estimate, third);
  EXPECT_EQ(some->best.front().cost.estimate, all->best.front().cost.estimate);
}

// Whatever the space leaves out shows here: a choice that is given is one that the search had.
TEST(TrainingSearch, FixingAChoiceNeverFindsABetterStrategy) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  for (const char* where : {"h100-sxm:8", "tpu-v5e:4x4"})
    for (const std::int64_t long_sequence : {2048, 16384})
      for (const double capacity : {6e8, 2e9, 8e10}) {
        SearchCase c(where);
        c.question.sequences = long_sequence > sequence ? 2 : 32;
        const auto best = [&](const TrainingChoices& choices) {
          const auto found = search_training(c.question, long_sequence, c.cluster, choices, {Bytes(capacity), 1});
          return found && !found->best.empty() ? found->best.front().cost.estimate.value() : HUGE_VAL;
        };
        const double free = best({});
        const auto expect_no_better = [&](const TrainingChoices& choices, const char* what, std::int64_t value) {
          EXPECT_GE(best(choices), free * (1.0 - 1e-12))
              << where << " " << long_sequence << " tokens, " << what << value;
        };
        for (const std::int64_t n : {1, 2, 4, 8}) {
          using Degree = std::optional<std::int64_t> TrainingChoices::*;
          const std::pair<const char*, Degree> degrees[] = {
              {"data ", &TrainingChoices::data},         {"fsdp ", &TrainingChoices::fsdp},
              {"tensor ", &TrainingChoices::tensor},     {"context ", &TrainingChoices::context},
              {"pipeline ", &TrainingChoices::pipeline}, {"microbatch ", &TrainingChoices::micro_batch},
              {"chunks ", &TrainingChoices::interleave}};
          for (const auto& [what, degree] : degrees) {
            TrainingChoices choices;
            choices.*degree = n;
            expect_no_better(choices, what, n);
            for (const int zero : {0, 1, 2, 3}) {
              choices.zero = zero;
              expect_no_better(choices, what, 10 * n + zero);
            }
          }
        }
      }
}

// Eleven layers divide over no number of stages. All numbers of chunks are there to be asked for, and tried.
TEST(TrainingSearch, UnevenStagesInterleave) {
  SearchCase c("h100-sxm:8");
  for (int i = 0; i < 7; ++i) c.model.decoder.add(c.model.decoder.kinds.front());
  TrainingChoices choices;
  choices.pipeline = 2;
  choices.schedule = clock::PipelineSchedule::interleaved;
  const TrainingSpace space(c.question, sequence, c.cluster, choices);
  lower::Parallelism p;
  p.pipeline = 2;
  std::vector<std::int64_t> tried;
  for (const StageOrder& order : space.orders(p)) tried.push_back(order.interleave);
  EXPECT_EQ(tried, (std::vector<std::int64_t>{2, 3, 4, 5}));  // a stage has five layers
  for (const double capacity : {2e8, 3e8, 4e8, 5e8, 7e8, 1e9, 8e10}) {
    choices.interleave = std::nullopt;
    const auto best = [&] {
      const auto found = search_training(c.question, sequence, c.cluster, choices, {Bytes(capacity), 1});
      return found && !found->best.empty() ? found->best.front().cost.estimate.value() : HUGE_VAL;
    };
    const double free = best();
    if (capacity > 1e10) EXPECT_LT(free, HUGE_VAL);
    for (const std::int64_t chunks : {2, 3, 4, 5}) {
      choices.interleave = chunks;
      EXPECT_GE(best(), free) << capacity << " " << chunks;
    }
  }
}

}  // namespace
}  // namespace assay::search
