#include "assay/predict/roofline/scaling.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "assay/hardware/catalogue.h"
#include "assay/predict/roofline/scaling_splits.h"

namespace assay::roofline {
namespace {

/// A v5p as the textbook has it: 459 TFLOP/s, closed rings of 90 GB/s links.
const Sourced<FlopsPerSecond> v5p_peak{459_TFLOP_per_s, "test", ""};

collective::CollectiveGroup rings(int count, double size = 16) {
  collective::CollectiveGroup group;
  group.link = 90_GB_per_s;
  for (int i = 0; i < count; ++i) {
    group.axes.push_back({size, true, 1});
    group.devices *= size;
  }
  return group;
}

LayerRates<Plain> rates(const MlpShape& shape, int fsdp_axes, int tensor_axes) {
  return layer_rates(Plain{}, shape, v5p_peak, {rings(fsdp_axes), rings(tensor_axes)}, Counting::exact);
}

const MlpShape book{.d_model = 8192, .d_ff = 32768};

TEST(Scaling, DataParallelismNeedsPeakOverBandwidthTokensPerChip) {
  // 459e12 / 180e9 = 2550 over one axis, a third of it over three; independent of D and F.
  for (WeightsAre scheme : {WeightsAre::replicated, WeightsAre::sharded}) {
    EXPECT_NEAR(min_tokens_data_parallel(Plain{}, rates(book, 1, 1), scheme).value(), 2550, 1e-9);
    EXPECT_NEAR(min_tokens_data_parallel(Plain{}, rates(book, 3, 1), scheme).value(), 850, 1e-9);
  }
}

TEST(Scaling, ExpertsRaiseTheDataParallelThresholdByTheirSparsity) {
  const MlpShape sparse{.d_model = 2880, .d_ff = 2880, .experts = 128, .experts_per_token = 4};
  EXPECT_NEAR(min_tokens_data_parallel(Plain{}, rates(sparse, 1, 1), WeightsAre::sharded).value(), 32 * 2550, 1e-6);
}

TEST(Scaling, SharedExpertsAreWorkForEveryTokenAndWeightsForNone) {
  // One of 16 routed experts and one that all tokens pass: 17 / 2 as many weights as a token meets, not 16.
  const MlpShape scout{
      .d_model = 5120, .d_ff = 8192, .matrices = 3, .experts = 16, .experts_per_token = 1, .shared = 1};
  EXPECT_NEAR(min_tokens_data_parallel(Plain{}, rates(scout, 3, 1), WeightsAre::sharded).value(), 850 * 17 / 2.0, 1e-6);
  EXPECT_EQ(layer_flops_per_token(Plain{}, scout).value(), 2.0 * 2 * 3 * 5120 * 8192);
}

TEST(Scaling, TensorParallelismIsLimitedByTheWidthOfTheLayer) {
  EXPECT_NEAR(max_tensor_ways(Plain{}, rates(book, 2, 1)), 32768 / 2550.0, 1e-9);
  EXPECT_NEAR(max_tensor_ways(Plain{}, rates(book, 1, 2)), 2 * 32768 / 2550.0, 1e-9);
  MlpShape gated = book;
  gated.matrices = 3;  // half as much arithmetic again for the same activations
  EXPECT_NEAR(max_tensor_ways(Plain{}, rates(gated, 2, 1)), 1.5 * 32768 / 2550.0, 1e-9);
}

TEST(Scaling, AMixNeedsTheSquareOfTheIntensityOverTheWidth) {
  // 2550^2 / (2 x 1 x 32768) = 99.22
  EXPECT_NEAR(min_tokens_mixed(Plain{}, rates(book, 2, 1)).value(), 2550.0 * 2550.0 / (2 * 32768), 1e-9);
}

TEST(Scaling, TheBestMixBalancesBothKindsOfCommunication) {
  const LayerRates<Plain> at = rates(book, 2, 1);
  const Tokens batch(3e6);
  const double fsdp = std::sqrt(best_fsdp_squared(Plain{}, at, batch, 4096));
  EXPECT_NEAR(fsdp, std::sqrt(3e6 / 32768 * 2 * 4096), 1e-6);
  const auto times = layer_times(Plain{}, at, {fsdp, 4096 / fsdp, 1}, batch, WeightsAre::sharded, Pass::forward);
  EXPECT_NEAR(times.weights / times.activations, 1.0, 1e-9);
  EXPECT_NEAR(mixed_ratio(at, batch / 4096), times.compute / times.communication, 1e-9);
}

TEST(Scaling, OneByteFormatsMoveHalfForTwiceTheRate) {
  MlpShape half = book;
  half.element = 1_B;
  const Sourced<FlopsPerSecond> twice{918_TFLOP_per_s, "test", ""};
  const auto at = layer_rates(Plain{}, half, twice, {rings(2), rings(1)}, Counting::exact);
  EXPECT_NEAR(max_tensor_ways(Plain{}, at), 32768 / 2550.0, 1e-9);
}

TEST(Scaling, ExpertParallelismMatchesTheFormOfTheTextbook) {
  // Z = 64 over nodes of 8 at 400 GB/s: 4BD (Z - 8) / (W Z) min(8k/Z, 1) against 4BkDF / (Z C).
  collective::CollectiveGroup group;
  group.devices = 64;
  group.levels.push_back({8, 1, 450_GB_per_s, false, 0});
  group.levels.push_back({8, 8, 50_GB_per_s, false, 1});
  const Sourced<FlopsPerSecond> peak{990_TFLOP_per_s, "test", ""};
  const double d = 7168, f = 2048, z = 64;
  for (double k : {2.0, 8.0, 16.0}) {
    const MlpShape shape{.d_model = d, .d_ff = f, .experts = 256, .experts_per_token = k};
    const auto times = expert_times(Plain{}, shape, peak, group, z);
    EXPECT_NEAR(times.compute.value(), 4 * k * d * f / (z * 990e12), 1e-20);
    EXPECT_NEAR(times.communication.value(), 4 * d * (z - 8) / (400e9 * z) * std::min(8 * k / z, 1.0), 1e-18);
  }
  EXPECT_NEAR(wide_expert_width({.d_model = d, .d_ff = f, .experts = 256, .experts_per_token = 8}, peak.value, group),
              8 * 2475, 1e-6);
}

TEST(Scaling, ABubbleShrinksWithMicrobatchesAndChunks) {
  EXPECT_DOUBLE_EQ(pipeline_bubble(Plain{}, 8, 8, 1), 7.0 / 15.0);
  EXPECT_DOUBLE_EQ(pipeline_bubble(Plain{}, 8, 32, 2), 7.0 / 71.0);
  EXPECT_DOUBLE_EQ(pipeline_bubble(Plain{}, 1, 4, 1), 0.0);
}

TEST(Scaling, TrainingTakesSixFlopPerParameterAndToken) {
  EXPECT_DOUBLE_EQ(training_flops(Plain{}, 70e9, Tokens(15e12)).value(), 6.3e24);
  EXPECT_NEAR(training_time(Plain{}, 70e9, Tokens(15e12), 8960, v5p_peak, 0.4).in(1_day), 44.32, 0.01);
  EXPECT_DOUBLE_EQ(bytes_per_parameter(Plain{}, {}).value(), 10);  // bf16 and two fp32 moments
  EXPECT_DOUBLE_EQ(checkpoint_bytes(Plain{}, 40, Tokens(3e6), 5120 + 2 * 13824, 2_B).value(), 7.86432e12);
}

TEST(Scaling, TracedNumbersAreThePlainOnes) {
  Ledger ledger;
  const Traced num{&ledger};
  const MlpShape shape{.d_model = 5120, .d_ff = 13824, .matrices = 3, .experts = 8, .experts_per_token = 2};
  const auto traced = layer_rates(num, shape, v5p_peak, {rings(2), rings(1)}, Counting::approximate);
  const auto plain_rates = layer_rates(Plain{}, shape, v5p_peak, {rings(2), rings(1)}, Counting::approximate);
  EXPECT_EQ(min_tokens_mixed(num, traced).value(), min_tokens_mixed(Plain{}, plain_rates).value());
  EXPECT_EQ(max_tensor_ways(num, traced).value(), max_tensor_ways(Plain{}, plain_rates));
  EXPECT_EQ(best_fsdp_squared(num, traced, Tokens(3e6), 4096).value(),
            best_fsdp_squared(Plain{}, plain_rates, Tokens(3e6), 4096));
  for (WeightsAre scheme : {WeightsAre::replicated, WeightsAre::sharded})
    for (Pass pass : {Pass::forward, Pass::backward})
      EXPECT_EQ(layer_times(num, traced, {64, 8, 2}, Tokens(1e6), scheme, pass).upper.value(),
                layer_times(Plain{}, plain_rates, {64, 8, 2}, Tokens(1e6), scheme, pass).upper.value());
  EXPECT_EQ(expert_times(num, shape, v5p_peak, rings(1), 16).min_width.value(),
            expert_times(Plain{}, shape, v5p_peak, rings(1), 16).min_width);
}

TEST(ScalingSplits, TheListOfCollectivesCostsWhatTheTimesSay) {
  const Split split{256, 16, 1};
  const Tokens batch(4194304);
  const LayerRates<Plain> at = rates(book, 2, 1);
  for (WeightsAre scheme : {WeightsAre::replicated, WeightsAre::sharded})
    for (Pass pass : {Pass::forward, Pass::backward}) {
      Seconds weights, activations;
      for (const LayerCollective& one : layer_collectives(book, split, batch, scheme))
        if (one.pass == pass && one.needed)
          (one.over_fsdp ? weights : activations) +=
              collective::collective_cost(Plain{}, one.kind, one.bytes, one.over_fsdp ? rings(2) : rings(1)).bandwidth;
      const auto times = layer_times(Plain{}, at, split, batch, scheme, pass);
      EXPECT_NEAR(weights.value(), times.weights.value(), 1e-12);
      EXPECT_NEAR(activations.value(), times.activations.value(), 1e-12);
    }
}

TEST(ScalingSplits, TheBestSplitOfASliceIsTheFastestOfAll) {
  const auto cluster = hardware::parse_cluster("tpu-v5p:8x8x8", hardware::Catalogue::builtin(), "test");
  ASSERT_TRUE(cluster);
  const Tokens batch(200000);
  const auto splits = placed_splits(*cluster, book, v5p_peak, 1, batch);
  ASSERT_GT(splits.size(), 5u);
  for (const PlacedSplit& split : splits) EXPECT_LE(layer_lower(splits.front(), batch), layer_lower(split, batch));
  // A split that says it has a least batch is bound by arithmetic there and by the network below.
  for (const PlacedSplit& split : splits)
    if (const auto least = split.min_batch(); least && *least > Tokens(0)) {
      const auto at = [&](double share) {
        return layer_times(Plain{}, split.rates, split.split, share * *least, WeightsAre::sharded, Pass::forward);
      };
      EXPECT_GE(at(1.001).compute, at(1.001).communication);
      EXPECT_LT(at(0.999).compute, at(0.999).communication);
    }
}

// 1e9 parameters of 2 + 2 x 4 bytes, and 10 layers that save 100 elements of 2 bytes for each of 1e6 tokens: 10 GB and
// 2 GB, on two chips of 8 GB.
TEST(TrainingMemory, HandWorked) {
  const TrainingMemory memory = training_memory({1e9, {2_B, {}, {}, 4_B}, 10, Tokens(1e6), 100, 2_B});
  EXPECT_EQ(memory.state, 10_GB);
  EXPECT_EQ(memory.saved, 2_GB);
  EXPECT_EQ(memory.min_chips(8_GB), 2.0);
  EXPECT_EQ(memory.min_chips(6_GB), 2.0);
  EXPECT_EQ(training_memory({1e9, {2_B, {}, {}, 4_B}, 0, Tokens(1e6), 100, 2_B}).saved, Bytes(0));
}

// The MLP takes 2 x 2 x 8192 x 32768 FLOP per token, attention matrices of 4 D^2 another 8 D^2, and a key 4 D: equal
// from (4 D x 4 D + 8 D^2) / 4 D = 6 D tokens.
TEST(Scaling, AttentionTakesAsMuchAsTheMatricesAtSixTimesTheWidth) {
  EXPECT_DOUBLE_EQ(attention_crossover(book, 4.0 * 8192 * 8192, Flops(4.0 * 8192)).value(), 6.0 * 8192);
}

TEST(Scaling, MixedSplitsRoundToPowersOfTwoWithinTheChips) {
  EXPECT_EQ(power_of_two_ways(0.3), 1.0);
  EXPECT_EQ(power_of_two_ways(28.6), 16.0);
  EXPECT_EQ(power_of_two_ways(32.0), 32.0);
  const LayerRates<Plain> at = rates(book, 2, 1);
  for (const double batch : {1e4, 1e6, 1e8, 1e12}) {
    const MixedSplit split = best_mixed_split(at, Tokens(batch), 4096);
    EXPECT_DOUBLE_EQ(split.fsdp * split.tensor, 4096.0);
    EXPECT_EQ(split.rounded_fsdp * split.rounded_tensor, 4096.0) << batch;
  }
}

// Weak scaling: with as many tokens per chip, a larger slice is never more efficient.
TEST(ScalingSplits, MoreChipsWithAsManyTokensEachAreNoMoreEfficient) {
  double last = 1.0;
  for (const char* text : {"h100-sxm:8", "h100-sxm:64", "h100-sxm:512"}) {
    const auto cluster = hardware::parse_cluster(text, hardware::Catalogue::builtin(), "test");
    ASSERT_TRUE(cluster);
    const auto fastest =
        fastest_split(*cluster, book, v5p_peak, 1, Tokens(500.0 * static_cast<double>(cluster->chips())));
    ASSERT_TRUE(fastest) << text;
    const double efficiency = efficiency_of(fastest->times);
    EXPECT_LE(efficiency, last * (1.0 + 1e-9)) << text;
    EXPECT_EQ(limiter_of(fastest->times), efficiency == 1.0 ? "compute" : "network") << text;
    last = efficiency;
  }
}

// Pure FSDP on 256 H100: into a chip at 450 GB/s, into a node of 8 at 8 x 50 = 400 GB/s. A token's arithmetic is
// 4 D F / peak and its weights 4 D F bytes, so peak / bandwidth tokens per chip, less one part of 8 or of 32.
TEST(LevelThresholds, HandWorked) {
  const auto cluster = hardware::parse_cluster("h100-sxm:256", hardware::Catalogue::builtin(), "test");
  ASSERT_TRUE(cluster);
  const Sourced<FlopsPerSecond> peak{990_TFLOP_per_s, "test", ""};
  const auto split = place_split(*cluster, book, peak, {256, 1, 1}, Counting::exact, "test");
  ASSERT_TRUE(split);
  const std::vector<LevelThresholds> levels = level_thresholds(*cluster, book, *split);
  ASSERT_EQ(levels.size(), 2u);
  ASSERT_TRUE(levels[0].data_parallel && levels[1].data_parallel);
  EXPECT_EQ(levels[0].data_parallel->bandwidth, 450_GB_per_s);
  EXPECT_NEAR(levels[0].data_parallel->approximate_min_tokens.value(), 2200.0, 1e-6);
  EXPECT_NEAR(levels[0].data_parallel->min_tokens.value(), 2200.0 * 7 / 8, 1e-6);
  EXPECT_EQ(levels[1].data_parallel->bandwidth, 400_GB_per_s);
  EXPECT_NEAR(levels[1].data_parallel->min_tokens.value(), 2475.0 * 31 / 32, 1e-6);
  // Two exchanges of 2 D bytes against 4 D F FLOP: F x bandwidth / peak ways, and one chip's or node's own part.
  EXPECT_NEAR(levels[0].approximate_max_tensor, 32768.0 * 450e9 / 990e12, 1e-9);
  EXPECT_NEAR(levels[1].max_tensor, 8.0 + 32768.0 * 400e9 / 990e12, 1e-9);
}

RC_GTEST_PROP(Scaling, NoSplitOfTheChipsBeatsTheBalancedOne, ()) {
  const LayerRates<Plain> at = rates(book, 2, 1);
  const Tokens batch(*rc::gen::inRange(100000, 100000000));
  const double fsdp = std::exp2(*rc::gen::inRange(1, 12));  // both kinds of communication happen
  const auto times = layer_times(Plain{}, at, {fsdp, 4096 / fsdp, 1}, batch, WeightsAre::sharded, Pass::forward);
  RC_ASSERT(times.compute / times.communication <= mixed_ratio(at, batch / 4096) * (1 + 1e-9));
}

RC_GTEST_PROP(Scaling, MoreLinksNeverRaiseAThreshold, ()) {
  const MlpShape shape{.d_model = 128.0 * *rc::gen::inRange(1, 200), .d_ff = 128.0 * *rc::gen::inRange(1, 400)};
  const auto one = rates(shape, 1, 1), two = rates(shape, 2, 2);
  RC_ASSERT(min_tokens_data_parallel(Plain{}, two, WeightsAre::sharded) <=
            min_tokens_data_parallel(Plain{}, one, WeightsAre::sharded));
  RC_ASSERT(min_tokens_mixed(Plain{}, two) <= min_tokens_mixed(Plain{}, one));
  RC_ASSERT(max_tensor_ways(Plain{}, two) >= max_tensor_ways(Plain{}, one));
}

}  // namespace
}  // namespace assay::roofline
