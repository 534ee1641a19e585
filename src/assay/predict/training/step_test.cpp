#include "assay/predict/training/step.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/training/step_list.h"
#include "assay/testing/sampling.h"
#include "assay/testing/training_case.h"

namespace assay::training {
namespace {

using testing::TrainingCase;

/// A stage's program for so many sequences at once, in the question's formats.
program::Program program_of(const TrainingCase& c, const Strategy& s, std::int64_t sequences) {
  lower::TrainingPlan plan;
  plan.work.sequences = sequences, plan.work.queries = plan.work.keys = testing::sequence;
  plan.formats = c.question.setup.formats;
  plan.recompute = s.recompute;
  return lower::lower_training(c.model, lower::stage_mesh(s.parallelism), lower::training_rules(s.parallelism), plan);
}

/// Seconds of the program itself, lowered with the real sizes of every axis and priced step by step.
struct Direct {
  double compute = 0, waited = 0, hidden = 0, once = 0;
};

Direct direct(const TrainingCase& c, const Strategy& s) {
  const lower::Parallelism& p = s.parallelism;
  const program::Program program = program_of(c, s, s.micro_batch * p.data * p.fsdp);
  const program::Mesh mesh = whole_mesh(p, s.layout);
  const collective::Placement placement = *collective::Placement::make(mesh, c.cluster, "test");
  const std::vector<Seconds> times =
      testing::plain_step_times(program, c.question.setup.rates, &placement, mesh,
                                hardware::network_efficiency(c.cluster.chip), routing_of(c.model));
  Direct sum;
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      const double seconds = static_cast<double>(block.layers) * times[static_cast<std::size_t>(i)].value();
      if (!program::is_collective(step.op)) {
        if (block.phase != program::Phase::update) sum.compute += seconds;
      } else if (step.once) {
        sum.once += seconds;
      } else {
        (step.urgency == program::Urgency::critical ? sum.waited : sum.hidden) += seconds;
      }
    }
  return sum;
}

TEST(StepTimes, CopiesOfKeysReceiveTheirOwnPartOfTheTensorAxis) {
  // Four heads of keys on eight devices: pairs sum their gradients. Within a node a pair has the links of all eight,
  // so that the price equals that of a mesh on which pairs are an axis of their own.
  TrainingCase c("h100-sxm:8", 64);
  for (model::Layer& layer : c.model.decoder.kinds) layer.attention->kv_heads = 4;
  const lower::Parallelism p{.tensor = 8};
  const auto [mesh, rules] = lower::training_stage(p, c.model);
  ASSERT_EQ(program::mesh_text(mesh), "tp(1)=4,tp(2)=2");
  lower::TrainingPlan plan;
  plan.work.queries = plan.work.keys = testing::sequence;
  const program::Program program = lower::lower_training(c.model, mesh, rules, plan);
  const program::Mesh whole = whole_mesh(p);
  const collective::Placement placement = *collective::Placement::make(whole, c.cluster, "test"),
                              cut = *collective::Placement::make(mesh, c.cluster, "test");
  const std::vector<Seconds> times = testing::plain_step_times(program, c.question.setup.rates, &placement, whole, 1.0);
  int parts = 0;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const program::Step& step = program.steps[i];
    if (!program::is_collective(step.op) || step.axes != program::axis_bit(1)) continue;
    const auto exact = collective::collective_cost(Plain{}, step.collective, collective::array_bytes(program, step),
                                                   cut.group(step.axes));
    EXPECT_NEAR(times[i] / (exact.bandwidth + exact.latency), 1.0, 1e-9);
    ++parts;
  }
  EXPECT_EQ(parts, 2);
}

