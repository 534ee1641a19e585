// Training under every strategy and every pipeline schedule: losses equal those of one device, step by step.
#include "assay/engine/program/training_session.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "assay/testing/sampling.h"
#include "assay/testing/small_programs.h"
#include "assay/testing/small_schemes.h"

namespace assay::engine {
namespace {

using namespace testing::small;
using testing::sampled;

constexpr int step_count = 3;
constexpr double tolerance = 1e-9;

struct Trained {
  std::vector<TrainedStep> steps;
  NamedArrays weights;
  RunFacts facts;
};

Trained trained(const model::Transformer& m, const lower::Parallelism& p, const clock::PipelineShape& pipeline,
                std::int64_t microbatches, lower::Recompute recompute = {}, const Offloading& offloading = {}) {
  lower::TrainingPlan plan = small_plan(m, microbatches);
  plan.formats = {Dtype::fp64, Dtype::fp64, Dtype::fp64, Dtype::fp64, Dtype::fp64};
  plan.recompute = recompute;
  const auto [mesh, rules] = lower::training_stage(p, m);
  const program::Program program = lower::lower_training(m, mesh, rules, plan);
  TrainingSession session(program, m, weights_of(m), {.pipeline = pipeline, .adam = AdamW{}, .offloading = offloading});
  Trained out;
  for (int i = 0; i < step_count; ++i)
    out.steps.push_back(session.step(random_tokens(length, m.vocabulary, 1), random_tokens(length, m.vocabulary, 2)));
  out.weights = session.weights();
  out.facts = session.facts();
  return out;
}

void expect_same(const Trained& run, const Trained& one) {
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    EXPECT_NEAR(run.steps[i].loss, one.steps[i].loss, tolerance) << i;
    EXPECT_NEAR(run.steps[i].gradient_norm, one.steps[i].gradient_norm, tolerance) << i;
    EXPECT_NEAR(run.steps[i].moved.value(), run.steps[i].stated.value(), 1e-9 * run.steps[i].stated.value());
  }
  EXPECT_LT(run.facts.byte_error, 1e-12);
  ASSERT_EQ(run.weights.size(), one.weights.size());
  for (const auto& [name, array] : one.weights)
    EXPECT_LT(largest_difference(run.weights.at(name), array), tolerance) << name;
}

model::Transformer stack_of(int layers, bool tied) {
  model::Transformer m = embedding_varieties().front().model;
  const model::Layer layer = m.decoder.kinds.front();
  m.decoder = {};
  for (int i = 0; i < layers; ++i) m.decoder.add(layer);
  m.tied = tied;
  return m;
}

TEST(TrainingSession, AdamLowersTheLoss) {
  const Trained run = trained(stack_of(2, true), {}, {}, 1);
  EXPECT_LT(run.steps.back().loss, run.steps.front().loss);
}

TEST(TrainingSession, EverySchemeTrainsLikeOneDevice) {
  for (const Variety& variety : sampled(all_varieties())) {
    const Trained one = trained(variety.model, {}, {}, 1);
    const std::vector<Scheme> all = schemes(variety.model);
    for (std::size_t i = 0; i < all.size(); i += 5) {  // run_program_test.cpp has them all
      SCOPED_TRACE(variety.name + ", " + all[i].name);
      ASSERT_NO_THROW(expect_same(trained(variety.model, all[i].parallelism, {}, 1), one));
    }
  }
}

TEST(TrainingSession, EveryPipelineScheduleTrainsLikeOneDevice) {
  using enum clock::PipelineSchedule;
  for (const bool tied : {false, true}) {
    const model::Transformer m = stack_of(4, tied);
    for (const std::int64_t microbatches : {4, 8}) {
      const Trained one = trained(m, {}, {}, 1);
      for (const clock::PipelineShape& shape :
           {clock::PipelineShape{gpipe, 2, microbatches}, clock::PipelineShape{one_f_one_b, 4, microbatches},
            clock::PipelineShape{interleaved, 2, microbatches, 2}, clock::PipelineShape{zb_h1, 2, microbatches},
            clock::PipelineShape{zb_h2, 4, microbatches}, clock::PipelineShape{zb_v, 2, microbatches, 2},
            clock::PipelineShape{dualpipe, 2, microbatches, 2}}) {
        SCOPED_TRACE(fmt::format("{}, {} microbatches, {}", clock::schedule_name(shape.schedule), microbatches,
                                 tied ? "tied" : "untied"));
        ASSERT_TRUE(check_session(m, shape));
        ASSERT_NO_THROW(expect_same(trained(m, {.pipeline = shape.stages}, shape, microbatches), one));
      }
    }
  }
}

TEST(TrainingSession, StagesAreShardedToo) {
  const model::Transformer m = stack_of(4, true);
  const Trained one = trained(m, {}, {}, 1);
  const lower::Parallelism p{.fsdp = 2, .tensor = 2, .pipeline = 2, .residual = lower::ResidualScheme::sequence};
  const clock::PipelineShape shape{clock::PipelineSchedule::zb_h1, 2, 4};
  expect_same(trained(m, p, shape, 4, lower::Recompute::full()), one);
}

TEST(TrainingSession, RefusesWhatStagesWouldShare) {
  model::Transformer m = stack_of(2, false);
  EXPECT_FALSE(check_session(m, {clock::PipelineSchedule::one_f_one_b, 4, 4}));
  m.decoder.kinds.front().attention->shares_kv = true;
  EXPECT_FALSE(check_session(m, {clock::PipelineSchedule::one_f_one_b, 2, 4}));
}

TEST(TrainingSession, OffloadingChangesWhereBytesLieAndNothingElse) {
  using enum clock::PipelineSchedule;
  const Bytes moments(2 * sizeof(double));
  const model::Transformer m = stack_of(4, true);
  const Trained one = trained(m, {}, {}, 1);
  struct Case {
    lower::Parallelism parallelism;
    clock::PipelineShape pipeline;
    std::int64_t microbatches;
    lower::Recompute recompute;
  };
  for (const Case& c : {Case{{}, {}, 1, {}}, Case{{.fsdp = 2, .tensor = 2}, {}, 2, {}},
                        Case{{.data = 2, .zero = 1}, {}, 1, lower::Recompute::full()},
                        Case{{.data = 2, .zero = 3}, {}, 1, {}}, Case{{.tensor = 2}, {zb_h1, 2, 4}, 4, {}},
                        Case{{}, {interleaved, 2, 4, 2}, 4, {}}, Case{{}, {dualpipe, 2, 4}, 4, {}}})
    for (const Offloading& what :
         {Offloading{true, false, moments}, Offloading{false, true, moments}, Offloading{true, true, moments}}) {
      SCOPED_TRACE(fmt::format("{} {} {}", what.activations, what.states, static_cast<int>(c.pipeline.schedule)));
      const Trained run = trained(m, c.parallelism, c.pipeline, c.microbatches, c.recompute, what);
      expect_same(run, one);
      const TrainedStep& last = run.steps.back();
      EXPECT_GT(last.to_host, Bytes(0));
      EXPECT_NEAR(last.to_host.value(), last.stated_host.value(), 1e-9 * last.stated_host.value());
      EXPECT_NEAR(last.from_host.value(), last.stated_host.value(), 1e-9 * last.stated_host.value());
    }
}

}  // namespace
}  // namespace assay::engine
