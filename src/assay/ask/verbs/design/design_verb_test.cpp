// Searches of designs and of shapes, through the same call that a front end makes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "assay/ask/verbs/request.h"
#include "assay/testing/sampling.h"

namespace assay::verbs::design_verb {
namespace {

Result<report::Response> ask_design(const std::string& line, const std::string& file = "") {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto request = parse_request_text("design " + line);
  if (!request) return tl::unexpected<Error>(request.error());
  Surroundings surroundings;
  surroundings.attached.emplace("workload.toml", file);
  surroundings.attached.emplace("own.toml", file);
  return ask(*request, {catalogue, surroundings});
}

double number(const report::Value& value, const std::string& path) {
  const auto found = report::find_path(value, path);
  return found ? report::numeric(*found).value_or(-1.0) : -1.0;
}

const report::Items& items(const report::Response& response, std::string_view key) {
  for (const auto& [name, value] : response.results)
    if (name == key) return std::get<report::Items>(value.data());
  throw InternalError("no such key");
}

/// A space of two or three axes over a known design, for a training and a serving request.
std::string random_space(std::mt19937& random, bool exhaustive) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const char* designs[] = {"h100", "a100", "tpu-v4"};
  const char* objectives[] = {"speed", "speed per dollar", "speed per watt"};
  const int design = pick(3);
  std::string out = fmt::format("design = \"{}\"\nobjective = \"{}\"\nexhaustive = {}\n", designs[design],
                                objectives[pick(3)], exhaustive);
  const bool torus = design == 2;
  out += fmt::format("[[request]]\nask = \"train llama-3.2-1b --on {{chip}}:{} --batch {}seq --seq {}\"\nweight = {}\n",
                     torus ? "2x2x1" : "8", 16 << pick(3), 1024 << pick(3), 1 + pick(3));
  out += fmt::format(
      "[[request]]\nask = \"serve llama-3.2-1b --on {{chip}}:{} --prompt {{prompt}} --output 128 --batch {}\"\n",
      torus ? "2x2x1" : "4", 4 << pick(5));
  out += fmt::format("[[vary]]\nprompt = [512, {}]\n", 1024 << pick(3));
  out += "[[vary]]\nclock = [\"0.9 GHz\", \"1.1 GHz\", \"1.5 GHz\"]\n";
  if (pick(2) == 0) out += "[[vary]]\n\"memory.stacks_on\" = [2, 3, 4]\n";
  if (pick(2) == 0 && !torus) out += "[[vary]]\n\"die.0.cores_on\" = [60, 84, 108]\n";
  if (pick(3) == 0) out += "[limits]\npower = \"250 W\"\n";
  return out;
}

// The front that bounds leave is that of asking all.
TEST(DesignSpace, FrontsAreThoseOfEnumeration) {
  const auto spaces = static_cast<unsigned>(testing::sampled_count(20));
  for (unsigned seed = 1; seed <= spaces; ++seed) {
    std::mt19937 random(seed), again(seed);
    const auto bounded = ask_design("--workload workload.toml", random_space(random, false)),
               whole = ask_design("--workload workload.toml", random_space(again, true));
    ASSERT_TRUE(bounded) << seed << bounded.error().where << bounded.error().what;
    ASSERT_TRUE(whole) << seed;
    ASSERT_EQ(bounded->headline, whole->headline) << seed;
    if (whole->outcome != report::Outcome::ok) continue;
    const report::Items &left = items(*bounded, "front"), &right = items(*whole, "front");
    ASSERT_EQ(left.size(), right.size()) << seed;
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(number(left[i], "speed"), number(right[i], "speed")) << seed;
      EXPECT_EQ(number(left[i], "per_hour"), number(right[i], "per_hour")) << seed;
    }
    // A front rises in both.
    for (std::size_t i = 1; i < left.size(); ++i) EXPECT_GT(number(left[i], "speed"), number(left[i - 1], "speed"));
  }
}

// More memory, a faster clock or more links at no cost: never slower.
TEST(DesignSpace, MoreOfAResourceIsNeverSlower) {
  for (const char* axis :
       {"clock = [\"0.8 GHz\", \"1.2 GHz\", \"1.6 GHz\"]", "\"memory.stacks_on\" = [3, 4, 5]",
        "\"memory.bandwidth\" = [\"400 GB/s\", \"600 GB/s\", \"800 GB/s\"]", "\"die.0.links.nvlink4\" = [4, 9, 18]"}) {
    const auto found =
        ask_design("--workload workload.toml",
                   fmt::format("design = \"h100\"\nobjective = \"speed\"\nexhaustive = true\n[[request]]\n"
                               "ask = \"train llama-3-8b --on {{chip}}:8 --batch 32seq --seq 4096\"\n[[vary]]\n{}\n",
                               axis));
    ASSERT_TRUE(found) << axis << found.error().what;
    EXPECT_EQ(number(report::Value(found->results), "search.evaluated"), 3) << axis;
    const report::Items& steps = items(*found, "bound_by");
    for (const report::Value& step : steps) EXPECT_LE(number(step, "speed"), 1e-9) << axis;
  }
}