TEST(TrainingCost, EqualsTheProgramPricedStepByStep) {
  const TrainingCase dense("h100-sxm:16", 64), experts("h100-sxm:16", 64, 8);
  TrainingCase wide("h100-sxm:16", 64), wide_experts("h100-sxm:16", 64, 8);
  for (TrainingCase* c : {&wide, &wide_experts}) c->question.setup.formats.weights = Dtype::fp32;
  for (const TrainingCase* c :
       {&dense, &experts, static_cast<const TrainingCase*>(&wide), static_cast<const TrainingCase*>(&wide_experts)})
    for (Strategy s :
         {testing::strategy_of(1, 16, 1), testing::strategy_of(4, 2, 2), testing::strategy_of(16, 1, 1),
          testing::strategy_of(2, 1, 8), testing::strategy_of(1, 4, 2, 2), testing::strategy_of(2, 4, 2)}) {
      if (c->model.decoder.kinds.size() > 1 && s.parallelism.data * s.parallelism.fsdp % 4 == 0)
        s.parallelism.expert = 4;
      // Of wide weights, programs cast no norms that lie whole: 6 bytes of 1024 elements, 33 times.
      const double norms = c->question.setup.formats.weights == Dtype::fp32 ? 1e-7 : 0.0;
      for (const lower::RecomputePolicy& policy : lower::recompute_policies) {
        s.recompute = policy.parts;
        const double m = microbatches(c->question, s);
        const auto cost = price_strategy(c->question, testing::sequence, c->cluster, s);
        ASSERT_TRUE(cost) << cost.error().what;
        const Direct want = direct(*c, s);
        EXPECT_NEAR(cost->parts.compute.value() / m, want.compute, 1e-9 * want.compute + norms);
        EXPECT_NEAR((cost->parts.tensor.value() + cost->parts.context.value() + cost->parts.expert.value()) / m,
                    want.waited, 1e-9 * want.waited + 1e-12);
      }
    }
}

TEST(TrainingCost, ExpertsExchangeTokensBesideAnotherMicrobatchWhereTheScheduleHasOne) {
  TrainingCase c("h100-sxm:16", 64, 8);
  Strategy s = testing::strategy_of(8, 1, 1);
  s.parallelism.expert = 8, s.parallelism.pipeline = 2, s.schedule = clock::PipelineSchedule::one_f_one_b;
  const auto expert_seconds = [&](clock::PipelineSchedule schedule, std::int64_t interleave, double waited) {
    Strategy used = s;
    used.schedule = schedule, used.interleave = interleave;
    c.question.setup.effects.overlap.experts = waited < 1.0;
    c.question.setup.effects.overlap.chip_share = waited;
    const auto cost = price_strategy(c.question, testing::sequence, c.cluster, used);
    EXPECT_TRUE(cost);
    EXPECT_NEAR(cost->parts.total().value(), cost->estimate.value(), 1e-12 * cost->estimate.value());
    return cost->parts.expert.value();
  };
  const double whole = expert_seconds(clock::PipelineSchedule::one_f_one_b, 1, 1.0);
  EXPECT_GT(whole, 0.0);
  EXPECT_DOUBLE_EQ(expert_seconds(clock::PipelineSchedule::one_f_one_b, 1, 0.25), whole);
  EXPECT_NEAR(expert_seconds(clock::PipelineSchedule::interleaved, 2, 0.25), 0.25 * whole, 1e-9 * whole);
  // Of eight layers the first has no experts: four stand on the slower stage, or half of all seven on both.
  EXPECT_NEAR(expert_seconds(clock::PipelineSchedule::dualpipe, 1, 0.25), 0.25 * whole * 3.5 / 4.0, 1e-9 * whole);
}

// A layer gathers and scatters its input twice each way, and gathers both inputs again for gradients of weights: of ten
// collectives as large as each other, the two scattered sums of gradients and the two that are gathered again have
// weight gradients that run concurrently. Replicated, with all but its last product recomputed, it is two sums of five,
// of which one takes longer than the gradients of the weights of query, key and value beside it.
TEST(TrainingCost, GradientsOfWeightsAreMadeBesideCollectivesOfTheBackwardPass) {
  TrainingCase c("h100-sxm:2", 64);
  const auto waited = [&](const Strategy& s, double beside) {
    c.question.setup.effects.overlap.tensor = numbers::TensorOverlap::backward;
    c.question.setup.effects.overlap.chip_share = beside;
    const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
    EXPECT_TRUE(cost);
    return cost->parts.tensor.value();
  };
  Strategy s = testing::strategy_of(1, 1, 2);
  s.parallelism.residual = lower::ResidualScheme::sequence;
  EXPECT_NEAR(waited(s, 0.0) / waited(s, 1.0), 0.6, 0.02);
  EXPECT_NEAR(waited(s, 0.5) / waited(s, 1.0), 0.8, 0.01);
  s.parallelism.residual = lower::ResidualScheme::replicated, s.recompute = lower::Recompute::full();
  const double hidden = waited(s, 0.0) / waited(s, 1.0);
  EXPECT_GT(hidden, 0.62);
  EXPECT_LT(hidden, 0.78);
}

