#include "assay/predict/serving/profile.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "assay/hardware/calibration.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/clock/stage_split.h"
#include "assay/testing/catalogue.h"
#include "assay/testing/training_case.h"

namespace assay::serving {
namespace {

using testing::catalogue;

struct Case {
  model::Transformer model;
  hardware::Cluster cluster;
  ServingSetup setup;

  Case(const std::string& id, const std::string& where, bool calibrated = false)
      : model(model::load_model(id, catalogue(), "test")->model),
        cluster(*hardware::parse_cluster(where, catalogue(), "test")) {
    const auto calibration = *hardware::calibration_of(cluster.chip, catalogue());
    setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test",
                                        calibrated && calibration ? &calibration->values : nullptr);
    setup.model = &model;
  }
  Case(const Case&) = delete;
};

ServingStrategy strategy_of(std::int64_t tensor, std::int64_t data = 1, std::int64_t expert = 1,
                            lower::CacheScheme cache = lower::CacheScheme::heads) {
  ServingStrategy s;
  s.tensor = tensor, s.data = data, s.expert = expert;
  s.scheme.cache = cache;
  return s;
}

void scale_largest(ServingProfile& profile, double by) {
  ServingProfile::Blocks blocks = *profile.blocks;
  for (ServingProfile::Block& block : blocks) block.largest *= by;
  profile.blocks = std::make_shared<const ServingProfile::Blocks>(std::move(blocks));
}

training::StageLinks links_of(const Case& c, const ServingStrategy& s) {
  return serving_links(c.setup, s, c.cluster).value();
}

/// The step lowered for exactly this batch and priced step by step.
ServingTime direct(const Case& c, const ServingStrategy& s, std::int64_t queries, std::int64_t keys,
                   std::int64_t batch) {
  const lower::Parallelism p = s.parallelism();
  lower::Workload work;
  work.sequences = batch, work.queries = queries, work.keys = keys, work.cached = true;
  work.source = c.model.encoder ? keys : 0;
  const program::Program program =
      lower::lower_serving(c.model, lower::stage_mesh(p), lower::serving_rules(p, s.scheme), work, c.setup.formats);
  const program::Mesh mesh = training::whole_mesh(p, s.layout);
  const collective::Placement placement = *collective::Placement::make(mesh, c.cluster, "test");
  const std::vector<Seconds> times =
      testing::plain_step_times(program, c.setup.rates, &placement, mesh, hardware::network_efficiency(c.cluster.chip),
                                training::routing_of(c.model));
  ServingTime sum;
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const program::Step& step = program.steps[at];
      if (step.op == program::Op::slice) continue;
      const auto layers = static_cast<double>(block.layers);
      sum.estimate += layers * times[at];
      if (program::is_collective(step.op)) continue;
      const kernel::KernelTime kernel = kernel::kernel_time(c.setup.rates, program, step);
      sum.flops += layers * step.flops;
      if (step.flops.value() == 0.0) continue;
      sum.compute += layers * kernel.compute, sum.memory += layers * kernel.memory;
      sum.rooflines += layers * std::max(kernel.compute, kernel.memory);
    }
  return sum;
}

struct Served {
  const char* model;
  const char* where;
  ServingStrategy strategy;
  std::int64_t whole;  ///< batches at which experts' slots come out whole
};

std::vector<Served> served() {
  return {{"llama-2-13b", "tpu-v5e:2x4", strategy_of(8), 1},     // every head has its keys
          {"llama-3-70b", "h100-sxm:8", strategy_of(8), 1},      // grouped keys
          {"llama-3-70b", "h100-sxm:16", strategy_of(8, 2), 1},  // replicas
          {"llama-3-70b", "tpu-v5p:2x2x2", strategy_of(8, 1, 1, lower::CacheScheme::batch), 1},  // two all-to-alls
          {"llama-3-70b", "tpu-v5p:2x2x2", strategy_of(8, 1, 1, lower::CacheScheme::sequence), 1},
          {"mistral-7b", "h100-sxm:2", strategy_of(2), 1},          // a window
          {"mixtral-8x7b", "h100-sxm:8", strategy_of(8), 4},        // experts
          {"mixtral-8x7b", "h100-sxm:8", strategy_of(1, 8, 8), 4},  // expert parallelism
          {"deepseek-v3", "b200:8", strategy_of(8), 32},            // latent attention
          {"falcon-mamba-7b", "h100-sxm:1", strategy_of(1), 1}};    // no attention at all
}

