#include "assay/schedule/training.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "assay/schedule/overlap.h"

namespace assay {
namespace {

Transformer small_model(std::int64_t experts = 0) {
  Transformer model;
  model.id = "small";
  model.d_model = 1024;
  model.vocabulary = 32768;
  Layer layer;
  Attention attention;
  attention.heads = 16, attention.kv_heads = 8, attention.head_dim = attention.value_dim = 64;
  layer.attention = attention;
  FeedForward mlp;
  mlp.width = 4096;
  layer.feed_forward = mlp;
  model.decoder.add(layer);
  if (experts > 0) {
    layer.feed_forward->experts = experts;
    layer.feed_forward->experts_per_token = 2;
    layer.feed_forward->width = 1024;
  }
  for (int i = 0; i < 7; ++i) model.decoder.add(layer);
  return model;
}

struct Case {
  Transformer model;
  Cluster cluster;
  TrainingQuestion question;

  Case(const char* where, double sequences, std::int64_t experts = 0)
      : model(small_model(experts)), cluster(*parse_cluster(where, Catalogue::builtin(), "test")) {
    question.setup.model = &model;
    question.setup.rates = *kernel_rates(cluster.chip, Dtype::bf16, "test");
    question.sequences = sequences;
    question.chips = static_cast<double>(cluster.chips());
  }
};

Strategy strategy_of(std::int64_t data, std::int64_t fsdp, std::int64_t tensor, std::int64_t context = 1,
                     std::int64_t expert = 1) {
  Strategy s;
  s.parallelism.data = data, s.parallelism.fsdp = fsdp, s.parallelism.tensor = tensor;
  s.parallelism.context = context, s.parallelism.expert = expert;
  return s;
}

constexpr std::int64_t sequence = 2048;

/// A stage's program for so many sequences at once, in the question's formats.
Program program_of(const Case& c, const Strategy& s, std::int64_t sequences) {
  TrainingPlan plan;
  plan.work.sequences = sequences, plan.work.queries = plan.work.keys = sequence;
  plan.formats = c.question.setup.formats;
  plan.recompute = s.recompute;
  return lower_training(c.model, stage_mesh(s.parallelism), training_rules(s.parallelism), plan);
}

/// Seconds of the program itself, lowered with the real sizes of every axis and priced step by step.
struct Direct {
  double compute = 0, waited = 0, hidden = 0, once = 0;
};

Direct direct(const Case& c, const Strategy& s) {
  const Parallelism& p = s.parallelism;
  const Program program = program_of(c, s, s.micro_batch * p.data * p.fsdp);
  const Mesh mesh = whole_mesh(p, s.layout);
  const Placement placement = *Placement::make(mesh, c.cluster, "test");
  const StepTimes times = step_times(program, c.question.setup.rates, &placement, mesh,
                                     network_efficiency(c.cluster.chip), routing_of(c.model));
  Direct sum;
  for (const Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const Step& step = program.steps[static_cast<std::size_t>(i)];
      const double seconds = static_cast<double>(block.layers) * times.estimate[static_cast<std::size_t>(i)].value();
      if (!is_collective(step.op)) {
        if (block.phase != Phase::update) sum.compute += seconds;
      } else if (step.once) {
        sum.once += seconds;
      } else {
        (step.urgency == Urgency::critical ? sum.waited : sum.hidden) += seconds;
      }
    }
  return sum;
}

TEST(StepTimes, CopiesOfKeysReceiveTheirOwnPartOfTheTensorAxis) {
  // Four heads of keys on eight devices: pairs sum their gradients. Within a node a pair has the links of all eight,
  // so that the price equals that of a mesh on which pairs are an axis of their own.
  Case c("h100-sxm:8", 64);
  for (Layer& layer : c.model.decoder.kinds) layer.attention->kv_heads = 4;
  const Parallelism p{.tensor = 8};
  const auto [mesh, rules] = training_stage(p, c.model);
  ASSERT_EQ(mesh_text(mesh), "Y=4,V=2");
  TrainingPlan plan;
  plan.work.queries = plan.work.keys = sequence;
  const Program program = lower_training(c.model, mesh, rules, plan);
  const Mesh whole = whole_mesh(p, 0);
  const Placement placement = *Placement::make(whole, c.cluster, "test"),
                  cut = *Placement::make(mesh, c.cluster, "test");
  const StepTimes times = step_times(program, c.question.setup.rates, &placement, whole, 1.0);
  int parts = 0;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    if (!is_collective(step.op) || step.axes != axis_bit(1)) continue;
    const auto exact =
        collective_cost(Plain{}, collective_of(step.op), array_bytes(program, step), cut.group(step.axes));
    EXPECT_NEAR(times.estimate[i] / (exact.bandwidth + exact.latency), 1.0, 1e-9);
    ++parts;
  }
  EXPECT_EQ(parts, 2);
}

TEST(TrainingCost, EqualsTheProgramPricedStepByStep) {
  const Case dense("h100-sxm:16", 64), experts("h100-sxm:16", 64, 8);
  for (const Case* c : {&dense, &experts})
    for (Strategy s : {strategy_of(1, 16, 1), strategy_of(4, 2, 2), strategy_of(16, 1, 1), strategy_of(2, 1, 8),
                       strategy_of(1, 4, 2, 2), strategy_of(2, 4, 2)}) {
      if (c == &experts && s.parallelism.data * s.parallelism.fsdp % 4 == 0) s.parallelism.expert = 4;
      for (const RecomputePolicy& policy : recompute_policies) {
        s.recompute = policy.parts;
        const double m = microbatches(c->question, s);
        const auto cost = price_strategy(c->question, sequence, c->cluster, s);
        ASSERT_TRUE(cost) << cost.error().what;
        const Direct want = direct(*c, s);
        EXPECT_NEAR(cost->parts.compute / m, want.compute, 1e-9 * want.compute);
        EXPECT_NEAR((cost->parts.tensor + cost->parts.context + cost->parts.expert) / m, want.waited,
                    1e-9 * want.waited + 1e-12);
      }
    }
}

TEST(TrainingCost, ExpertsExchangeTokensBesideAnotherMicrobatchWhereTheScheduleHasOne) {
  Case c("h100-sxm:16", 64, 8);
  Strategy s = strategy_of(8, 1, 1);
  s.parallelism.expert = 8, s.parallelism.pipeline = 2, s.schedule = PipelineSchedule::one_f_one_b;
  const auto expert_seconds = [&](PipelineSchedule schedule, std::int64_t interleave, double waited) {
    Strategy used = s;
    used.schedule = schedule, used.interleave = interleave;
    c.question.setup.effects.expert_waited = waited;
    const auto cost = price_strategy(c.question, sequence, c.cluster, used);
    EXPECT_TRUE(cost);
    EXPECT_NEAR(cost->parts.total(), cost->estimate, 1e-12 * cost->estimate);
    return cost->parts.expert;
  };
  const double whole = expert_seconds(PipelineSchedule::one_f_one_b, 1, 1.0);
  EXPECT_GT(whole, 0.0);
  EXPECT_DOUBLE_EQ(expert_seconds(PipelineSchedule::one_f_one_b, 1, 0.25), whole);
  EXPECT_NEAR(expert_seconds(PipelineSchedule::interleaved, 2, 0.25), 0.25 * whole, 1e-9 * whole);
  // Of eight layers the first has no experts: four stand on the slower stage, or half of all seven on both.
  EXPECT_NEAR(expert_seconds(PipelineSchedule::dualpipe, 1, 0.25), 0.25 * whole * 3.5 / 4.0, 1e-9 * whole);
}

// A layer gathers and scatters its input twice each way, and gathers both inputs again for gradients of weights: of ten
// collectives as large as each other, the two scattered sums of gradients and the two that are gathered again have
// gradients of weights beside them. Replicated, with all but its last product made again, it is two sums of five.
TEST(TrainingCost, GradientsOfWeightsAreMadeBesideCollectivesOfTheBackwardPass) {
  Case c("h100-sxm:2", 64);
  const auto waited = [&](const Strategy& s, double beside) {
    c.question.setup.effects.beside_waited = beside;
    const auto cost = price_strategy(c.question, sequence, c.cluster, s);
    EXPECT_TRUE(cost);
    return cost->parts.tensor;
  };
  Strategy s = strategy_of(1, 1, 2);
  s.parallelism.residual = ResidualScheme::sequence;
  EXPECT_NEAR(waited(s, 0.0) / waited(s, 1.0), 0.6, 0.02);
  EXPECT_NEAR(waited(s, 0.5) / waited(s, 1.0), 0.8, 0.01);
  s.parallelism.residual = ResidualScheme::replicated, s.recompute = Recompute::full();
  EXPECT_NEAR(waited(s, 0.0) / waited(s, 1.0), 0.6, 0.02);
}

TEST(TrainingCost, GradientsOfWeightsHideNoMoreThanTheyTakeAndNothingWhereTheyArePutOff) {
  Case c("h100-sxm:16", 64);
  const auto waited = [&](std::int64_t tensor, PipelineSchedule schedule, double beside) {
    Strategy s = strategy_of(8 / tensor, 1, tensor);
    s.parallelism.pipeline = 2, s.schedule = schedule, s.parallelism.residual = ResidualScheme::sequence;
    c.question.setup.effects.beside_waited = beside;
    const auto cost = price_strategy(c.question, sequence, c.cluster, s);
    EXPECT_TRUE(cost);
    EXPECT_NEAR(cost->parts.total(), cost->estimate, 1e-12 * cost->estimate);
    return cost->parts.tensor;
  };
  using enum PipelineSchedule;
  // Products of this model are so short on eight devices that less than four of ten collectives hide behind them.
  const double narrow = waited(2, one_f_one_b, 0.0) / waited(2, one_f_one_b, 1.0),
               wide = waited(8, one_f_one_b, 0.0) / waited(8, one_f_one_b, 1.0);
  EXPECT_NEAR(narrow, 0.6, 0.02);
  EXPECT_GT(wide, narrow + 0.05);
  EXPECT_LT(wide, 1.0);
  for (const PipelineSchedule schedule : {zb_h1, zb_h2, zb_v, dualpipe})
    EXPECT_NEAR(waited(2, schedule, 0.0), waited(2, schedule, 1.0), 1e-9 * waited(2, schedule, 1.0));
}

TEST(TrainingCost, WhatAllTensorParallelDevicesHaveIsHandedOnInParts) {
  const Case c("h100-sxm:16", 64);
  Strategy s = strategy_of(1, 1, 8);
  s.parallelism.pipeline = 2, s.schedule = PipelineSchedule::one_f_one_b;
  const auto handover = [&](ResidualScheme residual) {
    s.parallelism.residual = residual;
    const auto cost = price_strategy(c.question, sequence, c.cluster, s);
    EXPECT_TRUE(cost);
    return cost->parts.handover;
  };
  const auto links = stage_links(s.parallelism, s.layout, c.cluster);
  ASSERT_TRUE(links);
  const double whole = 2.0 * sequence * 1024;
  const double gather =
      links->forms[role_bit(Role::tensor)][StageLinks::line_of(CollectiveKind::all_gather)].seconds(whole, 1.0);
  const double parts = handover(ResidualScheme::sequence), same = handover(ResidualScheme::replicated);
  EXPECT_GT(parts, 0.0);
  EXPECT_NEAR(same, parts + 2.0 * 64.0 * gather, 1e-9 * same);
}

TEST(TrainingCost, StagesGoOnWithTheNextStepAsTheyEndedTheLast) {
  const Case c("h100-sxm:4", 64);
  Strategy s = strategy_of(1, 1, 1);
  s.parallelism.pipeline = 4;
  const auto bubble = [&](PipelineSchedule schedule) {
    s.schedule = schedule;
    const auto cost = price_strategy(c.question, sequence, c.cluster, s);
    EXPECT_TRUE(cost);
    return cost->parts.bubble / cost->estimate;
  };
  EXPECT_LT(bubble(PipelineSchedule::zb_h2), 0.015);
  EXPECT_GT(bubble(PipelineSchedule::zb_h1), bubble(PipelineSchedule::zb_h2));
  EXPECT_GT(bubble(PipelineSchedule::one_f_one_b), bubble(PipelineSchedule::zb_h1));
}

TEST(TrainingCost, BoundsEncloseTheIdealAndTheLowerIsNeverAboveTheEstimate) {
  const Case c("tpu-v5p:4x4x4", 64);
  for (const Strategy& s : {strategy_of(1, 64, 1), strategy_of(4, 4, 4), strategy_of(64, 1, 1)}) {
    const auto cost = price_strategy(c.question, sequence, c.cluster, s);
    ASSERT_TRUE(cost);
    EXPECT_LE(cost->lower, cost->estimate);
    EXPECT_LE(cost->lower, cost->upper);
    EXPECT_GE(cost->lower, cost->compute * (1 - 1e-12));
    EXPECT_NEAR(cost->parts.total(), cost->estimate, 1e-12 * cost->estimate);
  }
}

TEST(TrainingCost, BoundsEncloseOffloadingToo) {
  Case c("h100-sxm:8", 64);
  c.question.host = {20e9, 0.8, 40e9, 1e12};
  for (const Offload offload : {Offload::none, Offload::activations, Offload::optimizer, Offload::both})
    for (const bool overlap : {true, false}) {
      Strategy s = strategy_of(1, 8, 1);
      s.offload = offload, c.question.overlap = overlap;
      const auto cost = price_strategy(c.question, sequence, c.cluster, s);
      ASSERT_TRUE(cost);
      EXPECT_LE(cost->lower, cost->estimate);
      EXPECT_LE(cost->lower, cost->upper);
    }
}

TEST(TrainingCost, SharingOutMoreTakesLessMemory) {
  const Case c("h100-sxm:16", 64);
  double before = 1e30;
  for (int zero = 0; zero <= 3; ++zero) {
    Strategy s = strategy_of(16, 1, 1);
    s.parallelism.zero = zero;
    const auto cost = price_strategy(c.question, sequence, c.cluster, s);
    ASSERT_TRUE(cost);
    const double held = cost->memory.weights + cost->memory.gradients + cost->memory.master + cost->memory.moments;
    EXPECT_LT(held, before);
    before = held;
  }
}

TEST(TrainingCost, RecomputationTradesTimeForMemory) {
  const Case c("h100-sxm:16", 64);
  Strategy s = strategy_of(1, 16, 1);
  const auto kept = price_strategy(c.question, sequence, c.cluster, s);
  s.recompute = Recompute::full();
  const auto again = price_strategy(c.question, sequence, c.cluster, s);
  ASSERT_TRUE(kept && again);
  EXPECT_LT(again->memory.activations, 0.2 * kept->memory.activations);
  EXPECT_GT(again->executed_flops, 1.2 * kept->executed_flops);
  EXPECT_LT(again->executed_flops, 1.34 * kept->executed_flops);
}

// 16 GPUs, pure data parallelism, 8 layers: 2 bytes of weight and 4 of gradient a parameter, 12 of optimizer state.
TEST(TrainingCost, StaticMemoryIsEighteenBytesAParameterUnsharded) {
  const Case c("h100-sxm:16", 64);
  const auto cost = price_strategy(
      [&] {
        TrainingQuestion q = c.question;
        q.setup.formats.gradients = Dtype::fp32;
        return q;
      }(),
      sequence, c.cluster, strategy_of(16, 1, 1));
  ASSERT_TRUE(cost);
  double parameters = 0.0;
  for (std::size_t k = 0; k < c.model.decoder.kinds.size(); ++k)
    for (const Weight& weight : layer_weights(c.model, c.model.decoder.kinds[k]))
      parameters += static_cast<double>(weight.elements() * c.model.decoder.count(k));
  for (const Weight& weight : outer_weights(c.model)) parameters += static_cast<double>(weight.elements());
  EXPECT_NEAR(cost->memory.weights + cost->memory.gradients + cost->memory.master + cost->memory.moments,
              18.0 * parameters, 1.0);
}

TEST(StageSplit, HoldsEveryLayerOnceAndTheEndsOnce) {
  const Transformer model = small_model(8);
  for (std::int64_t stages : {1, 2, 3, 4, 5, 8}) {
    const StageSplit split = split_stages(model, stages);
    std::int64_t layers = 0, count = 0, firsts = 0, lasts = 0;
    for (const StageSplit::Part& part : split.parts) {
      for (std::int16_t n : part.layers) layers += n * part.stages;
      count += part.stages, firsts += part.first ? part.stages : 0, lasts += part.last ? part.stages : 0;
    }
    EXPECT_EQ(layers, model.decoder.layers());
    EXPECT_EQ(count, stages);
    EXPECT_EQ(firsts, 1);
    EXPECT_EQ(lasts, 1);
  }
}

// Folded, seven more layers than twice four: every layer once, both ends on the first stage, the same layers in parts.
TEST(StageSplit, FoldedHoldsBothEndsOnTheFirstStage) {
  const Transformer model = small_model(8);
  for (std::int64_t stages : {2, 3, 4}) {
    const StageSplit split = split_stages(model, stages, StageLayout::folded),
                     parts = split_parts(model, stages, 2, StageLayout::folded);
    ASSERT_EQ(split.part_of.size(), static_cast<std::size_t>(stages));
    ASSERT_EQ(parts.part_of.size(), static_cast<std::size_t>(2 * stages));
    const auto layers = [](const StageSplit& of, std::int64_t stage) {
      std::int64_t sum = 0;
      for (std::int16_t n : of.parts[static_cast<std::size_t>(of.part_of[static_cast<std::size_t>(stage)])].layers)
        sum += n;
      return sum;
    };
    std::int64_t all = 0;
    for (std::int64_t s = 0; s < stages; ++s) {
      const StageSplit::Part& part = split.parts[static_cast<std::size_t>(split.part_of[static_cast<std::size_t>(s)])];
      EXPECT_EQ(part.first, s == 0);
      EXPECT_EQ(part.last, s == 0);
      EXPECT_EQ(layers(split, s), layers(parts, s) + layers(parts, 2 * stages - 1 - s));
      all += layers(split, s);
    }
    EXPECT_EQ(all, model.decoder.layers());
  }
}

// 126 layers on 16 stages: 7 on the first and on the last one, 8 on all others, however many chunks they are cut into.
TEST(StageSplit, ChunksOfAStageAreItsLayers) {
  Transformer model = small_model(8);
  while (model.decoder.layers() < 126) model.decoder.add(model.decoder.kinds.back());
  const auto layers = [](const StageSplit& split, std::int64_t at) {
    std::int64_t sum = 0;
    for (std::int16_t n : split.parts[static_cast<std::size_t>(split.part_of[static_cast<std::size_t>(at)])].layers)
      sum += n;
    return sum;
  };
  for (const std::int64_t stages : {2, 4, 5, 16, 61})
    for (std::int64_t chunks = 2; stages * chunks <= 126; ++chunks) {
      const StageSplit split = split_stages(model, stages), parts = split_parts(model, stages, chunks);
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        std::int64_t sum = 0, least = 126, most = 0;
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
          const std::int64_t n = layers(parts, chunk * stages + stage);
          sum += n, least = std::min(least, n), most = std::max(most, n);
        }
        EXPECT_EQ(sum, layers(split, stage)) << stages << " " << chunks << " " << stage;
        if (stages == 16) EXPECT_EQ(sum, stage == 0 || stage == 15 ? 7 : 8);
        EXPECT_GE(least, 1);
        EXPECT_LE(most - least, 1);
      }
    }
}