TEST(TrainingCost, GradientsOfWeightsHideNoMoreThanTheyTakeAndNothingWhereTheyArePutOff) {
  TrainingCase c("h100-sxm:16", 64);
  const auto waited = [&](std::int64_t tensor, clock::PipelineSchedule schedule, double beside) {
    Strategy s = testing::strategy_of(8 / tensor, 1, tensor);
    s.parallelism.pipeline = 2, s.schedule = schedule, s.parallelism.residual = lower::ResidualScheme::sequence;
    c.question.setup.effects.overlap.tensor = numbers::TensorOverlap::backward;
    c.question.setup.effects.overlap.chip_share = beside;
    const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
    EXPECT_TRUE(cost);
    EXPECT_NEAR(cost->parts.total().value(), cost->estimate.value(), 1e-12 * cost->estimate.value());
    return cost->parts.tensor.value();
  };
  using enum clock::PipelineSchedule;
  // Products of this model are so short on eight devices that less than four of ten collectives hide behind them.
  const double narrow = waited(2, one_f_one_b, 0.0) / waited(2, one_f_one_b, 1.0),
               wide = waited(8, one_f_one_b, 0.0) / waited(8, one_f_one_b, 1.0);
  EXPECT_NEAR(narrow, 0.6, 0.02);
  EXPECT_GT(wide, narrow + 0.05);
  EXPECT_LT(wide, 1.0);
  for (const clock::PipelineSchedule schedule : {zb_h1, zb_h2, zb_v, dualpipe})
    EXPECT_NEAR(waited(2, schedule, 0.0), waited(2, schedule, 1.0), 1e-9 * waited(2, schedule, 1.0));
}

TEST(TrainingCost, WhatAllTensorParallelDevicesHaveIsHandedOnInParts) {
  const TrainingCase c("h100-sxm:16", 64);
  Strategy s = testing::strategy_of(1, 1, 8);
  s.parallelism.pipeline = 2, s.schedule = clock::PipelineSchedule::one_f_one_b;
  const auto handover = [&](lower::ResidualScheme residual) {
    s.parallelism.residual = residual;
    const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
    EXPECT_TRUE(cost);
    return cost->parts.handover.value();
  };
  const auto links = stage_links(s.parallelism, s.layout, c.cluster);
  ASSERT_TRUE(links);
  const double whole = 2.0 * testing::sequence * 1024;
  const double gather = collective::collective_time(
                            Plain{}, links->form(role_bit(Role::tensor), program::Collective::all_gather), Bytes(whole))
                            .value();
  const double parts = handover(lower::ResidualScheme::sequence), same = handover(lower::ResidualScheme::replicated);
  EXPECT_GT(parts, 0.0);
  EXPECT_NEAR(same, parts + 64.0 * gather, 1e-9 * same);  // an end sends one result of each microbatch
}

TEST(TrainingCost, StagesGoOnWithTheNextStepAsTheyEndedTheLast) {
  const TrainingCase c("h100-sxm:4", 64);
  Strategy s = testing::strategy_of(1, 1, 1);
  s.parallelism.pipeline = 4;
  const auto bubble = [&](clock::PipelineSchedule schedule) {
    s.schedule = schedule;
    const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
    EXPECT_TRUE(cost);
    return cost->parts.bubble / cost->estimate;
  };
  EXPECT_LT(bubble(clock::PipelineSchedule::zb_h2), 0.015);
  EXPECT_GT(bubble(clock::PipelineSchedule::zb_h1), bubble(clock::PipelineSchedule::zb_h2));
  EXPECT_GT(bubble(clock::PipelineSchedule::one_f_one_b), bubble(clock::PipelineSchedule::zb_h1));
}

TEST(TrainingCost, BoundsEncloseTheIdealAndTheLowerIsNeverAboveTheEstimate) {
  const TrainingCase c("tpu-v5p:4x4x4", 64);
  for (const Strategy& s :
       {testing::strategy_of(1, 64, 1), testing::strategy_of(4, 4, 4), testing::strategy_of(64, 1, 1)}) {
    const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
    ASSERT_TRUE(cost);
    EXPECT_LE(cost->lower, cost->estimate);
    EXPECT_LE(cost->lower, cost->upper);
    EXPECT_GE(cost->lower, cost->compute * (1 - 1e-12));
    EXPECT_NEAR(cost->parts.total().value(), cost->estimate.value(), 1e-12 * cost->estimate.value());
  }
}