void expect_same(const ServingTime& got, const ServingTime& want, const std::string& what) {
  const auto close = [&](auto a, auto b, const char* part) {
    EXPECT_NEAR(a.value(), b.value(), 1e-9 * b.value()) << what << ": " << part;
  };
  close(got.flops, want.flops, "flops");
  close(got.compute, want.compute, "compute");
  close(got.memory, want.memory, "memory");
  close(got.rooflines, want.rooflines, "rooflines");
  close(got.estimate, want.estimate, "estimate");
}

void lines_equal_lowering(bool calibrated) {
  for (const Served& s : served()) {
    const Case c(s.model, s.where, calibrated);
    const training::StageLinks links = links_of(c, s.strategy);
    for (const auto& [queries, keys] : {std::pair<std::int64_t, std::int64_t>{1, 8192}, {512, 512}, {256, 2048}}) {
      ServingProfile profile = make_serving_profile(c.setup, s.strategy, queries, keys);
      scale_largest(profile, 0.0);  // programs have even experts
      for (std::int64_t multiple : {1, 2, 3, 7, 16, 61, 128}) {
        const std::int64_t batch = multiple * s.whole * static_cast<std::int64_t>(profile.unit);
        expect_same(serving_time(c.setup, s.strategy, profile, links, static_cast<double>(batch)),
                    direct(c, s.strategy, queries, keys, batch),
                    std::string(s.model) + " queries " + std::to_string(queries) + " batch " + std::to_string(batch));
      }
    }
  }
}

TEST(ServingProfile, StraightLinesEqualADirectLoweringAtEveryBatch) { lines_equal_lowering(false); }
TEST(ServingProfile, CalibratedKernelsEqualADirectLoweringAtEveryBatch) { lines_equal_lowering(true); }

TEST(ServingProfile, ACompleteCacheIsCountedAsIfTheStepSawIt) {
  for (const char* model : {"llama-3-70b", "mistral-7b", "gemma-3-27b", "deepseek-v3"}) {
    const Case c(model, "h100-sxm:4");
    const double direct_bytes = make_serving_profile(c.setup, strategy_of(4), 1, 9000).cache.value();
    EXPECT_DOUBLE_EQ(make_serving_profile(c.setup, strategy_of(4), 1, 5000, 9000).cache.value(), direct_bytes) << model;
  }
}

// LLaMA 2-13B on eight v5e, tp 8, batch 16, 8192 tokens each, all in bf16:
//   cache    16 x 8192 x 2 x 40 layers x 40 heads x 128 x 2 B = 107.374 GB, an eighth of it per chip
//   weights  the layers' matrices 40 x (4 x 5120^2 + 3 x 5120 x 13824) and the head 5120 x 32000: 12.8516e9 x 2 B
// at 820 GB/s: 107.374e9 / 8 / 820e9 = 16.368 ms and 25.703e9 / 8 / 820e9 = 3.918 ms. The arithmetic is far below.
TEST(ServingProfile, ActivationsAreThoseThatAreAliveTogether) {
  // Each token holds at the activation: the residual (4096), gate, up and their product (14336 each), two bytes each.
  const Case c("llama-3-8b", "h100-sxm:8");
  const double token = 2.0 * (4096 + 3 * 14336);
  EXPECT_DOUBLE_EQ(make_serving_profile(c.setup, strategy_of(1), 1000, 1000).widest.value(), 1000 * token);
  // Over two chips the residual is whole on each.
  EXPECT_DOUBLE_EQ(make_serving_profile(c.setup, strategy_of(2), 1000, 1000).widest.value(),
                   1000 * (token - 3 * 14336.0));
  // Copies of keys and values for each of 32 heads are there for one layer at a time: 8192 tokens, 4096 wide, twice.
  Case copies("llama-3-8b", "h100-sxm:1");
  copies.setup.effects.copies = 1;
  EXPECT_DOUBLE_EQ(make_serving_profile(copies.setup, strategy_of(1), 1, 8192).widest.value(), 8192.0 * 4096 * 2 * 2);
}

TEST(ServingProfile, GatheredWeightsAreThoseOfOneProductAtATime) {
  // The widest matrix of a layer of Llama 3 8B, 4096 x 14336, is whole on every chip while it is used.
  const Case c("llama-3-8b", "h100-sxm:4");
  ServingStrategy s;
  s.second = 4, s.scheme.weights = lower::WeightScheme::gathered;
  EXPECT_GE(make_serving_profile(c.setup, s, 1000, 1000).gathered, Bytes(2.0 * 4096 * 14336));
  s.scheme.weights = lower::WeightScheme::two_dimensions;
  EXPECT_EQ(make_serving_profile(c.setup, s, 1000, 1000).gathered, Bytes());
}

