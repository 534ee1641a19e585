#include "assay/predict/search/training/sensitivity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "assay/base/progress.h"
#include "assay/predict/training/limits.h"
#include "assay/testing/training_search_case.h"

namespace assay::search {
namespace {

using namespace testing::training_search;

/// A small search whose kernels follow the rates of the chip.
struct SensitivityCase : SearchCase {
  TrainingChoices choices;
  Candidate best;

  explicit SensitivityCase(const char* where) : SearchCase(where) {
    choices.context = choices.pipeline = 1;
    choices.recompute = lower::Recompute::none();
    question.host = training::host_link(cluster);
    best = search_training(question, sequence, cluster, choices, {cluster.chip.hbm().capacity.value, 1})->best.front();
  }
  SensitivityQuestion ask() const {
    return {question,
            sequence,
            cluster,
            choices,
            best,
            Dtype::bf16,
            cluster.chip.hbm().capacity.value,
            [this](const hardware::Cluster& other) {
              training::TrainingQuestion there = question;
              auto rates = kernel::kernel_rates(other.chip, Dtype::bf16, "test");
              if (rates) there.setup.rates = *rates;
              return Result<training::TrainingQuestion>(there);
            },
            nullptr};
  }
};

const Sensitivity& row(const std::vector<Sensitivity>& rows, std::string_view rate) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Sensitivity& s) { return s.rate == rate; });
  if (found == rows.end()) throw InternalError("no such rate");
  return *found;
}

// On one chip without overheads, time is a sum of terms that are each inverse to one rate: if matrix rate and memory
// bandwidth both grow by x, the step takes 1/x of the time, so the two elasticities sum to -1.
TEST(TrainingSensitivity, ElasticitiesOfOneChipSumToMinusOne) {
  const SensitivityCase c("h100-sxm:1");
  const auto rows = training_sensitivities(c.ask());
  ASSERT_TRUE(rows);
  EXPECT_NEAR(row(*rows, "matrix rate").lower_elasticity + row(*rows, "memory bandwidth").lower_elasticity, -1.0, 1e-6);
}

TEST(TrainingSensitivity, FasterHardwareIsNeverSlowerAndLargerBatchesAreNeverFaster) {
  const SensitivityCase c("h100-sxm:8");
  const auto rows = training_sensitivities(c.ask());
  ASSERT_TRUE(rows);
  EXPECT_GE(rows->size(), 5u);  // two rates of the chip, one level of the network, batch and sequence
  for (const Sensitivity& one : *rows) {
    SCOPED_TRACE(one.rate);
    const bool size = one.rate == "batch" || one.rate == "sequence length";
    if (size || one.rate == "latency")
      EXPECT_GE(one.elasticity, 0.0);
    else
      EXPECT_LE(one.elasticity, 0.0);
    ASSERT_TRUE(one.best_if_doubled);
    EXPECT_EQ(one.fits_if_doubled.has_value(), size);
    if (!one.fits_if_doubled.value_or(true)) continue;
    EXPECT_LE(*one.best_if_doubled, one.if_doubled);
  }
}

TEST(TrainingSensitivity, TheLimiterIsAnotherAtTheBreakEven) {
  const SensitivityCase c("h100-sxm:8");
  const auto rows = training_sensitivities(c.ask());
  ASSERT_TRUE(rows);
  std::size_t seen = 0;
  for (const Sensitivity& one : *rows) {
    if (!one.break_even) continue;
    ++seen;
    EXPECT_NE(one.break_even->limiter, training::limiter_of(c.best.cost)) << one.rate;
    EXPECT_DOUBLE_EQ(one.break_even->value.value, one.break_even->factor * one.value.value) << one.rate;
  }
  EXPECT_GT(seen, 0u);
}

TEST(TrainingSensitivity, AnInterruptedSearchSaysSoWhereItHasNothingYet) {
  const SensitivityCase c("h100-sxm:8");
  progress.stop = true;
  const auto found =
      search_training(c.question, sequence, c.cluster, c.choices, {c.cluster.chip.hbm().capacity.value, 1});
  const auto rows = training_sensitivities(c.ask());
  progress.stop = false;
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find("interrupted"), std::string::npos);
  ASSERT_TRUE(rows);
  EXPECT_TRUE(rows->empty());
}

// Only batches that an interleaved schedule can run count.
TEST(TrainingSensitivity, ABatchIsAWholeNumberOfGroupsOfMicrobatches) {
  SensitivityCase c("h100-sxm:2");
  c.choices.pipeline = 2;
  c.choices.tensor = 1;
  c.choices.interleave = 2;
  c.choices.schedule = clock::PipelineSchedule::interleaved;
  const auto found =
      search_training(c.question, sequence, c.cluster, c.choices, {c.cluster.chip.hbm().capacity.value, 1});
  ASSERT_TRUE(found && !found->best.empty());
  c.best = found->best.front();
  const auto rows = training_sensitivities(c.ask());
  ASSERT_TRUE(rows);
  EXPECT_TRUE(row(*rows, "batch").best_if_doubled);
  training::Strategy s = c.best.strategy;
  training::TrainingQuestion odd = c.question;
  odd.sequences = 3.0 * static_cast<double>(s.micro_batch);
  EXPECT_FALSE(training::price_strategy(odd, sequence, c.cluster, s));
}

TEST(MemorySensitivity, IsBetweenTheLeastMemoryAndTheFastestStrategy) {
  const SensitivityCase c("h100-sxm:8");
  const auto memory = memory_sensitivity(c.ask());
  ASSERT_TRUE(memory && memory->smallest && memory->unlimited);
  EXPECT_EQ(memory->needed, c.best.cost.memory.total());
  EXPECT_LE(memory->smallest->cost.memory.total().value(), memory->needed.value());
  EXPECT_LE(memory->unlimited->cost.estimate, c.best.cost.estimate);
}

}  // namespace
}  // namespace assay::search