TEST(TrainingCost, BoundsEncloseOffloadingToo) {
  TrainingCase c("h100-sxm:8", 64);
  c.question.host = {20_GB_per_s, 0.8, 40_GB_per_s, 1_TB};
  for (const Offload offload : {Offload::none, Offload::activations, Offload::optimizer, Offload::both})
    for (const bool overlap : {true, false}) {
      Strategy s = testing::strategy_of(1, 8, 1);
      s.offload = offload, c.question.overlap = overlap;
      const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
      ASSERT_TRUE(cost);
      EXPECT_LE(cost->lower, cost->estimate);
      EXPECT_LE(cost->lower, cost->upper);
    }
}

TEST(TrainingCost, SharingOutMoreTakesLessMemory) {
  const TrainingCase c("h100-sxm:16", 64);
  double before = 1e30;
  for (int zero = 0; zero <= 3; ++zero) {
    Strategy s = testing::strategy_of(16, 1, 1);
    s.parallelism.zero = zero;
    const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
    ASSERT_TRUE(cost);
    const double held = cost->memory.weights.value() + cost->memory.gradients.value() + cost->memory.master.value() +
                        cost->memory.moments.value();
    EXPECT_LT(held, before);
    before = held;
  }
}

TEST(TrainingCost, RecomputationTradesTimeForMemory) {
  const TrainingCase c("h100-sxm:16", 64);
  Strategy s = testing::strategy_of(1, 16, 1);
  const auto kept = price_strategy(c.question, testing::sequence, c.cluster, s);
  s.recompute = lower::Recompute::full();
  const auto again = price_strategy(c.question, testing::sequence, c.cluster, s);
  ASSERT_TRUE(kept && again);
  EXPECT_LT(again->memory.activations.value(), 0.2 * kept->memory.activations.value());
  EXPECT_GT(again->executed_flops, 1.2 * kept->executed_flops);
  EXPECT_LT(again->executed_flops, 1.34 * kept->executed_flops);
}

// 16 GPUs, pure data parallelism, 8 layers: 2 bytes of weight and 4 of gradient a parameter, 12 of optimizer state.
TEST(TrainingCost, StaticMemoryIsEighteenBytesAParameterUnsharded) {
  const TrainingCase c("h100-sxm:16", 64);
  const auto cost = price_strategy(
      [&] {
        TrainingQuestion q = c.question;
        q.setup.formats.gradients = Dtype::fp32;
        return q;
      }(),
      testing::sequence, c.cluster, testing::strategy_of(16, 1, 1));
  ASSERT_TRUE(cost);
  double parameters = 0.0;
  for (std::size_t k = 0; k < c.model.decoder.kinds.size(); ++k)
    for (const model::Weight& weight : model::layer_weights(c.model, c.model.decoder.kinds[k]))
      parameters += static_cast<double>(weight.elements() * c.model.decoder.count(k));
  for (const model::Weight& weight : model::outer_weights(c.model))
    parameters += static_cast<double>(weight.elements());
  EXPECT_NEAR(cost->memory.weights.value() + cost->memory.gradients.value() + cost->memory.master.value() +
                  cost->memory.moments.value(),
              18.0 * parameters, 1.0);
}

// What is in the background may be in the way; then it waits, so that overlapping never makes a step longer.
TEST(Training, OverlapIsNeverSlower) {
  for (const std::int64_t experts : {0, 8})
    for (const double share : {0.0, 0.2, 1.0})
      for (const Strategy& s :
           {testing::strategy_of(1, 16, 1), testing::strategy_of(4, 4, 1), testing::strategy_of(1, 8, 2),
            testing::strategy_of(1, 16, 1, 1, experts > 0 ? 8 : 1)}) {
        TrainingCase c("h100-sxm:16", 64, experts);
        numbers::CollectiveOverlap& overlap = c.question.setup.effects.overlap;
        overlap = {share, 5_us, 0.1, numbers::TensorOverlap::all, true, true, true};
        const auto beside = price_strategy(c.question, testing::sequence, c.cluster, s);
        c.question.overlap = false;
        const auto apart = price_strategy(c.question, testing::sequence, c.cluster, s);
        ASSERT_TRUE(beside && apart);
        EXPECT_LE(beside->estimate, apart->estimate * (1.0 + 1e-12));
      }
}