TEST(ServingTime, DecodingReadsWeightsAndCacheOnce) {
  const Case c("llama-2-13b", "tpu-v5e:2x4");
  const ServingStrategy s = strategy_of(8);
  const ServingProfile profile = make_serving_profile(c.setup, s, 1, 8192);
  const ServingTime time = serving_time(c.setup, s, profile, links_of(c, s), 16);
  const Seconds cache = 16.368_ms, weights = 3.918_ms;
  EXPECT_GT(time.memory, cache + weights);           // activations come on top,
  EXPECT_LT(time.memory, 1.02 * (cache + weights));  // but are small
  EXPECT_LT(time.compute, 0.1 * time.memory);
  EXPECT_NEAR(16 * profile.cache.value(), 107.374e9 / 8, 1e6);
}

// Each sequence adds its cache; the weights stay: the difference of two batches is the cache of those between.
// 40 x 2 x 40 x 128 x 2 B x 8192 / 8 = 838.9 MB per sequence and chip, 1.023 ms at 820 GB/s.
TEST(ServingTime, OneMoreSequenceCostsItsCache) {
  const Case c("llama-2-13b", "tpu-v5e:2x4");
  const ServingStrategy s = strategy_of(8);
  const ServingProfile profile = make_serving_profile(c.setup, s, 1, 8192);
  const training::StageLinks links = links_of(c, s);
  const Seconds more =
      serving_time(c.setup, s, profile, links, 9).memory - serving_time(c.setup, s, profile, links, 8).memory;
  EXPECT_NEAR(more.value(), 1.023e-3, 0.01e-3);
}

TEST(ServingTime, AWindowBoundsTheCacheThatIsRead) {
  const Case c("mistral-7b", "h100-sxm:1");
  const training::StageLinks links = links_of(c, strategy_of(1));
  const auto memory = [&](std::int64_t keys) {
    return serving_time(c.setup, strategy_of(1), make_serving_profile(c.setup, strategy_of(1), 1, keys), links, 8)
        .memory;
  };
  EXPECT_DOUBLE_EQ(memory(16384).value(), memory(4096).value());
  EXPECT_LT(memory(2048), memory(4096));
}

TEST(ServingTime, FewTokensTouchFewExperts) {
  const Case c("mixtral-8x7b", "h100-sxm:8");
  const ServingStrategy s = strategy_of(8);
  const ServingProfile profile = make_serving_profile(c.setup, s, 1, 1024);
  const training::StageLinks links = links_of(c, s);
  const double one = serving_time(c.setup, s, profile, links, 1).memory.value();
  const double many = serving_time(c.setup, s, profile, links, 64).memory.value();
  // 2 of 8 experts against all of them: the experts are 45.1 of 46.7 billion parameters.
  EXPECT_NEAR(one / many, (1.6 + 45.1 / 4) / 46.7, 0.1);
}

TEST(ServingProfile, TheLargestOfManyDrawsIsAboveTheMean) {
  EXPECT_EQ(expected_largest(1), 0.0);
  EXPECT_NEAR(expected_largest(2), 0.5642, 1e-3);  // 1 / sqrt(pi)
  EXPECT_NEAR(expected_largest(8), 1.4236, 1e-3);  // as tables of order statistics have it
}

TEST(ServingTime, TheDeviceWithMostExpertsInUseEndsLast) {
  ServingProfile::Block block;
  block.experts = 256, block.per_token = 8, block.ranks = 8, block.largest = expected_largest(8);
  // Drawn 400 times, the fullest of 8 ranks has 6.6 and 16.6 of its 32 experts in use, the mean one 3.8 and 12.7.
  EXPECT_NEAR(32 * block.touched(4), 3.8, 0.1);
  EXPECT_NEAR(32 * block.fullest(4), 6.6, 0.3);
  EXPECT_NEAR(32 * block.fullest(16), 16.6, 0.3);
  EXPECT_EQ(block.fullest(4096), block.touched(4096));
  const Case c("deepseek-v3", "b200:8");
  const ServingStrategy sharded = strategy_of(8), apart = strategy_of(1, 8, 8);
  const auto time = [&](const ServingStrategy& s, double largest) {
    ServingProfile profile = make_serving_profile(c.setup, s, 1, 1024);
    scale_largest(profile, largest);
    return serving_time(c.setup, s, profile, links_of(c, s), 8);
  };
  EXPECT_GT(time(apart, 1).estimate, 1.1 * time(apart, 0).estimate);
  EXPECT_EQ(time(apart, 1).memory, time(apart, 0).memory);  // bounds do not know who gets them
  EXPECT_EQ(time(sharded, 1).estimate, time(sharded, 0).estimate);
}