// What is in the background may be in the way; then it waits, so that overlapping never makes a step longer.
TEST(Training, OverlapIsNeverSlower) {
  for (const std::int64_t experts : {0, 8})
    for (const double contention : {0.0, 0.5, 2.0})
      for (const Strategy& s : {strategy_of(1, 16, 1), strategy_of(4, 4, 1), strategy_of(1, 8, 2),
                                strategy_of(1, 16, 1, 1, experts > 0 ? 8 : 1)}) {
        Case c("h100-sxm:16", 64, experts);
        c.question.setup.effects.contention = contention, c.question.setup.effects.tensor_waited = 0.5;
        const auto beside = price_strategy(c.question, sequence, c.cluster, s);
        c.question.overlap = false;
        const auto apart = price_strategy(c.question, sequence, c.cluster, s);
        ASSERT_TRUE(beside && apart);
        EXPECT_LE(beside->estimate, apart->estimate * (1.0 + 1e-12));
      }
}

// However much software hides: links that are busy longer than the chip computes are waited for, and no estimate lies
// below what ideal hardware needs.
TEST(TrainingCost, WhatIsHiddenHasSomethingToHideBehind) {
  Case c("h100-sxm:32", 32, 8);
  c.question.setup.effects.tensor_waited = c.question.setup.effects.context_waited = 0.05;
  for (const std::int64_t tensor : {1, 2, 4, 8, 16})
    for (const std::int64_t context : {1, 2})
      for (const bool over : {false, true}) {
        Strategy s = strategy_of(32 / tensor / context, 1, tensor, context, over ? tensor : 1);
        s.parallelism.residual = ResidualScheme::sequence;
        s.parallelism.expert_over.tensor = over && tensor > 1;
        if (!check_parallelism(s.parallelism, c.model)) continue;
        const auto cost = price_strategy(c.question, sequence, c.cluster, s);
        ASSERT_TRUE(cost);
        EXPECT_LE(cost->lower, cost->estimate) << tensor << " " << context << " " << over;
        for (double busy : cost->network) EXPECT_LE(busy, cost->lower * (1.0 + 1e-12)) << tensor << " " << context;
      }
}