// Whatever a schedule puts off, collectives that run beside products cost no more than collectives that are waited for.
TEST(Training, TensorOverlapIsNeverSlower) {
  using enum clock::PipelineSchedule;
  for (const char* where : {"a100-sxm-80:32", "h100-sxm:32"})
    for (const double sequences : {16.0, 64.0})
      for (const clock::PipelineSchedule schedule : {one_f_one_b, zb_h1, zb_h2, zb_v, dualpipe})
        for (const std::int64_t fsdp : testing::sampled<std::int64_t>({1, 4}))
          for (const double share : testing::sampled<double>({0.05, 0.3})) {
            TrainingCase c(where, sequences);
            numbers::CollectiveOverlap& overlap = c.question.setup.effects.overlap;
            overlap.chip_share = share, overlap.piece = 5_us, overlap.tail = 0.1;
            Strategy s = testing::strategy_of(4 / fsdp, fsdp, 4);
            s.parallelism.pipeline = 2, s.schedule = schedule;
            s.parallelism.residual = lower::ResidualScheme::sequence;
            const auto none = price_strategy(c.question, testing::sequence, c.cluster, s);
            overlap.tensor = numbers::TensorOverlap::backward;
            const auto backward = price_strategy(c.question, testing::sequence, c.cluster, s);
            overlap.tensor = numbers::TensorOverlap::all;
            const auto all = price_strategy(c.question, testing::sequence, c.cluster, s);
            ASSERT_TRUE(none && backward && all);
            const std::string which = std::string(where) + " " + std::string(clock::schedule_name(schedule));
            EXPECT_LE(backward->estimate, none->estimate * (1.0 + 1e-12)) << which;
            EXPECT_LE(all->estimate, backward->estimate * (1.0 + 1e-12)) << which;
          }
}

// However much software hides: links that are busy longer than the chip computes are waited for, and no estimate lies
// below what ideal hardware needs.
TEST(TrainingCost, WhatIsHiddenHasSomethingToHideBehind) {
  TrainingCase c("h100-sxm:32", 32, 8);
  c.question.setup.effects.overlap.tensor = numbers::TensorOverlap::all;
  c.question.setup.effects.overlap.ring_context = true;
  for (const std::int64_t tensor : {1, 2, 4, 8, 16})
    for (const std::int64_t context : {1, 2})
      for (const bool over : {false, true}) {
        Strategy s = testing::strategy_of(32 / tensor / context, 1, tensor, context, over ? tensor : 1);
        s.parallelism.residual = lower::ResidualScheme::sequence;
        s.parallelism.expert_over.tensor = over && tensor > 1;
        if (!lower::check_parallelism(s.parallelism, c.model)) continue;
        const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
        ASSERT_TRUE(cost);
        EXPECT_LE(cost->lower, cost->estimate) << tensor << " " << context << " " << over;
        for (const Seconds busy : cost->network)
          EXPECT_LE(busy, cost->lower * (1.0 + 1e-12)) << tensor << " " << context;
      }
}

// Slots that imbalance fills besides are executed and cost time.
TEST(Training, ImbalanceOfExpertsCostsTime) {
  TrainingCase c("h100-sxm:8", 16, 8);
  const Strategy s = testing::strategy_of(1, 8, 1, 1, 8);
  const auto even = price_strategy(c.question, testing::sequence, c.cluster, s);
  c.question.setup.expert_load = 2.0;
  const auto skewed = price_strategy(c.question, testing::sequence, c.cluster, s);
  ASSERT_TRUE(even && skewed);
  EXPECT_GT(skewed->executed_flops, 1.2 * even->executed_flops);
  EXPECT_GT(skewed->estimate, even->estimate);
}

