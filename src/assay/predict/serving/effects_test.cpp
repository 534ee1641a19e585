#include "assay/predict/numbers/serving_effects.h"

#include <gtest/gtest.h>

#include "assay/model/model_catalogue.h"
#include "assay/predict/serving/profile.h"

namespace assay::serving {
namespace {

numbers::Families families() { return *numbers::families_of(hardware::Catalogue::builtin()); }

numbers::ServingCalibration some_values() {
  numbers::ServingCalibration s(families());
  const std::size_t hopper = *numbers::family_index(s.families, "hopper");
  s.measured[hopper] = 1;
  s.product[hopper] = 1.2;
  s.kernels = {0.5, 0.6, 3.0, 0.2};
  s.launch = {10_us, 25_us};
  s.step = {Seconds(0), 300_us, 1000_us};
  s.sequence = {Seconds(0), 3_us, 30_us};
  s.first = 2000_us;
  s.vector = 0.3, s.copies = 5.0;
  return s;
}

hardware::Chip chip(std::string_view id) { return *hardware::Catalogue::builtin().chip(std::string(id), "test"); }

TEST(ServingEffects, AFileReadsBackAsWhatItWasWrittenFrom) {
  numbers::ServingCalibration s = some_values();
  s.decode_intervals.push_back({"dense, hopper", 0.25, 40, 9, {{"chips", 1, 8}}});
  const std::string text = "[source.fit]\ntitle = \"test\"\n" + numbers::serving_steps_text(s, "fit");
  const auto read = numbers::read_serving_steps(text, "serving.toml", families());
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(numbers::serving_steps_text(*read, "fit"), numbers::serving_steps_text(s, "fit"));
  EXPECT_EQ(read->decode_intervals.front().name, "dense, hopper");
}

TEST(ServingEffects, EveryMissingTableIsReportedWithItsPlace) {
  const auto read = numbers::read_serving_steps("[source.fit]\ntitle = \"x\"\n", "serving.toml", families());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().where, "serving.toml:1:1: products");
  EXPECT_EQ(read.error().also.size(), 4u);  // attention, pointwise, collectives, step
}

TEST(ServingEffects, TheCatalogueHasThem) {
  const auto steps = numbers::serving_steps_of(hardware::Catalogue::builtin());
  ASSERT_TRUE(steps) << steps.error().where << ' ' << steps.error().what;
  EXPECT_FALSE(steps->prefill_intervals.empty());
  EXPECT_FALSE(steps->decode_intervals.empty());
  EXPECT_GT(steps->step[2], steps->step[1]);  // an interpreted scheduler takes longer
}

TEST(ServingEffects, GpusKeepMemoryForThemselvesAndGraphsAreOfThoseWhoCapture) {
  const numbers::ServingCalibration steps = *numbers::serving_steps_of(hardware::Catalogue::builtin());
  const numbers::RuntimeMemory gpu = steps.effects(chip("h100-sxm"), {}).memory;
  EXPECT_GT(gpu.hidden, 0.0);
  EXPECT_GT(gpu.context, 1_GiB);
  EXPECT_GT(gpu.communication, 0_GiB);
  EXPECT_GT(gpu.graphs * gpu.kernel, 100_KiB);
  EXPECT_EQ(gpu.reserved.value, numbers::steps_of(hardware::Catalogue::builtin())->reserved.value);
  numbers::ServingSoftware eager;
  eager.fusion = numbers::Fusion::eager, eager.captured = false;
  EXPECT_EQ(steps.effects(chip("h100-sxm"), eager).memory.graphs, 0.0);
  EXPECT_GT(steps.effects(chip("h100-sxm"), eager).memory.activations, gpu.activations);
  const numbers::RuntimeMemory tpu = steps.effects(chip("tpu-v5e"), {}).memory;
  EXPECT_EQ(tpu.context + tpu.communication + tpu.kernel, 0_GiB);
  EXPECT_EQ(tpu.hidden, 0.0);
  EXPECT_EQ(tpu.reserved, 1.0);
  numbers::ServingCalibration none;
  const auto read = numbers::read_serving_memory("[source.x]\ntitle = \"x\"\n", "serving_memory.toml", none);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().where.find("serving_memory.toml:"), std::string::npos);
}

TEST(ServingEffects, SoftwareDecidesWhoLaunchesAndWhatItCosts) {
  const numbers::ServingCalibration s = some_values();
  const hardware::Chip h100 = chip("h100-sxm");
  const numbers::ServingEffects fused = s.effects(h100, {});
  EXPECT_TRUE(fused.joined);
  EXPECT_EQ(fused.product, 1.2);
  EXPECT_EQ(fused.launch, 10_us);
  EXPECT_EQ(fused.step, 300_us);
  EXPECT_EQ(fused.one_shot, 3_us);
  EXPECT_EQ(fused.vector, 0.0);
  const numbers::ServingEffects eager =
      s.effects(h100, {numbers::Fusion::eager, numbers::Scheduler::loop, false, true, false, true});
  EXPECT_FALSE(eager.joined);
  EXPECT_EQ(eager.launch, 25_us);
  EXPECT_EQ(eager.step, Seconds(0));
  EXPECT_EQ(eager.first, Seconds(0));
  EXPECT_EQ(eager.copies, 5.0);
  EXPECT_EQ(s.effects(chip("tpu-v5e"), {}).launch, Seconds(0));  // one program for the whole step
}