// Slots that imbalance fills besides are executed and cost time.
TEST(Training, ImbalanceOfExpertsCostsTime) {
  Case c("h100-sxm:8", 16, 8);
  const Strategy s = strategy_of(1, 8, 1, 1, 8);
  const auto even = price_strategy(c.question, sequence, c.cluster, s);
  c.question.setup.expert_load = 2.0;
  const auto skewed = price_strategy(c.question, sequence, c.cluster, s);
  ASSERT_TRUE(even && skewed);
  EXPECT_GT(skewed->executed_flops, 1.2 * even->executed_flops);
  EXPECT_GT(skewed->estimate, even->estimate);
}

// Sixteen replicas sum fp32 gradients once a step: 2 x 15/16 of the bytes pass the slowest link of each chip, and the
// update reads and writes all states. Ideal hardware has to do both, whatever the batch.
TEST(Training, BoundsCountWhatIsThereOnceAStep) {
  Case c("h100-sxm:16", 16);
  c.question.setup.formats.gradients = Dtype::fp32;
  const Strategy s = strategy_of(16, 1, 1);
  const auto one = price_strategy(c.question, sequence, c.cluster, s);
  c.question.sequences = 32;
  const auto two = price_strategy(c.question, sequence, c.cluster, s);
  ASSERT_TRUE(one && two);
  const auto replica = static_cast<std::size_t>(Role::replica);
  EXPECT_GT(one->end_network[replica], 0.0);
  EXPECT_DOUBLE_EQ(one->network[replica], one->end_network[replica]);
  EXPECT_DOUBLE_EQ(two->network[replica], one->network[replica]);
  EXPECT_GT(one->end_memory_time, 0.0);
  EXPECT_NEAR(two->memory_time - two->end_memory_time, 2.0 * (one->memory_time - one->end_memory_time), 1e-12);
  EXPECT_GE(one->lower, one->network[replica]);
  // In turn: arithmetic, memory and network add up.
  EXPECT_NEAR(one->upper, one->compute + one->memory_time + one->network[replica], 1e-9 * one->upper);
}

