#include "assay/predict/search/training/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "assay/testing/sampling.h"
#include "assay/testing/training_search_case.h"

namespace assay::search {
namespace {

constexpr std::int64_t sequence = 2048;

/// Layers of experts, five of them: they do not divide evenly over stages. Where they alternate, eight, and every
/// second one has no experts.
model::Transformer small_model(bool alternate) {
  model::Transformer model = assay::testing::training_search::tiny_model();
  model.vocabulary = 32768;
  model::Layer layer = model.decoder.kinds.front();
  layer.feed_forward->width = 1024;
  layer.feed_forward->experts = 8;
  layer.feed_forward->experts_per_token = 2;
  model.decoder = {};
  model::Layer plain = layer;
  plain.feed_forward->experts = 0;
  for (int i = 0; i < (alternate ? 8 : 5); ++i) model.decoder.add(alternate && i % 2 == 0 ? plain : layer);
  return model;
}

struct Case {
  model::Transformer model;
  hardware::Cluster cluster;
  training::TrainingQuestion question;

  Case(const char* where, bool overlap, bool alternate)
      : model(small_model(alternate)),
        cluster(*hardware::parse_cluster(where, hardware::Catalogue::builtin(), "test")) {
    question.setup.model = &model;
    question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test");
    question.chips = static_cast<double>(cluster.chips());
    question.overlap = overlap;
    numbers::StepEffects& effects = question.setup.effects;
    effects.overlap = {0.3, 5_us, 0.1, numbers::TensorOverlap::all, true, true, true};
    effects.straggler = 0.05;
    effects.fixed = 1_ms;
  }
};

// Bounds from the passes of a microbatch alone, with overlapped traffic of weights and with all that is known: each
// bound is at least the one before, and none is above what the step takes.
TEST(TrainingBound, IsNotAboveTheStepAndGrowsWithWhatIsKnown) {
  using enum clock::PipelineSchedule;
  constexpr std::pair<clock::PipelineSchedule, std::int64_t> orders[] = {
      {one_f_one_b, 1}, {zb_h1, 1},       {zb_h2, 1},       {zb_v, 1},
      {dualpipe, 1},    {interleaved, 1}, {interleaved, 2}, {interleaved, 4}};
  std::int64_t tried = 0, priced = 0;
  double closest = 0.0;
  for (const char* where : testing::sampled<const char*>({"h100-sxm:32", "tpu-v5e:4x8"}))
    for (const bool overlap : {true, false})
      for (const std::int64_t tensor : {1, 2})
        for (const std::int64_t pipeline : {1, 2, 4})
          for (const std::int64_t fsdp : testing::sampled<std::int64_t>({1, 4}))
            for (const std::int64_t microbatches : testing::sampled(std::vector<std::int64_t>{1, 2, 4, 7, 8, 16}))
              for (const auto& [schedule, chunks] : orders) {
                ++tried;
                Case c(where, overlap, chunks > 1);
                training::Strategy s;
                lower::Parallelism& p = s.parallelism;
                p.tensor = tensor;
                p.pipeline = pipeline;
                p.fsdp = fsdp;
                p.expert = 2;
                p.data = 32 / (tensor * pipeline * fsdp);
                p.zero = p.data > 1 ? 1 : 0;
                s.schedule = pipeline == 1 ? one_f_one_b : schedule;
                s.interleave = pipeline == 1 ? 1 : chunks;
                if (pipeline * chunks > clock::layers_of(c.model)) continue;
                c.question.sequences = static_cast<double>(p.data * p.fsdp * microbatches);
                const clock::PipelineShape shape{s.schedule, pipeline, microbatches, s.interleave};
                if (pipeline > 1 && !clock::is_possible(shape)) continue;
                const clock::StageSplit split = training::stage_split(c.model, s);
                const auto links = training::strategy_links(c.question, c.cluster, s);
                if (!links) continue;
                const auto cost = training::price_strategy(c.question, sequence, c.cluster, s);
                ASSERT_TRUE(cost);
                const training::ProfileKey key = training::profile_key(s, sequence);
                const training::TrainingProfile work = training::make_profile(c.question.setup, key,
                                                                              training::ProfilePart::work),
                                                traffic = training::make_profile(
                                                    c.question.setup, key, training::ProfilePart::weights_traffic);
                const TrainingBound bound(c.question);
                TrainingChoices choices;
                choices.schedule = s.schedule;
                choices.interleave = s.interleave;
                const TrainingSpace space(c.question, sequence, c.cluster, choices);
                LayersOfOrders layers(c.model, space);
                const OrderLayers& order = layers.of(p).each.front();
                const auto seconds = [&](const LeastTimes& least, Seconds hop) {
                  StageSums sums;
                  bound.add_stages(least, static_cast<double>(microbatches), split, hop, sums);
                  return bound.least_step({least, sums, shape, split, order, hop}, Seconds(HUGE_VAL));
                };
                training::MicrobatchCost steady;
                LeastTimes least;
                training::fill_passes({c.question, s, work, nullptr, *links}, steady);
                bound.fill(steady, least);
                const Seconds without_weights = seconds(least, Seconds());
                bound.add_weights(bound.weights_times(traffic, *links), least);
                const Seconds with_weights = seconds(least, Seconds());
                training::fill_passes({c.question, s, work, &traffic, *links}, steady);
                bound.fill(steady, least);
                const Seconds all = seconds(least, steady.hop.under(s.schedule));
                EXPECT_LE(without_weights, with_weights * (1.0 + 1e-12));
                EXPECT_LE(with_weights, all * (1.0 + 1e-12));
                EXPECT_LE(all, cost->estimate) << where << " tp " << tensor << " pp " << pipeline << " fsdp " << fsdp
                                               << " m " << microbatches << " " << clock::schedule_name(s.schedule);
                ++priced;
                closest = std::max(closest, all / cost->estimate);
              }
  EXPECT_GT(priced, tried / 5);
  EXPECT_GT(closest, 0.9);
}

// What a part of a larger microbatch takes at least is not above what it takes when it is priced, in any of its shares.
TEST(TrainingBound, OfAPartOfAMicrobatchIsNotAboveItsOwn) {
  double closest = 0.0;
  for (const char* where : {"h100-sxm:32", "tpu-v5e:4x8"})
    for (const auto tensor : {numbers::TensorOverlap::none, numbers::TensorOverlap::all})
      for (const std::int64_t tp : {1, 2, 4})
        for (const std::int64_t micro : {1, 2, 4, 6}) {
          Case c(where, true, true);
          const auto calibration = *hardware::calibration_of(c.cluster.chip, hardware::Catalogue::builtin());
          if (calibration)
            c.question.setup.rates = *kernel::kernel_rates(c.cluster.chip, Dtype::bf16, "test", &calibration->values);
          numbers::StepEffects& effects = c.question.setup.effects;
          effects.overlap.tensor = tensor;
          effects.joins_products = tp > 1;
          effects.start.value = 2_us;
          effects.launch.value = 5_us;
          c.question.sequences = 12.0 * 32.0;
          training::Strategy s;
          s.parallelism.tensor = tp;
          s.parallelism.expert = 2;
          s.parallelism.data = 32 / tp;
          const auto links = training::strategy_links(c.question, c.cluster, s);
          if (!links) continue;
          const auto work_of = [&](std::int64_t sequences) {
            s.micro_batch = sequences;
            return training::make_profile(c.question.setup, training::work_key(s, sequence),
                                          training::ProfilePart::work);
          };
          const TrainingBound bound(c.question);
          training::MicrobatchCost passes;
          LeastTimes part, own;
          const training::TrainingProfile whole = work_of(12);
          bound.fill_share({c.question, s, whole, nullptr, *links}, static_cast<double>(micro) / 12.0, passes, part);
          const training::TrainingProfile alone = work_of(micro);
          training::fill_passes({c.question, s, alone, nullptr, *links}, passes);
          bound.fill(passes, own);
          const auto check = [&](const LeastTimes::Share& least, const LeastTimes::Share& share) {
            const auto input = [](const LeastTimes::Share& of) {
              return of.passes.backward - of.passes.weight_gradients;
            };
            EXPECT_LE(least.both, share.both);
            EXPECT_LE(least.passes.forward, share.passes.forward);
            EXPECT_LE(input(least), input(share));
            EXPECT_LE(least.passes.weight_gradients, share.passes.weight_gradients);
          };
          for (std::size_t k = 0; k < own.kinds.size(); ++k) check(part.kinds[k], own.kinds[k]);
          check(part.embedding, own.embedding);
          check(part.head, own.head);
          closest = std::max(closest, part.all.both / own.all.both);
        }
  EXPECT_GT(closest, 0.5);
}

}  // namespace
}  // namespace assay::search