TEST(ServingTime, AStepIsThatOfTheFullestReplica) {
  const Case c("llama-3-8b", "h100-sxm:8", true), single("llama-3-8b", "h100-sxm:1", true);
  const ServingStrategy alone = strategy_of(1), eight = strategy_of(1, 8);
  const ServingProfile one = make_serving_profile(c.setup, alone, 1, 1024),
                       all = make_serving_profile(c.setup, eight, 1, 1024);
  for (const auto& [batch, fullest] : {std::pair{1.0, 1.0}, {8.0, 1.0}, {9.0, 2.0}, {16.0, 2.0}, {65.0, 9.0}}) {
    const ServingTime got = serving_time(c.setup, eight, all, links_of(c, eight), batch),
                      want = serving_time(c.setup, alone, one, links_of(single, alone), fullest);
    EXPECT_DOUBLE_EQ(got.estimate.value(), want.estimate.value()) << batch;
    EXPECT_DOUBLE_EQ(got.memory.value(), want.memory.value()) << batch;
  }
}

TEST(ServingTime, ExpertsOfAReplicaSeeItsOwnTokensAlone) {
  const Case c("mixtral-8x7b", "h200-sxm:8"), single("mixtral-8x7b", "h200-sxm:1");
  const ServingStrategy alone = strategy_of(1);
  const ServingProfile one = make_serving_profile(c.setup, alone, 1, 1024);
  for (std::int64_t expert : {1, 4, 8}) {
    const ServingStrategy eight = strategy_of(1, 8, expert);
    const double got =
        serving_time(c.setup, eight, make_serving_profile(c.setup, eight, 1, 1024), links_of(c, eight), 64)
            .memory.value();
    const double replica = serving_time(c.setup, alone, one, links_of(single, alone), 8).memory.value();
    if (expert == 1) EXPECT_NEAR(got, replica, 1e-9 * replica);
    if (expert > 1) EXPECT_LT(got, 0.5 * replica);
  }
}

TEST(MixedTime, AnEmptyChunkIsADecodeStepAndWeightsAreReadOnce) {
  const Case c("llama-3-70b", "h100-sxm:8");
  const ServingStrategy s = strategy_of(8);
  const training::StageLinks links = links_of(c, s);
  const ServingProfile decode = make_serving_profile(c.setup, s, 1, 1152);
  const double alone = serving_time(c.setup, s, decode, links, 32).estimate.value();
  double before = alone;
  for (std::int64_t tokens : {64, 256, 1024}) {
    const ServingProfile chunk = make_serving_profile(c.setup, s, tokens, 1024);
    const double both =
        mixed_time(c.setup, s, links, {decode, chunk, 32, 1, static_cast<double>(tokens) / 1024.0}).estimate.value();
    const double apart = alone + serving_time(c.setup, s, chunk, links, 1).estimate.value();
    EXPECT_GT(both, before);
    EXPECT_LT(both, apart);
    before = both;
  }
}

