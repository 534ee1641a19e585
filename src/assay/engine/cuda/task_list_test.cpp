// The tasks of a program, run by plain loops over the planned memory: what the GPU is told to do is what virtual
// devices do.
#include "assay/engine/cuda/task_list.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "assay/engine/cuda/cuda_session.h"
#include "assay/engine/cuda/memory_plan.h"
#include "assay/model/accounting.h"
#include "assay/testing/host_engine.h"
#include "assay/testing/small_programs.h"
#include "assay/testing/thread_ranks.h"

namespace assay::engine {
namespace {

using namespace testing::small;

/// A llama: grouped heads, gated blocks, a last norm; or with the biases of a qwen.
model::Transformer llama(bool tied, bool biases = false, int layers = 3) {
  model::Transformer m;
  m.id = "llama";
  m.d_model = 16;
  m.vocabulary = 24;
  m.tied = tied;
  model::Layer layer;
  layer.attention.emplace();
  layer.attention->heads = 4;
  layer.attention->kv_heads = 2;
  layer.attention->head_dim = layer.attention->value_dim = 8;
  layer.attention->q_bias = layer.attention->k_bias = layer.attention->v_bias = biases;
  layer.feed_forward.emplace();
  layer.feed_forward->width = 24;
  for (int i = 0; i < layers; ++i) m.decoder.add(layer);
  return m;
}

/// The same with experts instead of the block.
model::Transformer mixture(int layers = 3) {
  model::Transformer m = llama(false, false, layers);
  for (model::Layer& layer : m.decoder.kinds) {
    layer.feed_forward->experts = 4;
    layer.feed_forward->experts_per_token = 2;
  }
  return m;
}

program::Program program_of(const model::Transformer& m, Dtype dtype, std::int64_t microbatches,
                            lower::Recompute recompute = {}, const lower::Parallelism& parallelism = {}) {
  lower::TrainingPlan plan = small_plan(m, microbatches);
  plan.formats = {dtype, dtype, dtype, dtype, dtype};
  plan.recompute = recompute;
  plan.work.expert_load = model::most_expert_load(m);
  const lower::StageRules stage = lower::training_stage(parallelism, m);
  return lower::lower_training(m, stage.mesh, stage.rules, plan);
}

void expect_same_losses(const model::Transformer& m, std::int64_t microbatches, lower::Recompute recompute = {}) {
  const program::Program narrow = program_of(m, Dtype::fp32, microbatches, recompute);
  const program::Program wide = program_of(m, Dtype::fp64, microbatches, recompute);
  const auto list = task_list(narrow, m, 5);
  ASSERT_TRUE(list) << list.error().what;
  auto gpu = CudaSession::open(testing::host_engine(), *list, AdamW{});
  ASSERT_TRUE(gpu);
  TrainingSession session(wide, m, initial_weights(wide, m, 5), {.adam = AdamW{}});
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Array tokens = random_tokens(length, m.vocabulary, 2 * i),
                targets = random_tokens(length, m.vocabulary, 2 * i + 1);
    const auto step = gpu->step(tokens, targets);
    const TrainedStep expected = session.step(tokens, targets);
    EXPECT_NEAR(step->step.loss, expected.loss, 1e-4) << i;
    EXPECT_NEAR(step->step.gradient_norm, expected.gradient_norm, 1e-3 * expected.gradient_norm) << i;
  }
}

TEST(TaskList, HasTheLossesOfVirtualDevices) {
  expect_same_losses(llama(false), 1);
  expect_same_losses(llama(true), 1);
  expect_same_losses(llama(false, true), 1);
}

TEST(TaskList, AddsUpGradientsOfMicrobatches) {
  expect_same_losses(llama(false), 2);
  expect_same_losses(llama(true), 4);
  expect_same_losses(llama(false, true), 2);
}

TEST(TaskList, SendsTokensToTheirExperts) {
  expect_same_losses(mixture(), 1);
  expect_same_losses(mixture(), 2);
  expect_same_losses(mixture(), 1, lower::Recompute::full());
}

/// The same on several devices, each in a thread with tasks of its own.
void expect_same_losses(const lower::Parallelism& parallelism, std::int64_t microbatches,
                        const model::Transformer& m = llama(false), const clock::PipelineShape& stages = {}) {
  const program::Program split = program_of(m, Dtype::fp32, microbatches, {}, parallelism);
  const program::Program whole = program_of(m, Dtype::fp64, microbatches);
  TrainingSession session(whole, m, initial_weights(whole, m, 5), {.adam = AdamW{}});
  std::vector<TrainedStep> expected;
  const auto batch = [&](std::uint64_t i) { return random_tokens(length, m.vocabulary, i); };
  for (std::uint64_t i = 0; i < 3; ++i) expected.push_back(session.step(batch(2 * i), batch(2 * i + 1)));
  testing::on_thread_ranks(static_cast<std::size_t>(split.mesh.devices() * stages.stages), [&](Transport& transport) {
    SCOPED_TRACE(fmt::format("{} x {} stages of {} in {} microbatches", program::mesh_text(split.mesh), stages.stages,
                             clock::schedule_name(stages.schedule), microbatches));
    const auto list = task_list(split, m, 5, {transport.rank(), stages});
    ASSERT_TRUE(list) << list.error().what;
    EXPECT_EQ(list->handed > Bytes(0), stages.stages > 1);
    EXPECT_NEAR(list->moved.value(), list->stated.value(), 1e-9 * list->stated.value());
    auto gpu = CudaSession::open(testing::host_engine(), *list, AdamW{}, &transport);
    ASSERT_TRUE(gpu);
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto step = gpu->step(batch(2 * i), batch(2 * i + 1));
      EXPECT_NEAR(step->step.loss, expected[i].loss, 1e-4) << i;
      EXPECT_NEAR(step->step.gradient_norm, expected[i].gradient_norm, 1e-3 * expected[i].gradient_norm) << i;
    }
  });
}

