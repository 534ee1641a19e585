// A server that is written for an engine and read back is the same server, with the same prediction.
#include "assay/ask/verbs/serve/serve.h"

#include <gtest/gtest.h>

#include <random>

#include "assay/ask/launch/plan.h"
#include "assay/ask/launch/script.h"
#include "assay/ask/verbs/launched.h"
#include "assay/base/text.h"
#include "assay/testing/catalogue.h"
#include "assay/testing/sampling.h"

namespace assay::verbs::serve {
namespace {

using Words = std::vector<std::string>;
constexpr std::string_view engines[] = {"vllm", "sglang", "tensorrt-llm"};

Request served(const Words& words) {
  auto request = parse_request(words);
  EXPECT_TRUE(request) << (request ? "" : request.error().what);
  return *request;
}

serving::ServingPoint random_point(std::mt19937& random, bool experts) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
  serving::ServingPoint point;
  serving::ServingStrategy& s = point.strategy;
  std::int64_t* const degrees[] = {&s.tensor, &s.pipeline, &s.data};
  for (int i = 0; i < 3; ++i) *degrees[below(3)] *= 2;
  if (experts && below(2) == 0) {
    s.expert_over.tensor = below(2) == 0;
    s.expert = (s.expert_over.tensor ? s.tensor : 1) << below(3);
    if (s.expert > s.tensor * s.data || s.expert == 1) s.expert = 1, s.expert_over = {};
  }
  point.batch = static_cast<double>(s.data << below(8));
  return point;
}

TEST(ServeLaunch, ThousandsOfServersAreReadBackAsTheyAre) {
  const Context context{testing::catalogue()};
  for (const std::string_view engine : engines)
    for (const std::string model : {"llama-3-70b", "qwen3-30b-a3b"}) {
      const auto target = launch::find_target(testing::catalogue(), "serve", engine, "test");
      ASSERT_TRUE(target);
      std::mt19937 random(1);
      int runs = 0;
      const int cases = testing::sampled_count(300);
      for (int i = 0; i < cases; ++i) {
        const serving::ServingPoint point = random_point(random, model == "qwen3-30b-a3b");
        Words words{"serve", model, "--on", "h100-sxm:8", "--software", target->software};
        if (random() % 2 == 0) words.insert(words.end(), {"--kv", "fp8"});
        if (random() % 2 == 0) words.insert(words.end(), {"--chunk", "2048"});
        const Request asked = served(words);
        static std::map<std::string, ServeQuery> queries;  // few differ, and reading takes longest
        const auto [place, fresh] = queries.try_emplace(join(words, " "));
        if (fresh) place->second = *read_serve_query(asked, context);
        launch::Settings plan = plan_of(asked, place->second, point);
        plan["model_path"] = "somebody's/\"own\" " + model;
        if (launch::refusal_of(*target, plan)) continue;
        ++runs;
        const auto lines = launch::lines_of(*target, plan);
        ASSERT_TRUE(lines);
        const auto script = launch::write_script(*target, *lines, plan, {});
        ASSERT_TRUE(script);
        Request request = served({"serve", "--on", "h100-sxm:8", "--from", *script});
        const auto launched = fill_from(request, context);
        ASSERT_TRUE(launched) << launched.error().what << "\n" << *script;
        EXPECT_EQ(request.arguments().front(), model) << *script;
        for (const auto& [option, value] : {std::pair<std::string_view, std::int64_t>{"dp", point.strategy.data},
                                            {"tp", point.strategy.tensor},
                                            {"pp", point.strategy.pipeline},
                                            {"ep", point.strategy.expert},
                                            {"batch", static_cast<std::int64_t>(point.batch)}})
          EXPECT_EQ(request.value(option), std::to_string(value)) << option << "\n" << *script;
        EXPECT_EQ(request.value("kv"), asked.value("kv").value_or("bf16")) << *script;
        EXPECT_EQ(request.value("chunk"), asked.value("chunk")) << *script;
        if (HasFailure()) return;
      }
      EXPECT_GT(10 * runs, cases) << engine << " " << model;
    }
}

TEST(ServeLaunch, PredictionsOfWhatWasWrittenAreTheSame) {
  const Context context{testing::catalogue()};
  for (const std::string_view engine : engines)
    for (const Words& more : testing::sampled<Words>({{"--batch", "32"}, {"--tpot", "40ms"}, {"--kv", "fp8"}})) {
      Words words{"serve", "llama-3-70b", "--on", "h100-sxm:8", "--emit", std::string(engine)};
      words.insert(words.end(), more.begin(), more.end());
      const auto answer = ask(served(words), context);
      ASSERT_TRUE(answer) << engine << ": " << answer.error().what << "; " << answer.error().hint;
      const report::Value results{answer->results};
      const auto script = report::find_path(results, "launch.script");
      ASSERT_TRUE(script) << engine;
      const auto again =
          ask(served({"serve", "--on", "h100-sxm", "--from", std::get<std::string>(script->data())}), context);
      ASSERT_TRUE(again) << engine << ": " << again.error().what;
      const report::Value read{again->results};
      for (const std::string path :
           {"batch", "prefill.time.estimate", "decode.step_time.estimate", "decode.step_time.lower", "memory.total"})
        EXPECT_EQ(report::numeric(*report::find_path(results, path)), report::numeric(*report::find_path(read, path)))
            << engine << " " << path;
    }
}

}  // namespace
}  // namespace assay::verbs::serve