// Sixteen replicas sum fp32 gradients once a step: 2 x 15/16 of the bytes pass the slowest link of each chip, and the
// update reads and writes all states. Ideal hardware has to do both, whatever the batch.
TEST(Training, BoundsCountWhatIsThereOnceAStep) {
  TrainingCase c("h100-sxm:16", 16);
  c.question.setup.formats.gradients = Dtype::fp32;
  const Strategy s = testing::strategy_of(16, 1, 1);
  const auto one = price_strategy(c.question, testing::sequence, c.cluster, s);
  c.question.sequences = 32;
  const auto two = price_strategy(c.question, testing::sequence, c.cluster, s);
  ASSERT_TRUE(one && two);
  const auto replica = static_cast<std::size_t>(Role::data);
  EXPECT_GT(one->end_network[replica], Seconds());
  EXPECT_DOUBLE_EQ(one->network[replica].value(), one->end_network[replica].value());
  EXPECT_DOUBLE_EQ(two->network[replica].value(), one->network[replica].value());
  EXPECT_GT(one->end_memory_time, Seconds());
  EXPECT_NEAR((two->memory_time - two->end_memory_time).value(),
              2.0 * (one->memory_time - one->end_memory_time).value(), 1e-12);
  EXPECT_GE(one->lower, one->network[replica]);
  // In turn: arithmetic, memory and network add up.
  EXPECT_NEAR(one->upper.value(), (one->compute + one->memory_time + one->network[replica]).value(),
              1e-9 * one->upper.value());
}

// What is executed on one chip is what the model asks for, whatever the lengths of both sequences.
TEST(Training, AnEncoderReadsASequenceOfItsOwn) {
  const model::ImportedModel imported = *model::load_model("t5-small", hardware::Catalogue::builtin(), "test");
  TrainingCase c("h100-sxm:1", 4);
  c.question.setup.model = &imported.model;
  c.question.setup.flash = false;  // it would make scores again in the backward pass
  const auto cost = [&](std::int64_t length, std::int64_t source) {
    c.question.setup.source = source;
    return *price_strategy(c.question, length, c.cluster, Strategy{});
  };
  // Beside it there is only what the decoder's mask leaves out.
  const auto masked = [&](std::int64_t source) {
    return cost(512, source).executed_flops - 3.0 * 4.0 * model::sequence_flops(imported.model, 512, source);
  };
  for (const std::int64_t source : {128, 1024, 4096})
    EXPECT_NEAR(masked(source).value(), masked(512).value(), 1e-6 * cost(512, source).executed_flops.value()) << source;
  EXPECT_EQ(cost(512, 0).estimate, cost(512, 512).estimate);
  EXPECT_LT(cost(512, 512).estimate, cost(512, 1024).estimate);
  EXPECT_LT(cost(512, 512).memory.total(), cost(512, 1024).memory.total());
  // Stages hand on the longer of both.
  Strategy staged;
  staged.parallelism.pipeline = 2;
  const auto handed = [&](std::int64_t source) {
    c.question.setup.source = source;
    return make_profile(c.question.setup, profile_key(staged, 512)).boundary;
  };
  EXPECT_EQ(handed(2048), 4.0 * handed(512));
  EXPECT_EQ(handed(128), handed(512));
}

// Attention stays in bf16 where products are made in fp8: each is a share of its own peak.
TEST(Training, KindsAreSharesOfThePeakOfTheirFormat) {
  TrainingCase c("h100-sxm:1", 4);
  c.question.setup.rates = *kernel::kernel_rates(c.cluster.chip, Dtype::fp8, "test");
  c.question.setup.formats.compute = Dtype::fp8;
  const auto kinds = kind_times(c.question, testing::sequence, c.cluster, testing::strategy_of(1, 1, 1));
  ASSERT_TRUE(kinds);
  const auto peak = [&](Dtype dtype) { return hardware::peak_rate(c.cluster.chip, dtype, "test")->value; };
  int seen = 0;
  for (const KindTime& one : *kinds) {
    const double share = one.flops / one.time / peak(Dtype::bf16);
    if (one.kind == "attention") EXPECT_NEAR(one.share_of_peak(), share, 1e-9);
    if (one.kind == "products") {  // those of the head, which is no layer, are made in bf16
      EXPECT_LT(one.share_of_peak(), share);
      EXPECT_GT(one.share_of_peak(), share / 2);
    }
    seen += one.kind == "attention" || one.kind == "products";
    if (one.kind == "other kernels") EXPECT_EQ(one.share_of_peak(), 0.0);
  }
  EXPECT_EQ(seen, 4);  // forward and backward
}

}  // namespace
}  // namespace assay::training