TEST(Training, DualpipeHoldsGradientsOfBothItsParts) {
  const Case c("h100-sxm:4", 16);
  Strategy s = strategy_of(1, 1, 1);
  s.parallelism.pipeline = 4;
  const auto one = price_strategy(c.question, sequence, c.cluster, s);
  s.schedule = PipelineSchedule::dualpipe;
  const auto both = price_strategy(c.question, sequence, c.cluster, s);
  ASSERT_TRUE(one && both);
  EXPECT_NEAR(both->memory.gradients, 2.0 * one->memory.gradients, 1e-4 * one->memory.gradients);
}

// Two stages that both hold the whole model and work on half of the microbatches are two replicas, less efficient by
// what they hand over and by the products that they put off: the same gradients are summed over the same links, 4 bytes
// of each, half of them sent and half gathered; the same states are updated.
TEST(Training, DualpipeOfTwoStagesSumsAndUpdatesAsTwoReplicasDo) {
  for (const int zero : {0, 1})
    for (const bool overlap : {true, false}) {
      Case c("h100-sxm:16", 16);
      c.question.setup.formats.gradients = Dtype::fp32;
      c.question.overlap = overlap;
      Strategy s = strategy_of(2, 1, 8);
      const auto replicas = price_strategy(c.question, sequence, c.cluster, s);
      s.parallelism.data = 1, s.parallelism.pipeline = 2, s.schedule = PipelineSchedule::dualpipe;
      s.parallelism.zero = zero;
      const auto copies = price_strategy(c.question, sequence, c.cluster, s);
      ASSERT_TRUE(replicas && copies);
      double parameters = 0.0;
      for (std::size_t k = 0; k < c.model.decoder.kinds.size(); ++k)
        for (const Weight& weight : layer_weights(c.model, c.model.decoder.kinds[k]))
          parameters +=
              static_cast<double>(weight.elements() * c.model.decoder.count(k)) / (weight.elements() > 1024 ? 8 : 1);
      for (const Weight& weight : outer_weights(c.model))
        parameters += static_cast<double>(weight.elements()) / (weight.elements() > 1024 ? 8 : 1);
      const double nic = c.cluster.chip.network.scale_out->bandwidth.value.value();
      EXPECT_NEAR(copies->copies, 4.0 * parameters / nic, 1e-3 * copies->copies);
      EXPECT_NEAR(copies->copies, replicas->end_network[static_cast<std::size_t>(Role::replica)],
                  1e-9 * copies->copies);
      EXPECT_GE(copies->lower, copies->copies);
      EXPECT_NEAR(copies->parts.gradients, replicas->parts.gradients, 1e-9 * replicas->parts.gradients);
      EXPECT_NEAR(copies->parts.update, replicas->parts.update, 1e-9 * replicas->parts.update);
      EXPECT_NEAR(copies->memory.weights, replicas->memory.weights, 1.0);
      EXPECT_NEAR(copies->memory.gradients, replicas->memory.gradients, 1.0);
      EXPECT_NEAR(copies->memory.moments, replicas->memory.moments, 1.0);
      EXPECT_GE(copies->estimate, replicas->estimate);
      EXPECT_GE(copies->parts.bubble, 0.0);
      // The events end with the same.
      const auto input = pipeline_input(c.question, sequence, c.cluster, s);
      ASSERT_TRUE(input);
      for (const Seconds end : input->at_end)
        EXPECT_NEAR(end.value(), copies->parts.gradients + copies->parts.update, 1e-9 * end.value());
    }
}