/// An estimate of one decode step of llama-3-8b with given effects.
ServingTime step(const numbers::ServingEffects& effects, double batch, std::int64_t queries = 1) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto cluster = *hardware::parse_cluster("h100-sxm:1", catalogue, "test");
  const auto model = *model::catalogue_model("llama-3-8b", catalogue, "test");
  const auto calibration = *hardware::calibration_of(cluster.chip, catalogue);
  ServingSetup setup;
  setup.model = &model.imported.model;
  setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test", &calibration->values);
  setup.effects = effects;
  const ServingStrategy strategy;
  const training::StageLinks links = serving_links(setup, strategy, cluster).value();
  return serving_time(setup, strategy, make_serving_profile(setup, strategy, queries, 2048), links, batch);
}

TEST(ServingEffects, AnInterpreterThatWorksAheadHasNumbersOfItsOwn) {
  numbers::ServingCalibration s(families());
  s.step = {Seconds(0), 300_us, 700_us, 200_us, 100_us}, s.sequence = {Seconds(0), 3_us, 60_us, 2_us, 1_us};
  s.beside = {Seconds(0), Seconds(0), Seconds(0), 40_us, 20_us};
  s.launch = {10_us, 20_us}, s.token = 0.01_us;
  const hardware::Chip h100 = chip("h100-sxm");
  const numbers::ServingEffects ahead = s.effects(h100, {numbers::Fusion::fused, numbers::Scheduler::ahead});
  EXPECT_EQ(ahead.step, 200_us);
  EXPECT_EQ(ahead.sequence, 2_us);
  EXPECT_EQ(ahead.beside, 40_us);
  EXPECT_EQ(s.effects(h100, {numbers::Fusion::fused, numbers::Scheduler::python}).beside, Seconds(0));
  EXPECT_EQ(s.effects(h100, {numbers::Fusion::fused, numbers::Scheduler::ahead_native}).beside, 20_us);
  EXPECT_EQ(ahead.launch, 20_us);
  EXPECT_EQ(ahead.token, Seconds(0));
  numbers::ServingSoftware whole;
  whole.whole_rows = true;
  EXPECT_EQ(s.effects(h100, whole).token, 0.01_us);
}

TEST(ServingEffects, TheLongerOfDeviceAndHostCountsWhereTheHostWorksAhead) {
  numbers::ServingEffects hidden, exposed;
  hidden.beside = 200_us, exposed.sequence = 200_us;
  const Seconds small = step({}, 8.0).estimate, large = step({}, 1024.0).estimate;
  EXPECT_GT(small, 8.0 * 200_us);
  EXPECT_LT(large, 1024.0 * 200_us);
  EXPECT_EQ(step(hidden, 8.0).estimate, small);
  EXPECT_EQ(step(hidden, 1024.0).estimate, 1024.0 * 200_us);
  EXPECT_EQ(step(exposed, 8.0).estimate, small + 8.0 * 200_us);
  EXPECT_EQ(step(exposed, 1024.0).estimate, large + 1024.0 * 200_us);
}

TEST(ServingEffects, SamplingRunsOnTheDeviceBesideAHostThatWorksAhead) {
  numbers::ServingEffects sampled;
  sampled.sampling = 20_us;
  EXPECT_NEAR((step(sampled, 64.0).estimate - step({}, 64.0).estimate).value(), 64 * 20e-6, 1e-12);
  sampled.beside = 1_us;
  EXPECT_NEAR((step(sampled, 64.0).estimate - step({}, 64.0).estimate).value(), 64 * 20e-6, 1e-12);
}

TEST(ServingEffects, ACacheThatIsNotSplitTakesTimeForEachOfItsTokens) {
  numbers::ServingEffects whole;
  whole.token = 0.01_us;
  // 32 layers over 2048 tokens, however many sequences there are.
  for (const double batch : {1.0, 64.0})
    EXPECT_NEAR((step(whole, batch).estimate - step({}, batch).estimate).value(), 32 * 2048 * 0.01e-6, 1e-9);
}