// 70B parameters in int8 on 16 chips of a v5e: 8 heads of keys on 16 devices. By heads each device reads the caches of
// all 32 sequences for its head, 2 x 80 x 128 x 7936 x 32 B = 5.2 GB at 820 GB/s; with the batch or the sequence split
// between the two devices of a head half of it, 3.2 ms less of 12.7 ms.
TEST(ServingProfile, CachesAreNotReadTwiceWhereTwoDevicesShareAHead) {
  Case c("llama-3-70b", "tpu-v5e:4x4");
  c.setup.formats.weights = c.setup.formats.kv_cache = Dtype::int8;
  ASSERT_EQ(key_copies(*c.setup.model, 16), 2);
  EXPECT_EQ(key_copies(*c.setup.model, 8), 1);
  const auto at = [&](lower::CacheScheme scheme, std::int64_t ways) {
    ServingStrategy s = strategy_of(16, 1, 1, scheme);
    s.cache_ways = ways;
    const ServingProfile profile = make_serving_profile(c.setup, s, 1, 7936, 8192);
    return std::pair(profile, serving_time(c.setup, s, profile, links_of(c, s), 32));
  };
  const auto [twice, slow] = at(lower::CacheScheme::heads, 1);
  const double cache = 2.0 * 80 * 128 * 32, hbm = c.setup.rates.hbm.value();
  EXPECT_NEAR(slow.attention_bytes.value(), cache * 7936, 0.01 * cache * 7936);
  for (const lower::CacheScheme scheme : {lower::CacheScheme::batch, lower::CacheScheme::sequence}) {
    const auto [once, fast] = at(scheme, 2);
    EXPECT_DOUBLE_EQ(32 * once.cache.value(), 0.5 * cache * 8192);
    EXPECT_DOUBLE_EQ(once.cache.value(), 0.5 * twice.cache.value());
    EXPECT_NEAR((slow.memory - fast.memory).value(), 0.5 * cache * 7936 / hbm, 0.02 * cache * 7936 / hbm);
    EXPECT_GT(fast.network, slow.network);  // queries and results change places
    EXPECT_LT(fast.estimate, slow.estimate);
    EXPECT_DOUBLE_EQ(once.weights.value(), twice.weights.value());
  }
}

RC_GTEST_PROP(ServingTime, ABiggerBatchIsNeverFasterAndNeverYieldsLess, ()) {
  static const Case one("llama-3-8b", "h100-sxm:1"), two("llama-3-8b", "h100-sxm:2"), four("llama-3-8b", "h100-sxm:4");
  const std::int64_t chips = *rc::gen::element<std::int64_t>(1, 2, 4);
  const Case& c = chips == 1 ? one : chips == 2 ? two : four;
  const ServingStrategy s = strategy_of(chips);
  const training::StageLinks links = links_of(c, s);
  const ServingProfile profile = make_serving_profile(c.setup, s, 1, *rc::gen::inRange(1, 8192));
  const double small = *rc::gen::inRange(1, 512), large = small + *rc::gen::inRange(1, 512);
  const ServingTime a = serving_time(c.setup, s, profile, links, small),
                    b = serving_time(c.setup, s, profile, links, large);
  RC_ASSERT(b.estimate >= a.estimate);
  RC_ASSERT(b.lower >= a.lower);
  // Without calibration every kernel is convex and starts above nothing: tokens per second never fall.
  RC_ASSERT(large / b.estimate >= small / a.estimate * (1.0 - 1e-12));
}

RC_GTEST_PROP(ServingTime, NeverBelowTheWeightsNorThePeak, ()) {
  static const Case one("llama-3-8b", "h100-sxm:1", true), two("llama-3-8b", "h100-sxm:2", true),
      four("llama-3-8b", "h100-sxm:4", true);
  const std::int64_t chips = *rc::gen::element<std::int64_t>(1, 2, 4);
  const Case& c = chips == 1 ? one : chips == 2 ? two : four;
  const ServingStrategy s = strategy_of(chips);
  const auto queries = *rc::gen::element<std::int64_t>(1, 4, 128, 2048);
  const ServingProfile profile = make_serving_profile(c.setup, s, queries, 2048);
  const ServingTime time = serving_time(c.setup, s, profile, links_of(c, s), *rc::gen::inRange(1, 300));
  // The embedding table is looked up, not read: half a billion of eight.
  RC_ASSERT(time.memory >= 0.93 * profile.weights / c.setup.rates.hbm);
  RC_ASSERT(time.lower <= time.rooflines + time.network);
  RC_ASSERT(time.rooflines <= time.estimate);
  RC_ASSERT(time.compute <= time.estimate);
}

TEST(ServingTime, NoKernelBeatsItsRooflineHoweverFastTheSoftware) {
  for (const Served& s : served()) {
    Case c(s.model, s.where, true);
    c.setup.effects.product = c.setup.effects.decode = 0.1;
    const training::StageLinks links = links_of(c, s.strategy);
    for (std::int64_t queries : {1, 512}) {
      const ServingProfile profile = make_serving_profile(c.setup, s.strategy, queries, 2048);
      for (double batch : {1.0, 64.0}) {
        const ServingTime time = serving_time(c.setup, s.strategy, profile, links, batch);
        EXPECT_GE(time.estimate, time.rooflines * (1.0 - 1e-12)) << s.model;
        EXPECT_GE(time.estimate, time.lower * (1.0 - 1e-12)) << s.model;
      }
    }
  }
}