// Four replicas of four stages: a stage reduces gradients of both its parts over the replicas, then each replica's
// quarter of the sums over both copies. The update is of all that a stage holds.
TEST(Training, DualpipeDoesOnceAStepWhatBothItsPartsNeed) {
  Case c("h100-sxm:16", 64);
  c.question.overlap = false;
  Strategy s = strategy_of(4, 1, 1);
  s.parallelism.pipeline = 4;
  for (const int zero : {0, 1, 2}) {
    s.parallelism.zero = zero;
    s.schedule = PipelineSchedule::one_f_one_b;
    const auto one = price_stages(c.question, sequence, c.cluster, s, stage_split(c.model, s));
    s.schedule = PipelineSchedule::dualpipe;
    const auto both = price_stages(c.question, sequence, c.cluster, s, stage_split(c.model, s));
    ASSERT_TRUE(one && both);
    const SteadyCost::Part &inner = one->parts[1], &inner_both = both->parts[1];
    ASSERT_FALSE(inner.first || inner.last || inner_both.first || inner_both.last);
    EXPECT_EQ(inner_both.layers, 2.0 * inner.layers);
    EXPECT_NEAR(inner_both.gradients - inner_both.copies, 2.0 * inner.gradients, 1e-12);
    EXPECT_NEAR(inner_both.update, 2.0 * inner.update, 1e-12);
    EXPECT_NEAR(inner_both.memory.moments, 2.0 * inner.memory.moments, 1.0);
    EXPECT_GT(inner_both.copies, 0.0);
    const double gradients = storage(c.question.setup.formats.gradients, 1.0).value();
    const double held = inner_both.memory.weights / storage(c.question.setup.formats.weights, 1.0).value();
    const auto links = strategy_links(c.question, c.cluster, s);
    ASSERT_TRUE(links);
    EXPECT_NEAR(inner_both.ideal_copies, held * gradients / 4.0 * links->copies.rate.value(),
                1e-9 * inner_both.ideal_copies);
  }
}