TEST(ServingEffects, WithoutMeasuredKernelsStepsAndSoftwareCountAllTheSame) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto cluster = *hardware::parse_cluster("mi300x:1", catalogue, "test");
  const auto model = *model::catalogue_model("llama-3-8b", catalogue, "test");
  const auto time = [&](const numbers::ServingEffects& effects) {
    ServingSetup setup;
    setup.model = &model.imported.model;
    setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test", nullptr);
    setup.effects = effects;
    const ServingStrategy strategy;
    const training::StageLinks links = serving_links(setup, strategy, cluster).value();
    return serving_time(setup, strategy, make_serving_profile(setup, strategy, 1, 2048), links, 16).estimate.value();
  };
  const double plain = time({});
  numbers::ServingEffects effects;
  effects.item = 30_us;  // 16 sequences of 32 heads on 304 cores, in 32 layers
  EXPECT_NEAR(time(effects) - plain, 32 * 16 * 32 / 304.0 * 30e-6, 1e-9);
  effects = {};
  effects.vector = 0.1;  // four query heads read the keys that they share: 3 x 16 x 2048 x 4 KiB more in each layer
  EXPECT_NEAR(time(effects) - plain, 32.0 * 3 * 16 * 2048 * 4096 / (0.81 * 5.3e12), 0.02 * plain);
  effects = {};
  effects.product = 2.0;
  EXPECT_GT(time(effects), 1.5 * plain);  // weights are most of a step
  effects = {};
  effects.start = 1_us;
  EXPECT_GT(time(effects) - plain, 32 * 8 * 1e-6);
}

TEST(ServingEffects, TheBoundsDoNotMove) {
  numbers::ServingEffects effects;
  effects.joined = true, effects.product = 2.0, effects.start = 5_us, effects.step = 1000_us, effects.copies = 4.0;
  const ServingTime plain = step({}, 8), slow = step(effects, 8);
  EXPECT_DOUBLE_EQ(plain.lower.value(), slow.lower.value());
  EXPECT_NEAR(plain.upper.value(), slow.upper.value(), 1e-12 * plain.upper.value());
  EXPECT_GT(slow.estimate, plain.estimate);
}

TEST(ServingEffects, JoinedProductsStartFewerKernelsAndTakeLess) {
  numbers::ServingEffects joined;
  joined.joined = true;
  const ServingTime apart = step({}, 1), together = step(joined, 1);
  // Queries, keys and values as one, gate and up as one: three kernels fewer in each of 32 layers.
  EXPECT_EQ(apart.kernels - together.kernels, 3 * 32);
  EXPECT_LT(together.estimate, apart.estimate);
}

TEST(ServingEffects, AFusedNormDoesNotReadWhatTheSumBeforeItMade) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto cluster = *hardware::parse_cluster("h100-sxm:1", catalogue, "test");
  const auto model = *model::catalogue_model("llama-3-8b", catalogue, "test");
  ServingSetup setup;
  setup.model = &model.imported.model;
  setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test", nullptr);
  const ServingStrategy strategy;
  const training::StageLinks links = serving_links(setup, strategy, cluster).value();
  const auto bytes_of = [&](bool joined, program::Op op) {
    setup.effects.joined = joined;
    Bytes sum;
    for (const PricedStep& one :
         list_serving_step(setup, strategy, make_serving_profile(setup, strategy, 512, 512), links, 1))
      if (one.op == op && one.layers == 32) sum += one.count * one.bytes;
    return sum.value();
  };
  // Two norms of a layer read 512 x 4,096 values in bf16 and the weights, and write as much: fused they only write it.
  EXPECT_NEAR(bytes_of(false, program::Op::norm) - bytes_of(true, program::Op::norm), 2 * 512 * 4096 * 2.0, 1.0);
  // Sums read what products made.
  EXPECT_EQ(bytes_of(false, program::Op::add), bytes_of(true, program::Op::add));
}

TEST(ServingEffects, HostsThatLaunchEveryKernelAreALaunchApart) {
  numbers::ServingCalibration s = some_values();
  s.meet[*numbers::family_index(s.families, "hopper")] = 4_us;
  numbers::ServingSoftware software;
  EXPECT_EQ(s.effects(chip("h100-sxm"), software).meet, 4_us);
  software.captured = false;
  EXPECT_NEAR(s.effects(chip("h100-sxm"), software).meet.value.value(), (14_us).value(), 1e-12);
  EXPECT_EQ(s.effects(chip("tpu-v5e"), software).meet, Seconds(0));
}

TEST(ServingEffects, AHostThatIsSlowerThanTheChipSetsTheTimeUnlessAGraphIsReplayed) {
  numbers::ServingEffects slow;
  slow.launch = 100_us;
  const ServingTime time = step(slow, 1);
  EXPECT_NEAR(time.estimate.value(), time.kernels * 100e-6, 1e-12);
  slow.captured = true;
  EXPECT_LT(step(slow, 1).estimate, time.estimate);
  const ServingTime prompt = step(slow, 1, 16);  // graphs hold decode steps alone
  EXPECT_NEAR(prompt.estimate.value(), prompt.kernels * 100e-6, 1e-12);
}

TEST(ServingEffects, TheHostTakesItsTimeForEverySequence) {
  numbers::ServingEffects host;
  host.step = 500_us, host.sequence = 20_us;
  EXPECT_NEAR((step(host, 10).estimate - step({}, 10).estimate).value(), 500e-6 + 10 * 20e-6, 1e-9);
}

}  // namespace
}  // namespace assay::serving
