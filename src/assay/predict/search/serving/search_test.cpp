#include "assay/predict/search/serving/search.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "assay/base/one_of_many.h"
#include "assay/predict/serving/bounds.h"
#include "assay/testing/sampling.h"
#include "assay/testing/serving_case.h"

namespace assay::search {
namespace {

/// All orders of the axes of more than one device, on a torus along all orders of its axes.
std::vector<collective::AxisLayout> every_order(const serving::ServingStrategy& s, const hardware::Cluster& cluster) {
  const auto sizes = training::whole_mesh_sizes(s.parallelism());
  collective::AxisLayout layout;
  const auto first = std::stable_partition(layout.order.begin(), layout.order.end(),
                                           [&](std::size_t axis) { return axis >= sizes.size() || sizes[axis] == 1; });
  const std::size_t torus_orders =
      cluster.torus ? 1 + collective::physical_axis_orders(collective::physical_axes_of(cluster)).size() : 1;
  std::vector<collective::AxisLayout> all;
  do
    for (layout.torus_order = 0; layout.torus_order < torus_orders; ++layout.torus_order) all.push_back(layout);
  while (std::next_permutation(first, layout.order.end()));
  return all;
}

/// Every sharding, order of axes and batch, one by one: nothing that fits beats what the search found.
void expect_nothing_better(const testing::ServingCase& c, std::int64_t most_tried_batch) {
  const ServingSearch found = c.search();
  ASSERT_TRUE(found.best && found.fastest_prompt);
  const std::int64_t chips = c.cluster.chips();
  std::int64_t tried = 0;
  double first_token = HUGE_VAL, rate = 0.0;
  const auto price = [&](const serving::ServingStrategy& s) {
    const auto links = serving::serving_links(c.question.setup, s, c.cluster);
    if (!links) return;
    const serving::ServingProfiles profiles = serving::serving_profiles(c.question, s, *links);
    const double unit = profiles.decode.unit * static_cast<double>(s.pipeline);
    for (double power = 1; power <= static_cast<double>(most_tried_batch); power *= 2)
      for (double batch : {power, 1.5 * power}) {
        // The search takes whole units: every device has as many sequences as the others.
        if (batch != std::floor(batch) || std::fmod(batch, unit) != 0.0) continue;
        const serving::ServingPoint p = serving::serving_point(c.question, s, profiles, *links, batch);
        if (p.memory.total() > c.question.capacity) continue;
        ++tried;
        first_token = std::min(first_token, p.prefill.estimate.value());
        rate = std::max(rate, p.served.tokens_per_second.value());
        bool matched = false;
        for (const serving::ServingPoint& f : found.front)
          matched |= f.served.per_token <= p.served.per_token * (1.0 + 1e-12) &&
                     f.served.tokens_per_second >= p.served.tokens_per_second * (1.0 - 1e-12);
        EXPECT_TRUE(matched) << "tensor " << s.tensor << " second " << s.second << " pipeline " << s.pipeline
                             << " expert " << s.expert << " "
                             << program::mesh_text(training::whole_mesh(s.parallelism(), s.layout)) << " batch "
                             << batch;
      }
  };
  for (std::int64_t tensor = 1; tensor <= chips; tensor *= 2)
    for (std::int64_t second = 1; tensor * second <= chips; second *= 2)
      for (std::int64_t pipeline = 1; tensor * second * pipeline <= chips; pipeline *= 2)
        for (std::int64_t expert = 1; tensor * second * pipeline * expert <= chips; expert *= 2)
          for (lower::CacheScheme cache :
               {lower::CacheScheme::heads, lower::CacheScheme::batch, lower::CacheScheme::sequence}) {
            serving::ServingStrategy s = testing::tensor_only(tensor);
            s.second = second;
            s.pipeline = pipeline;
            s.data = chips / tensor / second / pipeline;
            s.expert = expert;
            s.scheme = {cache, second > 1 ? lower::WeightScheme::two_dimensions : lower::WeightScheme::one_dimension};
            if (expert > 1 && (second > 1 || !c.model.decoder.kinds.front().feed_forward->experts)) continue;
            for (const collective::AxisLayout& layout : every_order(s, c.cluster)) {
              s.layout = layout;
              price(s);
            }
          }
  EXPECT_GT(tried, 500);
  EXPECT_LE(found.fastest_prompt->prefill.estimate.value(), first_token * (1.0 + 1e-12));
  EXPECT_GE(found.best->served.tokens_per_second.value(), rate * (1.0 - 1e-12));
  // On one switch all places are the same.
  EXPECT_EQ(found.placements > found.strategies, c.cluster.torus.has_value());
}

TEST(ServingSearch, NothingOfAllShardingsAndPlacementsIsBetterBehindSwitches) {
  expect_nothing_better(testing::ServingCase("llama-3-8b", "h100-sxm:4"), 512);
}
TEST(ServingSearch, NothingOfAllShardingsAndPlacementsIsBetterOnATorus) {
  expect_nothing_better(testing::ServingCase("llama-3-8b", "tpu-v5e:2x4"), 64);
}
TEST(ServingSearch, NothingOfAllShardingsAndPlacementsIsBetterForExperts) {
  expect_nothing_better(testing::ServingCase("qwen3-30b-a3b", "h100-sxm:4"), 64);
}

// Every sharding by itself, priced at all batches: the floors are below, and the lesser goals find the same.
TEST(ServingSearch, FloorsAreNeverBeatenAndLesserGoalsFindTheSame) {
  const std::vector<std::pair<const char*, const char*>> cases{{"llama-3-8b", "h100-sxm:8"},
                                                               {"qwen3-30b-a3b", "h200-sxm:4"},
                                                               {"deepseek-v2-lite", "b200:4"},
                                                               {"gemma-2-9b", "tpu-v5e:2x4"}};
  for (const auto& [id, where] : testing::sampled(cases)) {
    const testing::MeasuredServingCase c(id, where);
    const std::int64_t chips = c.cluster.chips();
    const auto of = [&](const ServingChoices& choices, ServingGoal goal) {
      return *search_serving(c.question, c.cluster, choices, goal);
    };
    serving::KnownProfiles known(c.question);
    const serving::LatencyFloors floors(c.question.setup, known.decode({}), known.prefill({}).profile);
    for (std::int64_t tensor = 1; tensor <= chips; tensor *= 2)
      for (std::int64_t second = 1; tensor * second <= chips; second *= 2)
        for (std::int64_t pipeline = 1; tensor * second * pipeline <= chips; pipeline *= 2) {
          ServingChoices choices;
          choices.tensor = tensor, choices.second = second, choices.pipeline = pipeline;
          const auto found = search_serving(c.question, c.cluster, choices);
          if (!found || !found->fits) continue;
          const serving::ServingStrategy& s = found->fastest_token->strategy;
          EXPECT_GE(found->fastest_token->served.per_token, floors.next_token(s))
              << id << " " << tensor << " " << second;
          EXPECT_GE(found->fastest_prompt->prefill.estimate, floors.first_token(s))
              << id << " " << tensor << " " << second;
        }
    const ServingSearch all = of({}, ServingGoal::best);
    const Seconds prompt = all.fastest_prompt->prefill.estimate, token = all.fastest_token->served.per_token;
    const auto first = of({}, ServingGoal::first_token).fastest_prompt;
    const auto next = of({}, ServingGoal::next_token).fastest_token;
    EXPECT_EQ(first->prefill.estimate, prompt);
    EXPECT_TRUE(first->strategy == all.fastest_prompt->strategy);
    EXPECT_EQ(next->served.per_token, token);
    EXPECT_TRUE(next->strategy == all.fastest_token->strategy);
    EXPECT_TRUE(of({}, ServingGoal::fits).fits);
    for (double part : {0.5, 0.999, 1.0, 1.1, 2.0})
      for (const bool both : {false, true}) {
        ServingChoices limits;
        limits.per_token = part * token;
        if (both) limits.first_token = 1.5 * prompt;
        EXPECT_EQ(of(limits, ServingGoal::meets).best.has_value(), of(limits, ServingGoal::best).best.has_value())
            << id << " " << part;
      }
  }
}

TEST(ServingSearch, TheAnswerDoesNotDependOnTheCores) {
  const testing::MeasuredServingCase c("qwen3-30b-a3b", "h200-sxm:64");
  const std::vector<std::optional<Seconds>> limits{std::nullopt, 12_ms};
  for (const std::optional<Seconds> limit : testing::sampled(limits)) {
    ServingChoices choices;
    choices.per_token = limit;
    const ServingSearch all = c.search(choices);
    const OneOfMany alone;
    const ServingSearch one = c.search(choices);
    EXPECT_GT(one.strategies, 100);
    EXPECT_EQ(all.strategies, one.strategies);
    EXPECT_EQ(all.placements, one.placements);
    EXPECT_EQ(all.dropped, one.dropped);
    EXPECT_EQ(all.points, one.points);
    ASSERT_TRUE(all.best && one.best && all.most_prompts && one.most_prompts);
    EXPECT_TRUE(all.best->strategy == one.best->strategy && all.best->batch == one.best->batch);
    EXPECT_EQ(all.best->served.tokens_per_second, one.best->served.tokens_per_second);
    EXPECT_EQ(all.most_prompts->prompts_per_second(), one.most_prompts->prompts_per_second());
    ASSERT_EQ(all.front.size(), one.front.size());
    for (std::size_t i = 0; i < all.front.size(); ++i) {
      EXPECT_TRUE(all.front[i].strategy == one.front[i].strategy && all.front[i].batch == one.front[i].batch) << i;
      EXPECT_EQ(all.front[i].served.per_token, one.front[i].served.per_token) << i;
    }
  }
}

// 2D weights and gathered ones store the same bytes; a long prompt of many tokens is better gathered than summed up.
TEST(ServingSearch, PromptsMayGatherWeightsThatDecodeStepsLeaveWhereTheyAre) {
  testing::ServingCase c("llama-3-70b", "tpu-v5e:4x8");
  c.question.setup.formats.weights = Dtype::int8;
  serving::ServingStrategy s = testing::tensor_only(8);
  s.second = 4;
  s.scheme = {lower::CacheScheme::batch, lower::WeightScheme::two_dimensions};
  const training::StageLinks links = *serving::serving_links(c.question.setup, s, c.cluster);
  double least = HUGE_VAL;
  for (const lower::ServingScheme& scheme : serving::prefill_schemes(s)) {
    serving::ServingStrategy way = s;
    way.scheme = scheme;
    const serving::PrefillOption option{
        scheme,
        serving::make_serving_profile(c.question.setup, way, serving::fresh_prompt(c.question), c.question.prompt)};
    EXPECT_NEAR(option.profile.weights.value(),
                serving::make_serving_profile(c.question.setup, s, 1, 1024).weights.value(), 1.0);
    least = std::min(least, serving::prefill_time(c.question, s, option, links).estimate.value());
  }
  EXPECT_EQ(serving::prefill_schemes(s).size(), 2u);
  EXPECT_EQ(serving::serving_profiles(c.question, s, links).first_token.estimate.value(), least);
}

TEST(ServingMemory, DriverLibrariesGraphsAndAllocatorTakeTheirParts) {
  testing::ServingCase c("llama-3-8b", "h100-sxm:2");
  c.question.prompt = 1000;
  c.question.output = 200;
  serving::ServingStrategy s;
  s.tensor = 2;
  const training::StageLinks links = *serving::serving_links(c.question.setup, s, c.cluster);
  const auto bare = serving::serving_memory(c.question, serving::serving_profiles(c.question, s, links), 8);
  EXPECT_EQ(bare.runtime() + bare.reserve, Bytes());
  EXPECT_EQ(bare.total(), bare.weights + bare.cache + bare.workspace);
  numbers::RuntimeMemory& runtime = c.question.setup.effects.memory;
  runtime = {0.01, 1_GiB, 2_GiB, 3_KiB, 50, 1.1, 1.2};
  const serving::ServingProfiles profiles = serving::serving_profiles(c.question, s, links);
  const serving::ServingMemory memory = serving::serving_memory(c.question, profiles, 8);
  EXPECT_DOUBLE_EQ(memory.driver.value(), (0.01 * 80 * 1_GiB + 1_GiB).value());
  EXPECT_DOUBLE_EQ(memory.communication.value(), (2_GiB).value());
  EXPECT_DOUBLE_EQ(memory.graphs.value(), 50 * profiles.decode.kernels * (3_KiB).value());
  EXPECT_DOUBLE_EQ(memory.workspace.value(), 1.2 * bare.workspace.value());
  EXPECT_NEAR(memory.reserve.value(), 0.1 * memory.workspace.value(), 1.0);
  // A step of 32 layers starts ten to thirty kernels in each.
  EXPECT_GT(profiles.decode.kernels, 32 * 10);
  EXPECT_LT(profiles.decode.kernels, 32 * 30);
  // The largest batch fills what is left, and alone a chip needs no communication library.
  EXPECT_LE(serving::serving_memory(c.question, profiles, memory.max_batch).total(), c.question.capacity);
  EXPECT_GT(serving::serving_memory(c.question, profiles, memory.max_batch + 1).total(), c.question.capacity);
  EXPECT_LT(memory.max_batch, bare.max_batch);
  // Caches that may take half of what is left free hold half as many sequences, or a few more: only caches are doubled.
  serving::ServingQuestion half = c.question;
  half.cache_share = 0.5;
  const serving::ServingMemory fewer = serving::serving_memory(half, profiles, memory.max_batch / 2);
  EXPECT_GE(fewer.max_batch, memory.max_batch / 2 - 1);
  EXPECT_LE(fewer.max_batch, 0.51 * memory.max_batch);
  const serving::ServingMemory full = serving::serving_memory(half, profiles, fewer.max_batch);
  EXPECT_LE(full.total(), c.question.capacity);
  EXPECT_NEAR(full.reserve.value(), (0.1 * full.workspace + full.cache).value(), 1.0);
  const serving::ServingStrategy one;
  EXPECT_EQ(serving::serving_memory(
                c.question,
                serving::serving_profiles(
                    c.question, one,
                    *serving::serving_links(c.question.setup, one,
                                            *hardware::parse_cluster("h100-sxm:1", testing::catalogue(), "test"))),
                8)
                .communication,
            Bytes());
}

TEST(ServingProfile, AnEncoderReadsThePromptAndTheDecoderKeepsTwoCaches) {
  // T5 11B: 24 layers in each stack, width 1024, 128 heads of 128, feed-forward 65536, not gated; table 32128 x 1024.
  testing::ServingCase c("t5-11b", "h100-sxm:1");
  c.question.setup.formats.weights = Dtype::bf16;
  c.question.prompt = 400;
  c.question.output = 100;
  const serving::ServingStrategy one;
  const training::StageLinks links = *serving::serving_links(c.question.setup, one, c.cluster);
  const serving::ServingProfiles profiles = serving::serving_profiles(c.question, one, links);
  // Keys and values of 400 tokens from the encoder and of 100 of the decoder's own, in 24 layers, two bytes each.
  const double token = 2.0 * 24 * 2 * 128 * 128;
  EXPECT_DOUBLE_EQ(profiles.decode.cache.value(), (400 + 100) * token);
  EXPECT_DOUBLE_EQ(profiles.prefill.profile.cache.value(), (400 + 1) * token);
  // Attention 4 x 1024 x 16384, feed-forward 2 x 1024 x 65536; the decoder has attention twice.
  const double attention = 4.0 * 1024 * 16384, mlp = 2.0 * 1024 * 65536, table = 32128.0 * 1024;
  EXPECT_NEAR(profiles.decode.weights.value(), 2.0 * (24 * (3 * attention + 2 * mlp) + table), 1e6);
  // Prefill: the encoder's 400 tokens through its matrices and 400 x 400 scores; in the decoder keys and values of 400
  // tokens, all the rest for one; the head once.
  const double scores = 2.0 * 2 * 16384;
  const double prefill = 24 * 400 * (2 * (attention + mlp) + 400 * scores) +
                         24 * (400 * 2 * attention / 2 + 2 * (attention + attention / 2 + mlp) + (1 + 400) * scores) +
                         2 * table;
  EXPECT_NEAR(profiles.first_token.flops.value(), prefill, 0.001 * prefill);
  // Decode: no matrix of the encoder, no projection of its tokens; 50 own and 400 other keys.
  const serving::ServingTime step = serving::serving_time(c.question.setup, one, profiles.decode, links, 1);
  const double decode = 24 * (2 * (attention + attention / 2 + mlp) + (50 + 400) * scores) + 2 * table;
  EXPECT_NEAR(step.flops.value(), decode, 0.001 * decode);
  EXPECT_TRUE(profiles.prefill.profile.prompts);
  EXPECT_FALSE(profiles.decode.prompts);
  // One token of output: still a step behind the first one.
  c.question.output = 1;
  EXPECT_FALSE(serving::serving_profiles(c.question, one, links).decode.prompts);
}

TEST(ServingMemory, PagesHoldMoreSequencesAndTheirSumIsNearlyNormal) {
  testing::ServingCase c("llama-3-8b", "h100-sxm:1");
  c.question.lengths = serving::request_lengths(*serving::parse_lengths("lognormal:1", 800, "test"),
                                                *serving::parse_lengths("exponential", 300, "test"), 0);
  const serving::ServingStrategy s = testing::tensor_only(1);
  const training::StageLinks links = *serving::serving_links(c.question.setup, s, c.cluster);
  const double whole =
      serving::serving_memory(c.question, serving::serving_profiles(c.question, s, links), 1).max_batch;
  c.question.lengths = serving::request_lengths(c.question.lengths->prompt, c.question.lengths->output, 16);
  const serving::ServingProfiles paged = serving::serving_profiles(c.question, s, links);
  const double most = serving::serving_memory(c.question, paged, 1).max_batch;
  EXPECT_GT(most, 3.0 * whole);  // the longest request is many times the mean
  EXPECT_NEAR(serving::serving_memory(c.question, paged, most).total() / c.question.capacity, 1.0, 0.01);
  EXPECT_NEAR(serving::overflow_probability(c.question, paged, most), 0.01, 0.004);
  // Draw batches of sequences in flight, each at a random page of its life.
  std::mt19937_64 random(11);
  const auto& reserved = c.question.lengths->reserved;
  double tokens = 0.0;
  for (std::int64_t n : reserved) tokens += static_cast<double>(n) / static_cast<double>(reserved.size());
  const serving::ServingMemory memory = serving::serving_memory(c.question, paged, most);
  const double room = (c.question.capacity - memory.weights - memory.workspace) / paged.decode.cache * tokens;
  int over = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    double sum = 0.0;
    for (double i = 0; i < most; i += 1.0) sum += static_cast<double>(reserved[random() % reserved.size()]);
    over += sum > room;
  }
  EXPECT_NEAR(over / 4000.0, 0.01, 0.008);
}

// Half of the sequences of mistral see more than its window of 4096 tokens: the work is not that of their mean.
TEST(ServingProfile, RaggedContextsAreReadEachUpToItsWindow) {
  const testing::ServingCase c("mistral-7b", "h100-sxm:1");
  const serving::ServingStrategy s = testing::tensor_only(1);
  const training::StageLinks links = *serving::serving_links(c.question.setup, s, c.cluster);
  const auto read = [&](std::vector<std::int64_t> seen) {
    const serving::ServingProfile profile =
        serving::make_serving_profile(c.question.setup, s, 1, serving::ServingKeys{std::move(seen), {16384}});
    return serving::serving_time(c.question.setup, s, profile, links, 64).attention_bytes;
  };
  EXPECT_NEAR(read({1024, 16384}).value(), (read({1024}) + read({16384})).value() / 2, 1.0);
  EXPECT_DOUBLE_EQ(read({16384}).value(), read({4096}).value());
  EXPECT_LT(read({1024, 16384}), 0.7 * read({(1024 + 16384) / 2}));
}

TEST(ServingSearch, AlongTheFrontBothGrow) {
  const testing::ServingCase c("mixtral-8x7b", "h100-sxm:8");
  const ServingSearch found = c.search();
  ASSERT_GT(found.front.size(), 5u);
  for (std::size_t i = 1; i < found.front.size(); ++i) {
    EXPECT_GT(found.front[i].served.per_token, found.front[i - 1].served.per_token);
    EXPECT_GT(found.front[i].served.tokens_per_second, found.front[i - 1].served.tokens_per_second);
  }
}

RC_GTEST_PROP(ServingSearch, TheBestMeetsTheWishesAndFits, ()) {
  static const testing::ServingCase c("llama-3-8b", "h100-sxm:4");
  static const ServingSearch free = c.search();
  ServingChoices choices;
  choices.per_token = Seconds(1e-3 * *rc::gen::inRange(1, 60));
  choices.first_token = Seconds(1e-3 * *rc::gen::inRange(1, 200));
  const ServingSearch found = c.search(choices);
  RC_ASSERT(found.best || found.closest);
  if (!found.best) {
    // The floors say why: one of them is above its wish, or no single point has both.
    const serving::ServingPoint& p = *found.closest;
    RC_ASSERT(p.decode.estimate > *choices.per_token || p.prefill.estimate > *choices.first_token);
    return;
  }
  RC_ASSERT(found.best->decode.estimate <= *choices.per_token);
  RC_ASSERT(found.best->prefill.estimate <= *choices.first_token);
  RC_ASSERT(found.best->memory.total() <= c.question.capacity);
  // Wishes never make it better, and the front does not depend on them.
  RC_ASSERT(found.best->served.tokens_per_second <= free.best->served.tokens_per_second);
  RC_ASSERT(found.front.size() == free.front.size());
}

RC_GTEST_PROP(ServingSearch, GivenNumbersAreKept, ()) {
  static const testing::ServingCase c("mixtral-8x7b", "h100-sxm:8");
  ServingChoices choices;
  choices.tensor = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  if (*rc::gen::arbitrary<bool>()) choices.batch = *rc::gen::inRange<std::int64_t>(1, 300);
  const ServingSearch found = c.search(choices);
  const serving::ServingPoint p = found.best ? *found.best : *found.closest;
  RC_ASSERT(p.strategy.tensor == *choices.tensor);
  RC_ASSERT(p.strategy.chips() == 8);
  if (choices.batch) RC_ASSERT(p.batch == static_cast<double>(*choices.batch));
}

TEST(ServingSearch, NoBatchYieldsMoreTokensThanTheBest) {
  constexpr double tolerance = 1.002;
  for (const auto& [id, where] : {std::pair{"gemma-2-9b", "b200:4"}, {"mixtral-8x7b", "b200:2"}}) {
    const testing::MeasuredServingCase c(id, where);
    const ServingSearch found = c.search();
    ServingChoices wish;
    wish.per_token = 0.9 * found.best->served.per_token;
    const ServingSearch wished = c.search(wish);
    ASSERT_TRUE(wished.best);
    for (std::int64_t batch = 8; batch < 4000; batch += 56 * static_cast<std::int64_t>(testing::sampled_every())) {
      ServingChoices given;
      given.batch = batch;
      const ServingSearch one = c.search(given);
      if (!one.best) continue;
      EXPECT_LE(one.best->served.tokens_per_second, tolerance * found.best->served.tokens_per_second)
          << id << " " << batch;
      if (one.best->served.per_token <= *wish.per_token)
        EXPECT_LE(one.best->served.tokens_per_second, tolerance * wished.best->served.tokens_per_second)
            << id << " " << batch;
    }
  }
}

TEST(ServingSearch, MoreMemoryIsNeverWorse) {
  constexpr double tolerance = 1.002;
  testing::MeasuredServingCase c("deepseek-v2-lite", "h100-sxm:2");
  c.question.prompt = 128;
  c.question.output = 1024;
  for (const std::optional<Seconds> wish : {std::optional<Seconds>(), std::optional(20_ms), std::optional(50_ms)}) {
    double before = 0.0;
    for (double more = 1.0; more < 3.0; more += 0.17 * static_cast<double>(testing::sampled_every())) {
      ServingChoices choices;
      choices.per_token = wish;
      c.question.capacity = more * c.cluster.chip.hbm().capacity.value;
      const double now = c.search(choices).best->served.tokens_per_second.value();
      EXPECT_GE(tolerance * now, before) << more;
      before = now;
    }
  }
}

TEST(ServingSearch, TheLargestBatchFitsAndOneMoreDoesNot) {
  const testing::ServingCase c("llama-3-70b", "h100-sxm:8");
  const serving::ServingStrategy s = testing::tensor_only(8);
  const training::StageLinks links = *serving::serving_links(c.question.setup, s, c.cluster);
  const serving::ServingProfiles profiles = serving::serving_profiles(c.question, s, links);
  const double most = serving::serving_memory(c.question, profiles, 1).max_batch;
  EXPECT_LE(serving::serving_memory(c.question, profiles, most).total(), c.question.capacity);
  // The bound counts the space of a prompt and of a step; only caches and weights are sure to be too many.
  const double next = 1.01 * most;
  EXPECT_GT(serving::serving_memory(c.question, profiles, next).total(), c.question.capacity);
}

TEST(ServingMemory, ASequenceLiesOnOneReplica) {
  const testing::ServingCase c("llama-3-8b", "h100-sxm:8");
  const auto memory = [&](serving::ServingStrategy s, double batch) {
    const training::StageLinks links = *serving::serving_links(c.question.setup, s, c.cluster);
    return serving::serving_memory(c.question, serving::serving_profiles(c.question, s, links), batch);
  };
  serving::ServingStrategy replicas, by_batch = testing::tensor_only(8);
  replicas.data = 8;
  by_batch.scheme.cache = lower::CacheScheme::batch;
  // 1280 tokens x 32 layers x 8 heads x 128 x 2 x 2 B on the chip that has the sequence.
  const double sequence = 1280.0 * 32 * 8 * 128 * 2 * 2;
  for (const serving::ServingStrategy& s : {replicas, by_batch})
    for (const auto& [batch, fullest] : {std::pair{1.0, 1.0}, {8.0, 1.0}, {9.0, 2.0}, {17.0, 3.0}})
      EXPECT_DOUBLE_EQ(memory(s, batch).cache.value(), fullest * sequence) << batch;
  EXPECT_EQ(memory(replicas, 1).max_batch, 8.0 * memory(testing::tensor_only(1), 1).max_batch);
}

// 70.55e9 parameters in int8 over 8 chips of 16 GB: 8.82 GB each, 43 caches of 8192 x 163,840 B = 1.342 GB / 8 would
// fill the remaining 7.18 GB; the space of a prompt takes some of it.
TEST(ServingSearch, TheTextbooksBatchOnEightV5e) {
  testing::ServingCase c("llama-3-70b", "tpu-v5e:4x2");
  c.question.setup.formats.weights = c.question.setup.formats.kv_cache = Dtype::int8;
  c.question.prompt = 8191;
  c.question.output = 1;
  c.question.step_tokens = 8191;  // one prompt at a time
  const serving::ServingStrategy s = testing::tensor_only(8);
  const training::StageLinks links = *serving::serving_links(c.question.setup, s, c.cluster);
  const serving::ServingMemory memory =
      serving::serving_memory(c.question, serving::serving_profiles(c.question, s, links), 32);
  EXPECT_NEAR(memory.weights.value(), (70.553706496e9 + 7 * 1318912) / 8, 1);  // norms lie on every chip
  EXPECT_NEAR(memory.cache.value(), 32 * 8192.0 * 163840 / 8, 1);
  EXPECT_GE(memory.max_batch, 40);
  EXPECT_LE(memory.max_batch, 43);
}

TEST(ServingSearch, ACachedPrefixIsNotWorkedOnAgain) {
  testing::ServingCase c("llama-3-8b", "h100-sxm:1");
  c.question.prompt = 4096;
  const Seconds whole = c.search().best->prefill.compute;
  c.question.cached_prompt = 0.75;
  EXPECT_EQ(serving::fresh_prompt(c.question), 1024);
  // A quarter of the products; attention of the last quarter sees all keys, so slightly more than a quarter in all.
  EXPECT_NEAR(c.search().best->prefill.compute / whole, 0.26, 0.02);
}

TEST(ServingSearch, ModelsThatDoNotFitNameTheNearestPoint) {
  const testing::ServingCase c("llama-3.1-405b", "h100-sxm:4");
  const ServingSearch found = c.search();
  EXPECT_FALSE(found.fits);
  EXPECT_FALSE(found.best);
  ASSERT_TRUE(found.closest);
  EXPECT_GT(found.closest->memory.total(), c.question.capacity);
}

// Tokens 8101 to 8199 of llama-4-scout: 92 steps fill up the first chunk of 8192, seven begin the next one.
TEST(ServingPoint, StepsAreCutWhereAChunkBegins) {
  testing::ServingCase c("llama-4-scout", "h200-sxm:8");
  c.question.prompt = 8100;
  c.question.output = 100;
  const serving::ServingStrategy s = testing::tensor_only(8);
  const training::StageLinks links = *serving::serving_links(c.question.setup, s, c.cluster);
  const auto read = [&](const serving::ServingProfile& profile) {
    return serving::serving_time(c.question.setup, s, profile, links, 1).attention_bytes.value();
  };
  double all = 0.0;
  for (std::int64_t keys = 8101; keys < 8200; ++keys)
    all += read(serving::make_serving_profile(c.question.setup, s, 1, keys));
  EXPECT_NEAR(read(serving::make_serving_profile(c.question.setup, s, 1, serving::decode_keys(c.question))), all / 99,
              1e-4 * all / 99);
  // What one more token of context costs is a matter of the other layers, where requests see several chunks.
  EXPECT_EQ(serving::further_context(c.question), 8192);
  c.question.prompt = 4000;
  EXPECT_EQ(serving::further_context(c.question), 2025);
  c.question.prompt = 8000;
  EXPECT_EQ(serving::further_context(c.question), 142);
}

// 80 GiB of a replica's chips keep prefixes: half of them on each of two, so that fewer sequences fit.
TEST(ServingSearch, PrefixesTakeMemoryFromTheBatch) {
  testing::ServingCase c("llama-3-8b", "h100-sxm:2");
  ServingChoices choices;
  choices.tensor = 2;
  const serving::ServingPoint without = *c.search(choices).best;
  c.question.prefix_memory = 80_GiB;
  const serving::ServingPoint with = *c.search(choices).best;
  EXPECT_EQ(with.memory.prefixes, 40_GiB);
  EXPECT_LE(with.memory.total(), c.question.capacity);
  EXPECT_LT(with.memory.max_batch, without.memory.max_batch);
  EXPECT_LT(with.batch, without.batch);
  c.question.prefix_memory = Bytes(1e13);
  EXPECT_FALSE(c.search(choices).fits);
}

}  // namespace
}  // namespace assay::search