// Sums over two copies cross the middle of the pipeline: all pairs use the middle link of a line, half of them go round
// the other way on a ring. Switches have a way for each.
TEST(Training, PairsOfStagesCrossTheMiddleOfATorus) {
  struct Shape {
    const char* where;
    std::int64_t tensor, stages;
    double crossing;
  };
  for (const auto& [where, tensor, stages, crossing] :
       {Shape{"tpu-v5e:4x8", 4, 8, 4}, Shape{"tpu-v5e:16x16", 16, 16, 4}, Shape{"tpu-v5e:2x4", 4, 2, 1},
        Shape{"h100-sxm:64", 8, 8, 1}, Shape{"h100-sxm:16", 8, 2, 1}}) {
    const Case c(where, 64);
    Strategy s = strategy_of(1, 1, tensor);
    s.parallelism.pipeline = stages, s.schedule = PipelineSchedule::dualpipe;
    const auto links = strategy_links(c.question, c.cluster, s);
    ASSERT_TRUE(links);
    EXPECT_NEAR(links->copies.rate / links->between_stages.rate, crossing, 1e-9) << where;
  }
}

// Both directions pass every stage with half of the microbatches: parts that differ take their mean, and the ends of
// the model lie on both ends of the pipeline.
TEST(Training, DualpipeTakesTheMeanOfItsTwoParts) {
  const Case c("h100-sxm:4", 16, 8);
  Strategy s = strategy_of(1, 1, 1);
  s.parallelism.pipeline = 4, s.schedule = PipelineSchedule::dualpipe;
  const StageSplit split = stage_split(c.model, s);
  const auto steady = price_stages(c.question, sequence, c.cluster, s, split);
  const auto input = pipeline_input(c.question, sequence, c.cluster, s);
  ASSERT_TRUE(steady && input);
  const auto result = simulate_pipeline(*input);
  ASSERT_TRUE(result);
  const auto part_seconds = [&](std::size_t part) {
    const StageTimes& t = input->times[part];
    return (t.forward + t.backward_input + t.backward_weight).value();
  };
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const SteadyCost::Part& part = steady->parts[static_cast<std::size_t>(split.part_of[stage])];
    EXPECT_EQ(part.first, stage == 0 || stage == 3);
    EXPECT_EQ(part.last, part.first);
    EXPECT_NEAR(part.forward + part.backward + part.beside, (part_seconds(stage) + part_seconds(3 - stage)) / 2.0,
                1e-9 * part.forward);
    double busy = 0.0;
    for (const PipelineEvent& event : result->events)
      if (event.stage == static_cast<std::int64_t>(stage) && event.work != PipelineWork::send &&
          event.work != PipelineWork::at_end)
        busy += (event.end - event.start).value();
    EXPECT_NEAR(busy, 16.0 * (part.forward + part.backward + part.beside), 1e-9 * busy);
  }
}