TEST(DesignSpace, FaultsNameThePlaceAndTheRemedy) {
  const std::string request = "[[request]]\nask = \"train llama-3-8b --on {chip}:8 --batch 32seq\"\n";
  const auto refused = [&](const std::string& file) {
    const auto answer = ask_design("--workload workload.toml", file);
    return answer ? "" : answer.error().where + ": " + answer.error().what;
  };
  EXPECT_EQ(refused("design = \"h100\"\n" + request), "workload.toml:1:1: vary: nothing varies");
  EXPECT_EQ(refused("design = \"h100\"\n[[vary]]\nclock = [\"1 GHz\"]\n"),
            "workload.toml:1:1: request: there is nothing to be good at");
  EXPECT_EQ(refused("design = \"h1000\"\n" + request + "[[vary]]\nclock = [\"1 GHz\"]\n"),
            "FILE: unknown design \"h1000\"");
  EXPECT_EQ(refused("design = \"h100\"\n" + request + "[[vary]]\nclok = [\"1 GHz\"]\n"),
            "workload.toml: vary: no request has {clok}, and the design has no such key");
  EXPECT_EQ(refused("design = \"h100\"\n" + request + "[[vary]]\n\"die.3.cores\" = [8]\n"),
            "workload.toml: vary: the design has no \"die.3.cores\"");
  EXPECT_EQ(
      refused("design = \"h100\"\n" + request + "[[vary]]\nclock = [\"1 GHz\", \"2 GHz\"]\n\"die.0.cores_on\" = [8]\n"),
      "workload.toml:6:1: vary.die.0.cores_on: values that change together are equally many, 2 and 1");
}

TEST(DesignSpace, ClustersAndModelsVaryToo) {
  const auto found = ask_design("--workload workload.toml",
                                "design = \"h100\"\nobjective = \"speed\"\n[[request]]\n"
                                "ask = 'train {\"base\": \"llama-3-8b\", \"num_hidden_layers\": {layers}} --on "
                                "{chip}:64 --batch 64seq --seq 4096 --tp {tp}'\n"
                                "[[vary]]\nlayers = [16, 24]\n[[vary]]\ntp = [8, "
                                "16]\n[[vary]]\n\"chip.network.scale_up.domain\" = [8, 16, 32]\n");
  ASSERT_TRUE(found) << found.error().where << found.error().what;
  const auto best = report::find_path(report::Value(found->results), "best.values");
  ASSERT_TRUE(best);
  EXPECT_TRUE(std::get<std::string>(best->data()).starts_with("layers 16, tp 8"));
}

TEST(ModelShape, TheFastestOfAsManyParameters) {
  const auto found = ask_design("--model-shape llama-3.2-1b --on h100-sxm:8 --batch 64seq --seq 2048");
  ASSERT_TRUE(found) << found.error().what;
  const report::Value results(found->results);
  const double base = number(results, "base.parameters"), best = number(results, "best.parameters");
  EXPECT_LE(best, base);
  EXPECT_GE(best, 0.98 * base);
  EXPECT_GE(number(results, "best.faster"), 0.0);
  // What is said of the best is what asking for it answers.
  const auto model = report::find_path(results, "best.model");
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto request =
      parse_request_text("train " + std::get<std::string>(model->data()) + " --on h100-sxm:8 --batch 64seq --seq 2048");
  ASSERT_TRUE(request) << request.error().what;
  const auto answer = ask(*request, {catalogue});
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(number(report::Value(answer->results), "tokens_per_second"), number(results, "best.tokens_per_second"));
}

// More time never raises the loss, and wants a larger model.
TEST(ModelShape, MoreTimeWantsALargerModel) {
  double loss = 100.0, parameters = 0.0;
  for (const char* time : {"12h", "4days", "30days"}) {
    const auto found = ask_design(fmt::format(
        "--model-shape llama-3.2-1b --on h100-sxm:8 --batch 64seq --seq 2048 --fields layers,width --time {}", time));
    ASSERT_TRUE(found) << found.error().what;
    const report::Value results(found->results);
    EXPECT_LT(number(results, "best.loss"), loss) << time;
    EXPECT_GT(number(results, "best.parameters"), parameters) << time;
    loss = number(results, "best.loss");
    parameters = number(results, "best.parameters");
  }
}

TEST(Owning, FollowsItsFigures) {
  const auto usual = ask_design("h100"),
             dear = ask_design("h100 --owning own.toml", "[energy]\nprice = { typical = \"0.134 USD/kWh\" }\n"),
             far = ask_design("h100 --chips 100000"),
             clean = ask_design("h100 --owning own.toml", "[use]\ngrid = \"iceland\"\n");
  for (const auto* one : {&usual, &dear, &far, &clean}) ASSERT_TRUE(*one) << one->error().where << one->error().what;
  const auto of = [](const Result<report::Response>& answer, const char* key) {
    return number(report::Value(answer->results), std::string("owning.") + key);
  };
  EXPECT_NEAR(of(dear, "energy"), 2.0 * of(usual, "energy"), 1e-12);
  EXPECT_EQ(of(dear, "chip"), of(usual, "chip"));
  EXPECT_GT(of(far, "network"), of(usual, "network"));
  EXPECT_NEAR(of(clean, "co2_grams") / of(usual, "co2_grams"), 7.3 / 369.0, 1e-9);
  double sum = 0.0;
  for (const char* part : {"chip", "server", "network", "building", "energy"}) sum += of(usual, part);
  EXPECT_NEAR(sum, of(usual, "per_hour"), 1e-12);
  const auto wrong = ask_design("h100 --owning own.toml", "[use]\ngrid = \"moon\"\n");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().what, "unknown grid \"moon\"");
}

}  // namespace
}  // namespace assay::verbs::design_verb
