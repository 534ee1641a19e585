// A plan that is written for a program and read back is the same plan, with the same prediction.
#include "assay/ask/verbs/train/train.h"

#include <gtest/gtest.h>

#include <random>

#include "assay/ask/launch/plan.h"
#include "assay/ask/launch/script.h"
#include "assay/ask/verbs/launched.h"
#include "assay/base/text.h"
#include "assay/testing/catalogue.h"
#include "assay/testing/sampling.h"

namespace assay::verbs::train {
namespace {

using Words = std::vector<std::string>;

struct Written {
  std::string target, model, cluster;
};
const Written written[] = {
    {"megatron-core", "llama-3-70b", "h100-sxm:64"},   {"megatron-core", "qwen3-30b-a3b", "h100-sxm:64"},
    {"megatron-bridge", "llama-3-70b", "h100-sxm:64"}, {"megatron-bridge", "qwen3-30b-a3b", "h100-sxm:64"},
    {"torchtitan", "llama-3-70b", "h100-sxm:64"},      {"torchtitan", "qwen3-30b-a3b", "h100-sxm:64"},
    {"maxtext", "llama-3-70b", "tpu-v5p:4x4x4"},       {"maxtext", "qwen3-30b-a3b", "tpu-v5p:4x4x4"},
    {"deepspeed", "llama-3-70b", "h100-sxm:64"}};

Request request_of(const Words& words) {
  auto request = parse_request(words);
  EXPECT_TRUE(request) << (request ? "" : request.error().what);
  return *request;
}

TrainQuery query_of(const Request& request, const std::string& cluster) {
  auto query = read_train_query(request, {testing::catalogue()}, testing::cluster(cluster));
  EXPECT_TRUE(query) << (query ? "" : query.error().where + ": " + query.error().what);
  return *query;
}

/// Any strategy whose degrees make up 64 chips.
training::Strategy random_strategy(std::mt19937& random, bool experts) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
  training::Strategy s;
  lower::Parallelism& p = s.parallelism;
  std::int64_t* const degrees[] = {&p.data, &p.fsdp, &p.tensor, &p.pipeline, &p.context};
  for (int i = 0; i < 6; ++i) *degrees[below(5)] *= 2;
  if (below(3) == 0) p.data *= std::exchange(p.fsdp, 1);
  if (below(3) == 0) p.fsdp *= std::exchange(p.data, 1);
  if (experts && below(2) == 0) {
    p.expert_over = {below(2) == 0, below(2) == 0};
    p.expert = p.expert_others() << below(4);
    if ((p.data * p.fsdp) % p.expert_data() != 0) p.expert = p.expert_others();
    if (p.expert == 1) p.expert_over = {};
  }
  p.zero = p.data > 1 ? static_cast<int>(below(3)) : 0;
  p.residual = p.tensor > 1 ? static_cast<lower::ResidualScheme>(below(3)) : lower::ResidualScheme::replicated;
  p.context_scheme = p.context > 1 ? static_cast<lower::ContextScheme>(below(2)) : lower::ContextScheme::gather;
  const std::int64_t groups = p.data * p.fsdp;
  s.micro_batch = std::min<std::int64_t>(256 / groups, std::int64_t{1} << below(3));
  if (p.pipeline > 1) {
    constexpr clock::PipelineSchedule schedules[] = {
        clock::PipelineSchedule::one_f_one_b, clock::PipelineSchedule::gpipe, clock::PipelineSchedule::interleaved};
    s.schedule = schedules[below(3)];
    if (s.schedule == clock::PipelineSchedule::interleaved) s.interleave = 2;
  }
  s.recompute = lower::recompute_policies[below(std::size(lower::recompute_policies))].parts;
  if (below(8) == 0) s.offload = training::Offload::optimizer;
  return s;
}

void expect_same(const training::Strategy& s, const search::TrainingChoices& c, const launch::Settings& plan,
                 const std::string& script) {
  const lower::Parallelism& p = s.parallelism;
  EXPECT_EQ(c.data, p.data) << script;
  EXPECT_EQ(c.fsdp, p.fsdp) << script;
  EXPECT_EQ(c.tensor, p.tensor) << script;
  EXPECT_EQ(c.pipeline, p.pipeline) << script;
  EXPECT_EQ(c.context, p.context) << script;
  EXPECT_EQ(c.expert, p.expert) << script;
  if (p.expert > 1) {
    lower::Parallelism over = p;
    over.expert_over = c.expert_over.value_or(lower::ExpertAxes{});
    EXPECT_EQ(lower::expert_axes_text(over), lower::expert_axes_text(p)) << script;
  }
  EXPECT_EQ(c.zero, p.zero) << script;
  EXPECT_EQ(c.micro_batch, s.micro_batch) << script;
  if (p.tensor > 1) EXPECT_EQ(c.residual, p.residual) << script;
  if (p.context > 1) EXPECT_EQ(c.context_scheme, p.context_scheme) << script;
  if (p.pipeline > 1) {
    EXPECT_EQ(c.schedule, s.schedule) << script;
    EXPECT_EQ(c.interleave, s.interleave) << script;
  }
  EXPECT_EQ(c.recompute, s.recompute) << script;
  EXPECT_EQ(c.offloads, std::vector<training::Offload>{s.offload}) << script;
  ASSERT_EQ(c.layout.has_value(), plan.find("order") != plan.end()) << script;
  if (!c.layout) return;
  EXPECT_EQ(program::mesh_text(training::whole_mesh(p, *c.layout)),
            program::mesh_text(training::whole_mesh(p, s.layout)));
}

TEST(TrainLaunch, ThousandsOfStrategiesAreReadBackAsTheyAre) {
  for (const Written& one : written) {
    const auto target = launch::find_target(testing::catalogue(), "train", one.target, "test");
    ASSERT_TRUE(target);
    const Words words{"train",  one.model, "--on", one.cluster,  "--batch",
                      "256seq", "--seq",   "4096", "--software", target->software};
    TrainQuery query = query_of(request_of(words), one.cluster);
    query.bind();
    std::mt19937 random(1);
    int runs = 0;
    const int cases = testing::sampled_count(500);
    const int most = 100 * cases;  // a program may run few of all strategies
    for (int i = 0; i < cases || (100 * runs <= cases && i < most); ++i) {
      training::Strategy strategy = random_strategy(random, one.model == "qwen3-30b-a3b");
      if (one.target == "maxtext") strategy.layout.order = {1, 0, 2, 4, 5, 3, 6, 7};  // dp, pp, fsdp, cp, tp, ep
      const launch::Settings plan = plan_of(query, strategy);
      if (launch::refusal_of(*target, plan)) continue;
      ++runs;
      const auto lines = launch::lines_of(*target, plan);
      ASSERT_TRUE(lines);
      const auto accepted = launch::check_accepted(*target, plan, *lines);
      EXPECT_TRUE(accepted) << one.target << ": " << accepted.error().what;
      const auto script = launch::write_script(*target, *lines, plan, {});
      ASSERT_TRUE(script);
      Words from{"train", one.model, "--on", one.cluster, "--from", *script};
      if (!target->elsewhere.empty())
        from.insert(from.end(), {"--seq", "4096", "--recompute", lower::name(strategy.recompute)});
      Request request = request_of(from);
      const auto launched = fill_from(request, {testing::catalogue()});
      ASSERT_TRUE(launched) << launched.error().where << ": " << launched.error().what << "\n" << *script;
      EXPECT_EQ(request.value("batch"), "256seq");
      EXPECT_EQ(request.value("seq"), "4096");
      const auto read = read_train_query(request, {testing::catalogue()}, query.cluster);
      if (!read) continue;  // a strategy that the model does not allow
      expect_same(strategy, read->choices, plan, *script);
      if (HasFailure()) return;
    }
    EXPECT_GT(100 * runs, cases) << one.target << " " << one.model;
  }
}

/// The whole way: the plan of a search, written, read, and predicted again.
TEST(TrainLaunch, PredictionsOfWhatWasWrittenAreTheSame) {
  for (const Written& one : testing::sampled(std::vector<Written>(std::begin(written), std::end(written)))) {
    if (one.model == "qwen3-30b-a3b" && one.target != "megatron-core") continue;
    const Words common{"--batch", "256seq", "--seq", "4096"};
    Words words{"train", one.model, "--on", one.cluster, "--emit", one.target};
    words.insert(words.end(), common.begin(), common.end());
    const auto answer = ask(request_of(words), {testing::catalogue()});
    ASSERT_TRUE(answer) << one.target << ": " << answer.error().what << answer.error().hint;
    const report::Value results{answer->results};
    const auto script = report::find_path(results, "launch.script");
    ASSERT_TRUE(script) << one.target;
    Words from{"train", one.model, "--on", one.cluster, "--from", std::get<std::string>(script->data())};
    if (one.target == "deepspeed") {
      const auto recompute = report::find_path(results, "strategy.recompute");
      from.insert(from.end(), {"--seq", "4096", "--recompute", std::get<std::string>(recompute->data())});
    }
    const auto again = ask(request_of(from), {testing::catalogue()});
    ASSERT_TRUE(again) << one.target << ": " << again.error().where << again.error().what;
    const report::Value read{again->results};
    for (const std::string path : {"step_time.lower", "step_time.estimate", "step_time.upper", "memory.total", "mfu"})
      EXPECT_EQ(report::numeric(*report::find_path(results, path)), report::numeric(*report::find_path(read, path)))
          << one.target << " " << path;
  }
}

TEST(TrainLaunch, ChangesAreOneChoiceAndFaster) {
  const auto answer =
      ask(request_of({"train",         "llama-3-8b", "--on",        "h100-sxm:16", "--batch",   "64seq",  "--seq",
                      "4096",          "--tp",       "8",           "--dp",        "2",         "--zero", "0",
                      "--micro-batch", "1",          "--recompute", "full",        "--offload", "none",   "--improve"}),
          {testing::catalogue()});
  ASSERT_TRUE(answer) << answer.error().what;
  const report::Value results{answer->results};
  const double before = *report::numeric(*report::find_path(results, "step_time.estimate"));
  const auto rows = report::find_path(results, "changes");
  ASSERT_TRUE(rows && rows->items());
  ASSERT_FALSE(rows->items()->empty());
  double last = 0;
  for (const report::Value& row : *rows->items()) {
    const double time = *report::numeric(*row.find("step_time"));
    EXPECT_LT(time, before);
    EXPECT_GE(time, last);
    last = time;
    EXPECT_TRUE(std::get<std::string>(row.find("change")->data()).starts_with("--"));
  }
}

}  // namespace
}  // namespace assay::verbs::train
