#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "assay/predict/clock/chunks.h"
#include "assay/testing/sampling.h"
#include "assay/testing/training_case.h"

namespace assay::training {
namespace {

using testing::TrainingCase;

TEST(StageSplit, HoldsEveryLayerOnceAndTheEndsOnce) {
  const model::Transformer model = testing::small_model(8);
  for (std::int64_t stages : {1, 2, 3, 4, 5, 8}) {
    const clock::StageSplit split = clock::split_stages(model, stages);
    std::int64_t layers = 0, count = 0, firsts = 0, lasts = 0;
    for (const clock::StageSplit::Part& part : split.parts) {
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
  const model::Transformer model = testing::small_model(8);
  for (std::int64_t stages : {2, 3, 4}) {
    const clock::StageSplit split = clock::split_stages(model, stages, clock::StageLayout::folded),
                            parts = clock::split_parts(model, stages, 2, clock::StageLayout::folded);
    ASSERT_EQ(split.part_of.size(), static_cast<std::size_t>(stages));
    ASSERT_EQ(parts.part_of.size(), static_cast<std::size_t>(2 * stages));
    const auto layers = [](const clock::StageSplit& of, std::int64_t stage) {
      std::int64_t sum = 0;
      for (std::int16_t n : of.parts[static_cast<std::size_t>(of.part_of[static_cast<std::size_t>(stage)])].layers)
        sum += n;
      return sum;
    };
    std::int64_t all = 0;
    for (std::int64_t s = 0; s < stages; ++s) {
      const clock::StageSplit::Part& part =
          split.parts[static_cast<std::size_t>(split.part_of[static_cast<std::size_t>(s)])];
      EXPECT_EQ(part.first, s == 0);
      EXPECT_EQ(part.last, s == 0);
      EXPECT_EQ(layers(split, s), layers(parts, s) + layers(parts, 2 * stages - 1 - s));
      all += layers(split, s);
    }
    EXPECT_EQ(all, model.decoder.layers());
  }
}

// 126 layers in 16 x 8 chunks: embedding and head are chunks by themselves, all others have one layer.
TEST(StageSplit, TheFirstAndTheLastChunkMayHaveNoLayers) {
  model::Transformer model = testing::small_model(8);
  while (model.decoder.layers() < 126) model.decoder.add(model.decoder.kinds.back());
  const std::int64_t chunks = clock::most_chunks(126, 16);
  ASSERT_EQ(chunks, 8);
  const clock::StageSplit parts = clock::split_parts(model, 16, chunks);
  for (std::size_t at = 0; at < parts.part_of.size(); ++at) {
    const clock::StageSplit::Part& part = parts.parts[static_cast<std::size_t>(parts.part_of[at])];
    std::int64_t layers = 0;
    for (const std::int16_t n : part.layers) layers += n;
    EXPECT_EQ(layers, part.first || part.last ? 0 : 1) << at;
  }
}

// 126 layers on 16 stages: 7 on the first and on the last one, 8 on all others, however many chunks they are cut into.
TEST(StageSplit, ChunksOfAStageAreItsLayers) {
  model::Transformer model = testing::small_model(8);
  while (model.decoder.layers() < 126) model.decoder.add(model.decoder.kinds.back());
  const auto layers = [](const clock::StageSplit& split, std::int64_t at) {
    std::int64_t sum = 0;
    for (std::int16_t n : split.parts[static_cast<std::size_t>(split.part_of[static_cast<std::size_t>(at)])].layers)
      sum += n;
    return sum;
  };
  for (const std::int64_t stages : {2, 4, 5, 16, 61})
    for (std::int64_t chunks = 2; stages * chunks <= 126; ++chunks) {
      const clock::StageSplit split = clock::split_stages(model, stages),
                              parts = clock::split_parts(model, stages, chunks);
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

// The head comes with the last chunks, and so do longer ones; the chunk that ends with it is a shorter one.
TEST(StageSplit, LongerChunksLieLastButForTheLastOfAll) {
  model::Transformer model = testing::small_model(8);
  while (model.decoder.layers() < 126) model.decoder.add(model.decoder.kinds.back());
  const clock::StageSplit parts = clock::split_parts(model, 16, 4);
  const auto chunks = [&](std::size_t stage) {
    std::vector<std::int64_t> out;
    for (std::size_t chunk = 0; chunk < 4; ++chunk) {
      std::int64_t sum = 0;
      for (std::int16_t n : parts.parts[static_cast<std::size_t>(parts.part_of[chunk * 16 + stage])].layers) sum += n;
      out.push_back(sum);
    }
    return out;
  };
  EXPECT_EQ(chunks(0), (std::vector<std::int64_t>{1, 2, 2, 2}));
  EXPECT_EQ(chunks(7), (std::vector<std::int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(chunks(15), (std::vector<std::int64_t>{2, 2, 2, 1}));
}

/// Layers by kind of each stage, added up over the runs that the simulation gives it.
std::vector<std::array<std::int64_t, 2>> layers_of_runs(const model::Transformer& model,
                                                        const clock::PipelineShape& shape) {
  const clock::StageSplit runs =
      clock::split_parts(model, shape.stages, clock::model_parts(shape) / shape.stages, layout_of(shape.schedule));
  std::vector<std::array<std::int64_t, 2>> out(static_cast<std::size_t>(shape.stages));
  for (std::int64_t direction = 0; direction < (shape.schedule == clock::PipelineSchedule::dualpipe ? 2 : 1);
       ++direction)
    for (std::size_t run = 0; run < runs.part_of.size(); ++run)
      for (std::size_t k = 0; k < 2; ++k)
        out[static_cast<std::size_t>(clock::stage_of_part(shape, static_cast<std::int64_t>(run), direction))][k] +=
            runs.parts[static_cast<std::size_t>(runs.part_of[run])].layers[k];
  return out;
}

// Every second layer has experts. On two stages with chunks of one layer all of them lie on the second stage.
TEST(StageSplit, StagesHoldTheLayersOfTheirChunks) {
  using enum clock::PipelineSchedule;
  const model::Transformer model = testing::alternating_model();
  const auto held = [&](clock::PipelineSchedule schedule, std::int64_t stages, std::int64_t chunks, std::size_t stage) {
    Strategy s;
    s.parallelism.pipeline = stages, s.schedule = schedule, s.interleave = chunks;
    const clock::StageSplit split = stage_split(model, s);
    const auto& layers = split.parts[static_cast<std::size_t>(split.part_of[stage])].layers;
    return std::array<std::int64_t, 2>{layers[0], layers[1]};
  };
  EXPECT_EQ(held(interleaved, 2, 8, 1), (std::array<std::int64_t, 2>{0, 8}));
  EXPECT_EQ(held(interleaved, 2, 4, 1), (std::array<std::int64_t, 2>{4, 4}));
  for (const std::int64_t stages : {2, 3, 4, 6, 8})
    for (const clock::PipelineSchedule schedule : {one_f_one_b, interleaved, zb_h1, zb_v, dualpipe})
      for (std::int64_t chunks = 1; chunks <= (schedule == interleaved ? 16 / stages : 1); ++chunks) {
        if (schedule == dualpipe && stages % 2 != 0) continue;
        const auto runs = layers_of_runs(model, {schedule, stages, 4 * stages, chunks});
        for (std::size_t stage = 0; stage < runs.size(); ++stage)
          EXPECT_EQ(held(schedule, stages, chunks, stage), runs[stage])
              << clock::schedule_name(schedule) << " " << stages << " x" << chunks << " stage " << stage;
      }
}

TEST(Training, DualpipeHoldsGradientsOfBothItsParts) {
  const TrainingCase c("h100-sxm:4", 16);
  Strategy s = testing::strategy_of(1, 1, 1);
  s.parallelism.pipeline = 4;
  const auto one = price_strategy(c.question, testing::sequence, c.cluster, s);
  s.schedule = clock::PipelineSchedule::dualpipe;
  const auto both = price_strategy(c.question, testing::sequence, c.cluster, s);
  ASSERT_TRUE(one && both);
  EXPECT_NEAR(both->memory.gradients.value(), 2.0 * one->memory.gradients.value(),
              1e-4 * one->memory.gradients.value());
}

// Two stages that both hold the whole model and work on half of the microbatches are two replicas, less efficient by
// what they hand over and by the products that they put off: the same gradients are summed over the same links, 4 bytes
// of each, half of them sent and half gathered; the same states are updated.
TEST(Training, DualpipeOfTwoStagesSumsAndUpdatesAsTwoReplicasDo) {
  for (const int zero : {0, 1})
    for (const bool overlap : {true, false}) {
      TrainingCase c("h100-sxm:16", 16);
      c.question.setup.formats.gradients = Dtype::fp32;
      c.question.overlap = overlap;
      Strategy s = testing::strategy_of(2, 1, 8);
      const auto replicas = price_strategy(c.question, testing::sequence, c.cluster, s);
      s.parallelism.data = 1, s.parallelism.pipeline = 2, s.schedule = clock::PipelineSchedule::dualpipe;
      s.parallelism.zero = zero;
      const auto copies = price_strategy(c.question, testing::sequence, c.cluster, s);
      ASSERT_TRUE(replicas && copies);
      double parameters = 0.0;
      for (std::size_t k = 0; k < c.model.decoder.kinds.size(); ++k)
        for (const model::Weight& weight : model::layer_weights(c.model, c.model.decoder.kinds[k]))
          parameters +=
              static_cast<double>(weight.elements() * c.model.decoder.count(k)) / (weight.elements() > 1024 ? 8 : 1);
      for (const model::Weight& weight : model::outer_weights(c.model))
        parameters += static_cast<double>(weight.elements()) / (weight.elements() > 1024 ? 8 : 1);
      const double nic = c.cluster.chip.network.scale_out->bandwidth.value.value();
      EXPECT_NEAR(copies->copies.value(), 4.0 * parameters / nic, 1e-3 * copies->copies.value());
      EXPECT_NEAR(copies->copies.value(), replicas->end_network[static_cast<std::size_t>(Role::data)].value(),
                  1e-9 * copies->copies.value());
      EXPECT_GE(copies->lower, copies->copies);
      EXPECT_NEAR(copies->parts.gradients.value(), replicas->parts.gradients.value(),
                  1e-9 * replicas->parts.gradients.value());
      EXPECT_NEAR(copies->parts.update.value(), replicas->parts.update.value(), 1e-9 * replicas->parts.update.value());
      EXPECT_NEAR(copies->memory.weights.value(), replicas->memory.weights.value(), 1.0);
      EXPECT_NEAR(copies->memory.gradients.value(), replicas->memory.gradients.value(), 1.0);
      EXPECT_NEAR(copies->memory.moments.value(), replicas->memory.moments.value(), 1.0);
      EXPECT_GE(copies->estimate, replicas->estimate);
      EXPECT_GE(copies->parts.bubble.value(), 0.0);
      // The events end with the same.
      const auto input = pipeline_input(c.question, testing::sequence, c.cluster, s);
      ASSERT_TRUE(input);
      for (const Seconds end : input->at_end)
        EXPECT_NEAR(end.value(), copies->parts.gradients.value() + copies->parts.update.value(), 1e-9 * end.value());
    }
}

// Four replicas of four stages: a stage reduces gradients of both its parts over the replicas, then each replica's
// quarter of the sums over both copies. The update is of all that a stage holds.
TEST(Training, DualpipeDoesOnceAStepWhatBothItsPartsNeed) {
  TrainingCase c("h100-sxm:16", 64);
  c.question.overlap = false;
  Strategy s = testing::strategy_of(4, 1, 1);
  s.parallelism.pipeline = 4;
  for (const int zero : {0, 1, 2}) {
    s.parallelism.zero = zero;
    s.schedule = clock::PipelineSchedule::one_f_one_b;
    const auto one = price_stages(c.question, testing::sequence, c.cluster, s, stage_split(c.model, s));
    s.schedule = clock::PipelineSchedule::dualpipe;
    const auto both = price_stages(c.question, testing::sequence, c.cluster, s, stage_split(c.model, s));
    ASSERT_TRUE(one && both);
    const MicrobatchCost::Part &inner = one->parts[1], &inner_both = both->parts[1];
    ASSERT_FALSE(inner.first || inner.last || inner_both.first || inner_both.last);
    EXPECT_EQ(inner_both.layers, 2.0 * inner.layers);
    EXPECT_NEAR((inner_both.gradients - inner_both.copies).value(), 2.0 * inner.gradients.value(), 1e-12);
    EXPECT_NEAR(inner_both.update.value(), 2.0 * inner.update.value(), 1e-12);
    EXPECT_NEAR(inner_both.memory.moments.value(), 2.0 * inner.memory.moments.value(), 1.0);
    EXPECT_GT(inner_both.copies, Seconds());
    const double gradients = storage(c.question.setup.formats.gradients, 1.0).value();
    const double held = inner_both.memory.weights.value() / storage(c.question.setup.formats.weights, 1.0).value();
    const auto links = strategy_links(c.question, c.cluster, s);
    ASSERT_TRUE(links);
    EXPECT_NEAR(inner_both.ideal.copies.value(), held * gradients / 4.0 * links->copies.rate.value(),
                1e-9 * inner_both.ideal.copies.value());
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
    const TrainingCase c(where, 64);
    Strategy s = testing::strategy_of(1, 1, tensor);
    s.parallelism.pipeline = stages, s.schedule = clock::PipelineSchedule::dualpipe;
    const auto links = strategy_links(c.question, c.cluster, s);
    ASSERT_TRUE(links);
    EXPECT_NEAR(links->copies.rate / links->between_stages.rate, crossing, 1e-9) << where;
  }
}

// Both directions pass every stage with half of the microbatches: parts that differ take their mean, and the ends of
// the model lie on both ends of the pipeline.
TEST(Training, DualpipeTakesTheMeanOfItsTwoParts) {
  const TrainingCase c("h100-sxm:4", 16, 8);
  Strategy s = testing::strategy_of(1, 1, 1);
  s.parallelism.pipeline = 4, s.schedule = clock::PipelineSchedule::dualpipe;
  const clock::StageSplit split = stage_split(c.model, s);
  const auto microbatch = price_stages(c.question, testing::sequence, c.cluster, s, split);
  const auto input = pipeline_input(c.question, testing::sequence, c.cluster, s);
  ASSERT_TRUE(microbatch && input);
  const auto result = clock::simulate_pipeline(*input);
  ASSERT_TRUE(result);
  const auto part_seconds = [&](std::size_t part) {
    const clock::StageTimes& t = input->times[part];
    return (t.forward + t.backward_input + t.backward_weight).value();
  };
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const MicrobatchCost::Part& part = microbatch->parts[static_cast<std::size_t>(split.part_of[stage])];
    EXPECT_EQ(part.first, stage == 0 || stage == 3);
    EXPECT_EQ(part.last, part.first);
    const double passes = (part.forward + part.backward + part.deferral_cost).value();
    EXPECT_NEAR(passes, (part_seconds(stage) + part_seconds(3 - stage)) / 2.0, 1e-9 * passes);
    double busy = 0.0;
    for (const clock::PipelineEvent& event : result->events)
      if (event.stage == static_cast<std::int64_t>(stage) && event.work != clock::PipelineWork::send &&
          event.work != clock::PipelineWork::at_end)
        busy += (event.end - event.start).value();
    EXPECT_NEAR(busy, 16.0 * passes, 1e-9 * busy);
  }
}

TEST(Training, MemoryIsThatOfTheFullestStage) {
  using enum clock::PipelineSchedule;
  for (const double sequences : {4.0, 6.0, 8.0, 32.0})
    for (const clock::PipelineSchedule schedule : {gpipe, one_f_one_b, zb_h1, zb_h2, zb_v, dualpipe}) {
      const TrainingCase c("h100-sxm:4", sequences);
      Strategy s = testing::strategy_of(1, 1, 1);
      s.parallelism.pipeline = 4, s.schedule = schedule;
      if (!clock::is_possible({schedule, 4, static_cast<std::int64_t>(sequences), 1})) continue;
      const clock::StageSplit split = stage_split(c.model, s);
      const auto microbatch = price_stages(c.question, testing::sequence, c.cluster, s, split);
      ASSERT_TRUE(microbatch);
      double most = 0.0;
      for (const MemoryParts& memory : stage_memory(*microbatch, split, s))
        most = std::max(most, memory.total().value());
      EXPECT_DOUBLE_EQ(training_cost(*microbatch, s).memory.total().value(), most)
          << clock::schedule_name(schedule) << " " << sequences;
    }
}

// The estimate is that of the events, whatever the stages: the head is heavier than a layer here.
TEST(Training, EventsOfAPipelineTakeAsLongAsItsEstimate) {
  const TrainingCase c("h100-sxm:4", 32);
  using enum clock::PipelineSchedule;
  for (const clock::PipelineSchedule schedule : {gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, zb_v, dualpipe}) {
    Strategy s = testing::strategy_of(1, 1, 1);
    s.parallelism.pipeline = 4, s.schedule = schedule, s.interleave = schedule == interleaved ? 2 : 1;
    const auto input = pipeline_input(c.question, testing::sequence, c.cluster, s);
    const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
    ASSERT_TRUE(input && cost);
    EXPECT_EQ(input->times.size(), static_cast<std::size_t>(clock::model_parts(input->shape)));
    EXPECT_GT(input->times.back().forward, input->times[1].forward);  // the head
    EXPECT_EQ(input->transfer > Seconds(), schedule != interleaved) << "another chunk runs meanwhile";
    const auto result = clock::simulate_pipeline(*input);
    ASSERT_TRUE(result);
    EXPECT_NEAR(result->interval.value(), cost->estimate.value(), 1e-9 * cost->estimate.value())
        << clock::schedule_name(schedule);
    EXPECT_GE(cost->parts.bubble.value(), 0.0) << clock::schedule_name(schedule);
  }
}

// A send takes a share of the chip while another chunk computes, and the whole of it where software overlaps nothing.
TEST(Training, InterleavedStagesSendWhileTheyCompute) {
  TrainingCase c("h100-sxm:4", 32);
  c.question.setup.effects.overlap.chip_share = 0.2;
  Strategy s = testing::strategy_of(1, 1, 1);
  s.parallelism.pipeline = 4, s.interleave = 2;
  const auto transfer = [&](clock::PipelineSchedule schedule, bool overlap) {
    s.schedule = schedule, s.interleave = schedule == clock::PipelineSchedule::interleaved ? 2 : 1;
    c.question.overlap = overlap;
    return pipeline_input(c.question, testing::sequence, c.cluster, s)->transfer;
  };
  using enum clock::PipelineSchedule;
  const Seconds alone = transfer(one_f_one_b, true);
  EXPECT_GT(alone, Seconds());
  EXPECT_EQ(transfer(interleaved, false), alone);
  EXPECT_DOUBLE_EQ(transfer(interleaved, true).value(), 0.2 * alone.value());
}

// Layers with experts take longer, and chunks put all of them on some stages: no step is shorter than the busiest stage
// of its events, nor does its memory hold less than the stage with most experts.
TEST(Training, StagesOfUnlikeLayersArePricedByWhatTheyHold) {
  using enum clock::PipelineSchedule;
  TrainingCase c("h100-sxm:4", 32);
  c.model = testing::alternating_model();
  for (const std::int64_t stages : {2, 4})
    for (const clock::PipelineSchedule schedule : {one_f_one_b, interleaved, zb_h1, zb_h2, zb_v, dualpipe})
      for (std::int64_t chunks = schedule == interleaved ? 2 : 1; chunks <= (schedule == interleaved ? 16 / stages : 1);
           ++chunks) {
        Strategy s = testing::strategy_of(4 / stages, 1, 1);
        s.parallelism.pipeline = stages, s.schedule = schedule, s.interleave = chunks;
        const auto input = pipeline_input(c.question, testing::sequence, c.cluster, s);
        const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
        ASSERT_TRUE(input && cost);
        const auto result = clock::simulate_pipeline(*input);
        ASSERT_TRUE(result);
        std::vector<double> busy(static_cast<std::size_t>(stages));
        for (const clock::PipelineEvent& event : result->events)
          busy[static_cast<std::size_t>(event.stage)] += (event.end - event.start).value();
        const std::string which =
            std::string(clock::schedule_name(schedule)) + " " + std::to_string(stages) + " x" + std::to_string(chunks);
        EXPECT_GE(cost->estimate.value() * (1.0 + 1e-9), *std::max_element(busy.begin(), busy.end())) << which;
        EXPECT_NEAR(result->interval.value(), cost->estimate.value(), 1e-9 * cost->estimate.value()) << which;
        std::int64_t most = 0;
        for (const auto& layers : layers_of_runs(c.model, input->shape)) most = std::max(most, layers[1]);
        double experts = 0.0;
        for (const model::Weight& weight : model::layer_weights(c.model, c.model.decoder.kinds[1]))
          experts += static_cast<double>(weight.elements());
        EXPECT_GE(cost->memory.weights.value(), 2.0 * experts * static_cast<double>(most)) << which;
      }
}

// Layers that do not make two equal runs a stage: the first run of a stage is shorter or empty, also that of the first
// stage, whose second one ends with the head.
TEST(Training, FoldedStagesOfUnlikeRunsTakeAsLongAsTheirEstimate) {
  for (const std::int64_t stages : testing::sampled<std::int64_t>({4, 8, 16}))
    for (const double rounds : {2.0, 4.0})
      for (std::int64_t layers = stages; layers <= 4 * stages; layers += stages / 4) {
        TrainingCase c("h100-sxm:16", rounds * 16.0);
        while (c.model.decoder.layers() < layers) c.model.decoder.add(c.model.decoder.kinds.front());
        c.model.decoder.order.resize(static_cast<std::size_t>(layers));
        Strategy s = testing::strategy_of(16 / stages, 1, 1);
        s.parallelism.pipeline = stages, s.schedule = clock::PipelineSchedule::zb_v;
        const auto input = pipeline_input(c.question, testing::sequence, c.cluster, s);
        const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
        ASSERT_TRUE(input && cost);
        const auto result = clock::simulate_pipeline(*input);
        ASSERT_TRUE(result);
        EXPECT_NEAR(result->interval.value(), cost->estimate.value(), 1e-9 * cost->estimate.value())
            << layers << " layers on " << stages << " stages";
      }
}

// Thirteen layers on two stages and on four, in chunks of unlike lengths.
TEST(Training, UnevenChunksTakeAsLongAsTheirEstimate) {
  for (const auto& [where, stages] :
       {std::pair{"h100-sxm:2", std::int64_t{2}}, std::pair{"tpu-v5e:2x2", std::int64_t{4}}}) {
    TrainingCase c(where, 32);
    for (int i = 0; i < 5; ++i) c.model.decoder.add(c.model.decoder.kinds.front());
    for (std::int64_t chunks = 2; chunks * stages <= 13; ++chunks) {
      Strategy s = testing::strategy_of(1, 1, 1);
      s.parallelism.pipeline = stages, s.schedule = clock::PipelineSchedule::interleaved, s.interleave = chunks;
      const auto input = pipeline_input(c.question, testing::sequence, c.cluster, s);
      const auto cost = price_strategy(c.question, testing::sequence, c.cluster, s);
      ASSERT_TRUE(input && cost);
      const auto result = clock::simulate_pipeline(*input);
      ASSERT_TRUE(result);
      EXPECT_NEAR(result->interval.value(), cost->estimate.value(), 1e-9 * cost->estimate.value())
          << stages << " " << chunks;
      const clock::StageSplit split = stage_split(c.model, s);
      const auto microbatch = price_stages(c.question, testing::sequence, c.cluster, s, split);
      ASSERT_TRUE(microbatch);
      // Of every stage the simulation holds no more layers than memory counts.
      const std::vector<MemoryParts> memory = stage_memory(*microbatch, split, s);
      const clock::StageSplit parts = clock::split_parts(c.model, stages, chunks);
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        double held = 0.0, most = 0.0;
        for (const clock::PipelineEvent& event : result->events) {
          if (event.stage != stage) continue;
          double layers = 0.0;
          for (std::int16_t n : parts
                                    .parts[static_cast<std::size_t>(
                                        parts.part_of[static_cast<std::size_t>(event.chunk * stages + stage)])]
                                    .layers)
            layers += n;
          if (event.work == clock::PipelineWork::forward) most = std::max(most, held += layers);
          if (event.work == clock::PipelineWork::backward) held -= layers;
        }
        const MicrobatchCost::Part& part =
            microbatch->parts[static_cast<std::size_t>(split.part_of[static_cast<std::size_t>(stage)])];
        EXPECT_GE(memory[static_cast<std::size_t>(stage)].activations * (1.0 + 1e-12), most * part.kept / part.layers);
        EXPECT_LE(memory[static_cast<std::size_t>(stage)].activations, 2.0 * most * part.kept / part.layers);
      }
    }
  }
}

// As many kinds of layers as there may be: each has its own width, as in OpenELM.
TEST(StageSplit, HoldsAsManyKindsAsThereArePrograms) {
  model::Transformer model = testing::small_model();
  for (std::int64_t k = 1; model.decoder.kinds.size() < model::max_layer_kinds; ++k) {
    model::Layer layer = model.decoder.kinds[0];
    layer.feed_forward->width += 64 * k;
    model.decoder.add(layer);
  }
  const std::int64_t all = model.decoder.layers();
  ASSERT_EQ(model.decoder.kinds.size(), model::max_layer_kinds);
  EXPECT_TRUE(lower::check_lowers(model, "test"));
  std::int64_t layers = 0;
  for (const clock::StageSplit::Part& part : clock::split_stages(model, 4).parts)
    for (std::int16_t n : part.layers) layers += n * part.stages;
  EXPECT_EQ(layers, all);
  model::Layer more = model.decoder.kinds[0];
  more.feed_forward->width = 32;
  model.decoder.add(more);
  EXPECT_FALSE(lower::check_lowers(model, "test"));
}

}  // namespace
}  // namespace assay::training