TEST(ServingTime, ChecksOfDraftsAreReplayedAsStepsOfOneTokenAre) {
  Case c("llama-3-8b", "h100-sxm:8", true);
  c.setup.effects.captured = true, c.setup.effects.launch = 1e-3 * 1_s;
  const ServingStrategy s = strategy_of(8);
  const ServingProfile one = make_serving_profile(c.setup, s, 1, 2048), two = make_serving_profile(c.setup, s, 2, 2048);
  const double step = serving_time(c.setup, s, one, links_of(c, s), 4).estimate.value(),
               check = verify_time(c.setup, s, two, links_of(c, s), 4).estimate.value();
  EXPECT_GE(check, step);
  EXPECT_LT(check, 1.1 * step);
  EXPECT_GT(serving_time(c.setup, s, two, links_of(c, s), 4).estimate.value(),
            10.0 * step);  // a prompt's kernels are started
}

// Llama 4 Scout: 36 of 48 layers look back to the last multiple of 8192 tokens only. Keys and values of a token are
// 2 x 8 x 128 of two bytes in each layer, over 8 chips 512 B.
TEST(Serving, AChunkIsWhatALayerHoldsAndReads) {
  const Case c("llama-4-scout", "h200-sxm:8");
  const ServingStrategy s = strategy_of(8);
  const auto profile = [&](std::int64_t keys, std::int64_t reserved) {
    return make_serving_profile(c.setup, s, 1, keys, reserved);
  };
  EXPECT_DOUBLE_EQ(profile(32032, 32064).cache.value(), 512.0 * (12 * 32064 + 36 * 8192));
  EXPECT_DOUBLE_EQ(profile(4000, 4032).cache.value(), 512.0 * 48 * 4032);
  const auto read = [&](std::int64_t keys) {
    return serving_time(c.setup, s, profile(keys, keys), links_of(c, s), 1).attention_bytes;
  };
  EXPECT_DOUBLE_EQ((read(8193) - read(1)).value(), 512.0 * 12 * 8192);
  EXPECT_DOUBLE_EQ((read(8192) - read(1)).value(), 512.0 * 48 * 8191);
}

// Stages of a pipeline hold the layers and ends that they have: of Llama 3 70B an end is 128256 x 8192 weights, and of
// three stages one has 28 layers, or 27 and an end.
TEST(ServingProfile, TheFullestStageCounts) {
  const Case c("llama-3-70b", "h100-sxm:2");
  const double layer = 8192.0 * (2 * 8192 + 2 * 1024 + 3 * 28672) + 2 * 8192, end = 128256.0 * 8192;
  ServingStrategy s;
  s.pipeline = 2;
  const ServingProfile two = make_serving_profile(c.setup, s, 1, 4096);
  EXPECT_DOUBLE_EQ(two.weights.value(), 2 * (40 * layer + end + 8192));
  EXPECT_DOUBLE_EQ(two.cache.value(), 40 * 4096.0 * 2 * 8 * 128 * 2);
  EXPECT_EQ(two.uneven, 1.0);
  s.pipeline = 3;
  const ServingProfile three = make_serving_profile(c.setup, s, 1, 4096);
  std::int64_t most = 0;
  for (const clock::StageSplit::Part& part : clock::split_stages(c.model, 3).parts)
    most = std::max<std::int64_t>(most, part.layers[0]);
  EXPECT_GE(three.weights.value(), 2 * (static_cast<double>(most) * layer));
  EXPECT_LE(three.weights.value(), 2 * (static_cast<double>(most) * layer + end + 8192));
  EXPECT_DOUBLE_EQ(three.uneven, 3.0 * static_cast<double>(most) / 80.0);
  EXPECT_DOUBLE_EQ(three.cache.value(), static_cast<double>(most) * 4096.0 * 2 * 8 * 128 * 2);
}

// A tied head is the embedding once more on the last stage.
TEST(ServingProfile, ATiedHeadLiesOnBothEnds) {
  const Case c("llama-3.2-1b", "h100-sxm:2");
  ServingStrategy s;
  const double whole = make_serving_profile(c.setup, s, 1, 4096).weights.value();
  s.pipeline = 2;
  const double table = 2.0 * 128256 * 2048;
  EXPECT_DOUBLE_EQ(make_serving_profile(c.setup, s, 1, 4096).weights.value(),
                   (whole - table - 2 * 2048) / 2 + table + 2 * 2048);
}

}  // namespace
}  // namespace assay::serving