TEST(Training, MemoryIsThatOfTheFullestStage) {
  using enum PipelineSchedule;
  for (const double sequences : {4.0, 6.0, 8.0, 32.0})
    for (const PipelineSchedule schedule : {gpipe, one_f_one_b, zb_h1, zb_h2, zb_v, dualpipe}) {
      const Case c("h100-sxm:4", sequences);
      Strategy s = strategy_of(1, 1, 1);
      s.parallelism.pipeline = 4, s.schedule = schedule;
      if (!is_possible({schedule, 4, static_cast<std::int64_t>(sequences), 1})) continue;
      const StageSplit split = stage_split(c.model, s);
      const auto steady = price_stages(c.question, sequence, c.cluster, s, split);
      ASSERT_TRUE(steady);
      double most = 0.0;
      for (const MemoryParts& memory : stage_memory(*steady, split, s)) most = std::max(most, memory.total());
      EXPECT_DOUBLE_EQ(training_cost(*steady, s).memory.total(), most) << schedule_name(schedule) << " " << sequences;
    }
}

// The events are those of the estimate: every stage is busy for as long as its layers, its sends and the end of the
// step take, and the whole takes about as long.
TEST(Training, EventsOfAPipelineTakeAsLongAsItsEstimate) {
  const Case c("h100-sxm:4", 32);
  using enum PipelineSchedule;
  for (const PipelineSchedule schedule : {gpipe, one_f_one_b, interleaved, zb_h1, zb_v, dualpipe}) {
    Strategy s = strategy_of(1, 1, 1);
    s.parallelism.pipeline = 4, s.schedule = schedule, s.interleave = schedule == interleaved ? 2 : 1;
    const auto input = pipeline_input(c.question, sequence, c.cluster, s);
    const auto cost = price_strategy(c.question, sequence, c.cluster, s);
    ASSERT_TRUE(input && cost);
    EXPECT_EQ(input->times.size(), static_cast<std::size_t>(model_parts(input->shape)));
    EXPECT_GT(input->times.back().forward, input->times[1].forward);  // the head
    EXPECT_GT(input->transfer, Seconds());
    const auto result = simulate_pipeline(*input);
    ASSERT_TRUE(result);
    EXPECT_NEAR(result->interval.value(), cost->estimate, 0.25 * cost->estimate) << schedule_name(schedule);
  }
}