TEST(TaskList, SplitsTheWorkOverDevices) {
  expect_same_losses({.data = 2}, 1);
  expect_same_losses({.fsdp = 2}, 2);
  expect_same_losses({.tensor = 2}, 1);
  expect_same_losses({.tensor = 2, .residual = lower::ResidualScheme::sequence}, 1);
  expect_same_losses({.data = 2, .zero = 1}, 1);
  expect_same_losses({.data = 2, .fsdp = 2, .zero = 2}, 1);
  expect_same_losses({.fsdp = 2, .tensor = 2, .residual = lower::ResidualScheme::sequence}, 1);
}

TEST(TaskList, SplitsSequencesAndExpertsOverDevices) {
  expect_same_losses({.context = 2, .context_scheme = lower::ContextScheme::exchange}, 1);
  expect_same_losses({.data = 2, .context = 2, .context_scheme = lower::ContextScheme::exchange}, 2);
  expect_same_losses({.data = 2, .expert = 2}, 1, mixture());
  expect_same_losses({.fsdp = 2, .tensor = 2, .expert = 2}, 2, mixture());
  expect_same_losses({.tensor = 2, .expert = 2, .expert_over = {.tensor = true}}, 1, mixture());
}

TEST(TaskList, PassesKeysAndValuesAroundARing) {
  expect_same_losses({.context = 2}, 1);
  expect_same_losses({.context = 4}, 2);
  expect_same_losses({.tensor = 2, .context = 2}, 1);
  expect_same_losses({.data = 2, .context = 2, .residual = lower::ResidualScheme::sequence}, 1);
}

TEST(TaskList, RunsStagesInTheOrderOfTheirSchedule) {
  using clock::PipelineSchedule;
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1, PipelineSchedule::zb_h2,
        PipelineSchedule::zb_v, PipelineSchedule::dualpipe})
    for (const bool tied : {false, true}) {
      const bool has_two = schedule == PipelineSchedule::zb_v || schedule == PipelineSchedule::dualpipe;
      expect_same_losses({}, 4, llama(tied, false, 4), {schedule, 2, 4, has_two ? 2 : 1});
    }
  expect_same_losses({}, 4, llama(true, false, 4), {PipelineSchedule::interleaved, 2, 4, 2});
  expect_same_losses({}, 4, llama(false, false, 4), {PipelineSchedule::zb_h1, 4, 4, 1});
}

TEST(TaskList, SplitsStagesOverDevices) {
  using clock::PipelineSchedule;
  const model::Transformer m = llama(true, false, 4);
  expect_same_losses({.tensor = 2}, 2, m, {PipelineSchedule::one_f_one_b, 2, 2, 1});
  expect_same_losses({.fsdp = 2}, 2, m, {PipelineSchedule::zb_h1, 2, 2, 1});
  expect_same_losses({.context = 2}, 4, m, {PipelineSchedule::dualpipe, 2, 4, 2});
  expect_same_losses({.data = 2, .expert = 2}, 2, mixture(4), {PipelineSchedule::zb_h1, 2, 2, 1});
}

TEST(TaskList, RecomputesWhatTheProgramSays) { expect_same_losses(llama(false), 1, lower::Recompute::full()); }

TEST(TaskList, RunsEveryStepOfTheProgramForEveryLayer) {
  const model::Transformer m = llama(false);
  const program::Program program = program_of(m, Dtype::fp32, 2);
  const auto list = task_list(program, m, 1);
  ASSERT_TRUE(list);
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      EXPECT_EQ(list->runs[static_cast<std::size_t>(i)], block.layers * (step.once ? 1 : 2))
          << program::step_text(program, step);
    }
}

TEST(TaskList, NamesTheFirstStepWithoutAKernel) {
  model::Transformer m = llama(false);
  m.decoder.kinds.front().attention->window = 4;
  const auto list = task_list(program_of(m, Dtype::fp32, 1), m, 1);
  ASSERT_FALSE(list);
  EXPECT_NE(list.error().what.find(
                "attention that is not causal over the whole sequence has no kernel on a GPU yet: O[B, S, N, H]"),
            std::string::npos)
      << list.error().what;
}

TEST(MemoryPlan, ArraysShareBytesOnlyOneAfterTheOther) {
  std::vector<Lifetime> arrays;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto first = static_cast<std::int64_t>(mixed(1, i) % 50);
    arrays.push_back(
        {static_cast<std::int64_t>(mixed(2, i) % 5000), first, first + static_cast<std::int64_t>(mixed(3, i) % 9)});
  }
  const MemoryPlan plan = plan_memory(arrays);
  std::int64_t all = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    all += arrays[i].bytes;
    EXPECT_EQ(plan.offsets[i] % MemoryPlan::alignment, 0);
    EXPECT_LE(plan.offsets[i] + arrays[i].bytes, plan.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool at_once = arrays[i].first <= arrays[j].last && arrays[j].first <= arrays[i].last;
      const bool touch =
          plan.offsets[i] < plan.offsets[j] + arrays[j].bytes && plan.offsets[j] < plan.offsets[i] + arrays[i].bytes;
      EXPECT_FALSE(at_once && touch) << i << " and " << j;
    }
  }
  EXPECT_LT(plan.bytes, all / 2);
}

}  // namespace
}  // namespace assay::engine
