// Bounds never lose a strategy that belongs into the answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "assay/hardware/calibration.h"
#include "assay/predict/search/training/caches.h"
#include "assay/testing/sampling.h"
#include "assay/testing/training_search_case.h"

namespace assay::search {
namespace {

using namespace testing::training_search;

TEST(TrainingSearch, PruningNeverLosesTheBest) {
  for (const char* where : testing::sampled<const char*>({"h100-sxm:16", "tpu-v5e:4x4", "tpu-v5p:4x4x4"})) {
    SearchCase c(where);
    for (int i = 0; i < 3; ++i) c.model.decoder.add(c.model.decoder.kinds.front());  // seven: stages are uneven
    for (double capacity : testing::sampled<double>({1e9, 4e9, 8e10})) {
      const auto cut = search_training(c.question, sequence, c.cluster, {}, {Bytes(capacity), 3, true});
      const auto all = search_training(c.question, sequence, c.cluster, {}, {Bytes(capacity), 3, false});
      ASSERT_TRUE(cut && all);
      ASSERT_EQ(cut->best.empty(), all->best.empty());
      if (all->best.empty()) continue;
      ASSERT_EQ(cut->best.size(), all->best.size());
      for (std::size_t i = 0; i < all->best.size(); ++i)
        EXPECT_DOUBLE_EQ(cut->best[i].cost.estimate.value(), all->best[i].cost.estimate.value());
      EXPECT_LE(cut->count.evaluated, all->count.evaluated);
    }
  }
}

// The bounds count stragglers, fixed costs, copies to the host and what is done once a step: what they leave out must
// not be faster for it.
TEST(TrainingSearch, PruningNeverLosesTheBestOfStepsWithCostsOfTheirOwn) {
  for (const bool overlap : {true, false}) {
    SearchCase c("h100-sxm:32");
    c.question.overlap = overlap;
    c.question.setup.effects.straggler = 0.05;
    c.question.setup.effects.fixed = 10_ms;
    c.question.host = {BytesPerSecond(1e9), 0.8, BytesPerSecond(1.5e9), Bytes(1e12)};  // slow enough to be waited for
    TrainingChoices choices;
    choices.offloads.assign(std::begin(every_offload), std::end(every_offload));
    for (double capacity : testing::sampled<double>({4e8, 8e10})) {
      const auto cut = search_training(c.question, sequence, c.cluster, choices, {Bytes(capacity), 20, true});
      const auto all = search_training(c.question, sequence, c.cluster, choices, {Bytes(capacity), 20, false});
      ASSERT_TRUE(cut && all);
      ASSERT_EQ(cut->best.size(), all->best.size());
      for (std::size_t i = 0; i < all->best.size(); ++i)
        EXPECT_EQ(cut->best[i].cost.estimate, all->best[i].cost.estimate);
      if (!all->best.empty()) EXPECT_LT(cut->count.evaluated, all->count.evaluated / 2);
    }
  }
}

// What bounds refuse before anything is lowered does not fit, and what needs the least memory does.
TEST(TrainingSearch, SomethingFitsFromTheLeastMemoryOn) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  for (const bool frees : {true, false}) {
    SearchCase c("tpu-v5e:4x2");
    c.question.setup.effects.frees_gradients = frees;
    c.question.setup.effects.reserved.value = 1.1;
    c.question.host = {BytesPerSecond(30e9), 0.8, BytesPerSecond(40e9), Bytes(256e9)};
    TrainingChoices choices;
    choices.offloads = {training::Offload::none, training::Offload::optimizer};
    TrainingCaches caches(c.question, sequence, c.cluster);
    const auto none = search_training(caches, choices, {Bytes(1e6)});
    ASSERT_TRUE(none && none->closest);
    const Bytes least = none->closest->cost.memory.total();
    for (const double share : {0.5, 0.999, 1.0 + 1e-12, 1.5}) {
      const auto all = search_training(c.question, sequence, c.cluster, choices, {share * least, 1, false});
      ASSERT_TRUE(all);
      EXPECT_EQ(any_fits(caches, choices, share * least), share > 1.0);
      EXPECT_EQ(!all->best.empty(), share > 1.0);
    }
  }
}

// Few microbatches a stage, so that bubbles decide, and weights that are waited for: the bounds count both.
TEST(TrainingSearch, PruningNeverLosesTheBestWherePipelinesHardlyFill) {
  for (const char* where : testing::sampled<const char*>({"h100-sxm:64", "tpu-v5p:4x4x4"}))
    for (const double sequences : testing::sampled<double>({8, 64})) {
      SearchCase c(where);
      c.question.sequences = sequences;
      c.question.setup.effects.overlap = {0.3, 5_us, 0.1, numbers::TensorOverlap::all, true, true, true};
      for (double capacity : testing::sampled<double>({5e8, 8e10})) {
        const auto cut = search_training(c.question, sequence, c.cluster, {}, {Bytes(capacity), 20, true});
        const auto all = search_training(c.question, sequence, c.cluster, {}, {Bytes(capacity), 20, false});
        ASSERT_TRUE(cut && all);
        ASSERT_EQ(cut->best.size(), all->best.size());
        for (std::size_t i = 0; i < all->best.size(); ++i)
          EXPECT_EQ(cut->best[i].cost.estimate, all->best[i].cost.estimate);
        if (!all->best.empty()) EXPECT_LT(cut->count.evaluated, all->count.evaluated / 4);
      }
    }
}

// A step never falls by more than rates rise, nor where they fall, so that lower bounds of one search serve another.
TEST(TrainingSearch, LowerBoundsOfOtherRatesLoseNothing) {
  for (const double factor : {0.3, 0.8, 1.25, 4.0})
    for (const bool of_memory : {false, true}) {
      SearchCase c("h100-sxm:16");
      std::vector<Seconds> floors;
      SearchLimits limits{Bytes(8e10), 1};
      limits.floors = &floors;
      ASSERT_TRUE(search_training(c.question, sequence, c.cluster, {}, limits));
      ASSERT_FALSE(floors.empty());
      kernel::KernelRates& rates = c.question.setup.rates;
      if (of_memory) rates.hbm = factor * rates.hbm;
      if (!of_memory)
        for (FlopsPerSecond& peak : rates.peak) peak = factor * peak;
      for (Seconds& floor : floors) floor = (1.0 - 1e-9) * std::min(1.0, 1.0 / factor) * floor;
      limits.top = 20;
      const auto cut = search_training(c.question, sequence, c.cluster, {}, limits);
      const auto all = search_training(c.question, sequence, c.cluster, {}, {Bytes(8e10), 20, false});
      ASSERT_TRUE(cut && all);
      ASSERT_EQ(cut->best.size(), all->best.size());
      for (std::size_t i = 0; i < all->best.size(); ++i)
        EXPECT_EQ(cut->best[i].cost.estimate, all->best[i].cost.estimate);
    }
}

// Schedules that hide the exchange between experts are the faster for it: a bound must allow for that.
TEST(TrainingSearch, PruningNeverLosesAScheduleThatHidesExperts) {
  for (const double share : testing::sampled<double>({0.0, 0.25, 1.0})) {
    SearchCase c("h100-sxm:16");
    for (model::Layer& layer : c.model.decoder.kinds) {
      layer.feed_forward->experts = 8;
      layer.feed_forward->experts_per_token = 2;
    }
    c.question.setup.effects.overlap.experts = true;
    c.question.setup.effects.overlap.chip_share = share;
    for (double capacity : testing::sampled<double>({4e9, 8e10})) {
      const auto cut = search_training(c.question, sequence, c.cluster, {}, {Bytes(capacity), 3, true});
      const auto all = search_training(c.question, sequence, c.cluster, {}, {Bytes(capacity), 3, false});
      ASSERT_TRUE(cut && all);
      ASSERT_EQ(cut->best.size(), all->best.size());
      for (std::size_t i = 0; i < all->best.size(); ++i)
        EXPECT_DOUBLE_EQ(cut->best[i].cost.estimate.value(), all->best[i].cost.estimate.value());
    }
  }
}

/// That bounds cut nothing that belongs into the list, and that each entry has its own price; returns how many there
/// are.
std::size_t expect_exact(const SearchCase& c, const TrainingChoices& choices, double capacity) {
  const auto cut = search_training(c.question, sequence, c.cluster, choices, {Bytes(capacity), 20, true});
  const auto all = search_training(c.question, sequence, c.cluster, choices, {Bytes(capacity), 20, false});
  EXPECT_TRUE(cut && all);
  if (!cut || !all) return 0;
  EXPECT_EQ(cut->best.size(), all->best.size());
  for (std::size_t i = 0; i < std::min(cut->best.size(), all->best.size()); ++i) {
    EXPECT_EQ(cut->best[i].cost.estimate, all->best[i].cost.estimate);
    const auto cost = training::price_strategy(c.question, sequence, c.cluster, cut->best[i].strategy);
    EXPECT_TRUE(cost);
    if (!cost) continue;
    EXPECT_NEAR(cut->best[i].cost.estimate.value(), cost->estimate.value(), 1e-12 * cost->estimate.value());
    EXPECT_NEAR(cut->best[i].cost.memory.total().value(), cost->memory.total().value(), 1.0);
  }
  return all->best.size();
}

// Stages hold other layers with every number of chunks, so that one with more of them may be the slower and the fuller
// one: bounds hold for each, and what is found is priced as by itself.
TEST(TrainingSearch, ChunksOfUnlikeLayersAreSearchedExactly) {
  for (const char* where : testing::sampled<const char*>({"h100-sxm:16", "tpu-v5e:2x4"})) {
    SearchCase c(where);
    c.model = alternating_model();
    c.question.setup.effects.overlap.experts = true;
    c.question.setup.effects.overlap.chip_share = 0.25;
    TrainingChoices choices;
    choices.schedule = clock::PipelineSchedule::interleaved;
    choices.context = 1;
    choices.pipeline = 2;
    for (const double capacity : testing::sampled<double>({1e9, 2e9, 8e10})) expect_exact(c, choices, capacity);
  }
}

// Two blocks take turns in four of seven layers, so that stages of pipelines hold both, one or none.
TEST(TrainingSearch, SharedWeightsAreSearchedExactly) {
  SearchCase c("h100-sxm:8");
  const model::Layer plain = c.model.decoder.kinds.front();
  c.model.decoder = {};
  for (const int block : {0, 1, 2, 0, 1, 2, 0}) {
    model::Layer layer = plain;
    if (block > 0) layer.shared = model::SharedBlock{.number = block};
    c.model.decoder.add(layer);
  }
  c.question.host = {BytesPerSecond(1e9), 0.8, BytesPerSecond(1.5e9), Bytes(1e12)};  // slow enough to be waited for
  TrainingChoices choices;
  choices.context = 1;
  choices.offloads = {std::begin(every_offload), std::end(every_offload)};
  for (const double capacity : testing::sampled<double>({1e9, 8e10})) EXPECT_GT(expect_exact(c, choices, capacity), 0u);
}

// Under a budget the answer is that of a chip with so much memory; where nothing keeps to it, that of the whole chip.
TEST(TrainingSearch, ABudgetIsKeptWhereverSomethingKeepsIt) {
  SearchCase c("h100-sxm:16");
  for (const double budget : testing::sampled<double>({1e6, 4e8, 2e9})) {
    constexpr double capacity = 8e10;
    SearchLimits limits{Bytes(capacity), 20};
    limits.budget = Bytes(budget);
    const auto kept = search_training(c.question, sequence, c.cluster, {}, limits);
    const auto within = search_training(c.question, sequence, c.cluster, {}, {Bytes(budget), 20, false});
    const auto whole = search_training(c.question, sequence, c.cluster, {}, {Bytes(capacity), 20, false});
    ASSERT_TRUE(kept && within && whole);
    const auto& wanted = within->best.empty() ? whole->best : within->best;
    ASSERT_EQ(kept->best.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(kept->best[i].cost.estimate, wanted[i].cost.estimate);
    limits.slowest = Seconds(1e9);  // a time limit asks for plans that keep the budget only
    const auto timely = search_training(c.question, sequence, c.cluster, {}, limits);
    ASSERT_TRUE(timely);
    EXPECT_EQ(timely->best.empty(), within->best.empty());
  }
}

TEST(TrainingSearch, OffloadingIsSearchedExactly) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  SearchCase c("h100-sxm:8");
  c.question.host = {BytesPerSecond(64e9), 0.8, BytesPerSecond(70e9), Bytes(256e9)};
  const double state = 16e6;  // a chip that holds little but weights
  double least = 1e300;
  for (training::Offload offload : {training::Offload::none, training::Offload::optimizer,
                                    training::Offload::activations, training::Offload::both}) {
    TrainingChoices one;
    one.offloads = {offload};
    for (double capacity : {state, 4e8, 8e8}) {
      const auto found = search_training(c.question, sequence, c.cluster, one, {Bytes(capacity), 1, true});
      const auto all = search_training(c.question, sequence, c.cluster, one, {Bytes(capacity), 1, false});
      ASSERT_TRUE(found && all);
      ASSERT_EQ(found->best.empty(), all->best.empty());
      if (!all->best.empty()) EXPECT_EQ(found->best.front().cost.estimate, all->best.front().cost.estimate);
      if (capacity == 4e8 && !all->best.empty()) least = std::min(least, all->best.front().cost.estimate.value());
    }
  }
  TrainingChoices every;
  every.offloads = {training::Offload::none, training::Offload::optimizer, training::Offload::activations,
                    training::Offload::both};
  const auto found = search_training(c.question, sequence, c.cluster, every, {Bytes(4e8), 1});
  ASSERT_TRUE(found);
  ASSERT_FALSE(found->best.empty());
  EXPECT_EQ(found->best.front().cost.estimate.value(), least);
}

}  // namespace
}  // namespace assay::search