// Thirteen layers on two stages and on four, in chunks of unlike lengths: the estimate waits for the largest chunk.
TEST(Training, UnevenChunksTakeAboutAsLongAsTheirEstimate) {
  for (const auto& [where, stages] :
       {std::pair{"h100-sxm:2", std::int64_t{2}}, std::pair{"tpu-v5e:2x2", std::int64_t{4}}}) {
    Case c(where, 32);
    for (int i = 0; i < 5; ++i) c.model.decoder.add(c.model.decoder.kinds.front());
    for (std::int64_t chunks = 2; chunks * stages <= 13; ++chunks) {
      Strategy s = strategy_of(1, 1, 1);
      s.parallelism.pipeline = stages, s.schedule = PipelineSchedule::interleaved, s.interleave = chunks;
      const auto input = pipeline_input(c.question, sequence, c.cluster, s);
      const auto cost = price_strategy(c.question, sequence, c.cluster, s);
      ASSERT_TRUE(input && cost);
      const auto result = simulate_pipeline(*input);
      ASSERT_TRUE(result);
      EXPECT_NEAR(result->interval.value(), cost->estimate, 0.1 * cost->estimate) << stages << " " << chunks;
      const StageSplit split = stage_split(c.model, s);
      const auto steady = price_stages(c.question, sequence, c.cluster, s, split);
      ASSERT_TRUE(steady);
      // Of every stage the simulation holds no more layers than memory counts.
      const std::vector<MemoryParts> memory = stage_memory(*steady, split, s);
      const StageSplit parts = split_parts(c.model, stages, chunks);
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        double held = 0.0, most = 0.0;
        for (const PipelineEvent& event : result->events) {
          if (event.stage != stage) continue;
          double layers = 0.0;
          for (std::int16_t n : parts
                                    .parts[static_cast<std::size_t>(
                                        parts.part_of[static_cast<std::size_t>(event.chunk * stages + stage)])]
                                    .layers)
            layers += n;
          if (event.work == PipelineWork::forward) most = std::max(most, held += layers);
          if (event.work == PipelineWork::backward) held -= layers;
        }
        const SteadyCost::Part& part =
            steady->parts[static_cast<std::size_t>(split.part_of[static_cast<std::size_t>(stage)])];
        EXPECT_GE(memory[static_cast<std::size_t>(stage)].activations * (1.0 + 1e-12), most * part.kept / part.layers);
        EXPECT_LE(memory[static_cast<std::size_t>(stage)].activations, 2.0 * most * part.kept / part.layers);
      }
    }
  }
}

TEST(Overlap, NoLaneDoesTwoThingsAtOnceAndInputsComeFirst) {
  const Case c("tpu-v5p:4x4x4", 64);
  const Strategy s = strategy_of(1, 16, 4);
  const Program program = program_of(c, s, 16);
  const Mesh mesh = whole_mesh(s.parallelism, 0);
  const Placement placement = *Placement::make(mesh, c.cluster, "test");
  const StepTimes times = step_times(program, c.question.setup.rates, &placement, mesh, 1.0);
  const OverlapSchedule schedule = schedule_blocks(program, program.blocks, times);
  std::vector<double> lane_end(schedule.lanes.size() + 1, 0.0);
  double busy = 0.0;
  for (const ScheduledStep& step : schedule.steps) {
    EXPECT_GE(step.start.value(), lane_end[static_cast<std::size_t>(step.lane)]);
    lane_end[static_cast<std::size_t>(step.lane)] = step.end.value();
    busy += (step.end - step.start).value();
  }
  EXPECT_LT(schedule.end.value(), busy);  // something overlaps
  EXPECT_GE(schedule.end.value(), *std::max_element(lane_end.begin(), lane_end.end()));
}

// Ten equal layers: the first two run freely, each further one waits for the busiest of the chip and the host's lane.
TEST(Overlap, ALayerTakesAsLongAsItsBusiestLane) {
  const Case c("tpu-v5p:4x4x4", 64);
  const Strategy s = strategy_of(1, 1, 1);
  const Program program = program_of(c, s, 1);
  const StepTimes times = step_times(program, c.question.setup.rates, nullptr, whole_mesh(s.parallelism, 0), 1.0);
  const Block &forward = program.blocks[1],
              &backward = *std::find_if(program.blocks.begin(), program.blocks.end(), [&](const Block&b) {
                return b.phase == Phase::backward && b.kind == program.blocks[1].kind;
              });
  for (const Block& block : {forward, backward}) {
    const double alone = schedule_blocks(program, {block}, times).end.value();
    for (double factor : {0.3, 1.0, 2.5}) {
      const Seconds copy(factor * alone);
      const std::vector<Block> layers(10, block);
      const OverlapSchedule schedule = schedule_blocks(program, layers, times, {copy, copy});
      EXPECT_EQ(schedule.copies.size(), 10u);
      const double longest = std::max(alone, copy.value());
      const double expected =
          block.phase == Phase::forward ? 2.0 * alone + 8.0 * longest : copy.value() + 9.0 * longest + alone;
      EXPECT_NEAR(schedule.end.value(), expected, 1e-9 * expected) << factor;
    }
  }
}

}  // namespace
}  // namespace assay
