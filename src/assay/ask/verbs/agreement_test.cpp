// One price: headline, list and explanation of the same request are the same number, to the last bit.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/base/number_format.h"
#include "assay/testing/catalogue.h"
#include "assay/testing/sampling.h"

namespace assay::verbs {
namespace {

Result<report::Response> answer_of(const std::string& line) {
  const auto words = split_words(line);
  if (!words) return tl::unexpected<Error>(words.error());
  auto request = parse_request(*words);
  if (!request) return tl::unexpected<Error>(request.error());
  return ask(*request, {testing::catalogue()});
}

double number_at(const report::Value& results, std::string_view path) {
  const auto value = report::find_path(results, path);
  const auto found = value ? report::numeric(*value) : std::nullopt;
  EXPECT_TRUE(found) << path;
  return found.value_or(-1.0);
}

/// The elasticity that --derivatives gives a figure of a chip's file, told by its value.
double elasticity_of(const report::Value& results, std::string_view result, double value) {
  const auto figures = report::find_path(results, "derivatives.figures");
  double sum = 0.0;
  for (const report::Value& row : std::get<report::Items>(figures->data()))
    if (std::get<std::string>(row.find("result")->data()) == result &&
        std::get<std::string>(row.find("source")->data()).starts_with("chips/") &&
        std::abs(number_at(row, "value") / value - 1.0) < 1e-9)
      sum += number_at(row, "elasticity");
  return sum;
}

// What --derivatives says is what --set does.
TEST(Agreement, DerivativesAreWhatSettingANumberChanges) {
  struct Case {
    const char *request, *result, *path, *key;
    double value;
    const char* unit;
  };
  const std::string train =
      "train llama-3-8b --on h100-sxm:16 --batch 64seq --seq 4096 --dp 16 --zero 2 --micro-batch 1 --recompute none "
      "--offload none";
  const std::string serve = "serve llama-3-70b --on h100-sxm:8 --prompt 1000 --output 200 --batch 32 --tp 8";
  const Case cases[] = {
      {train.c_str(), "step time", "step_time.estimate", "peak.bf16", 989.4e12, "FLOP/s"},
      {train.c_str(), "step time", "step_time.estimate", "memory.hbm.bandwidth", 3.35e12, "B/s"},
      {train.c_str(), "step time", "step_time.estimate", "network.scale_out.bandwidth", 50e9, "B/s"},
      {serve.c_str(), "output tokens per second per chip", "served.output_tokens_per_second_per_chip",
       "memory.hbm.bandwidth", 3.35e12, "B/s"},
      {serve.c_str(), "output tokens per second per chip", "served.output_tokens_per_second_per_chip", "peak.bf16",
       989.4e12, "FLOP/s"},
      {"roofline 'bf16[4096,4096] @ bf16[4096,4096]' --on h100-sxm", "estimate", "time.estimate", "peak.bf16", 989.4e12,
       "FLOP/s"},
  };
  for (const Case& one : cases) {
    const auto base = answer_of(std::string(one.request) + " --derivatives");
    ASSERT_TRUE(base) << one.request << ": " << base.error().what;
    const auto at = [&](double factor) {
      const auto moved =
          answer_of(fmt::format("{} --set '{}={} {}'", one.request, one.key, factor * one.value, one.unit));
      EXPECT_TRUE(moved) << moved.error().what;
      return moved ? number_at(report::Value(moved->results), one.path) : -1.0;
    };
    constexpr double step = 1e-4;
    const double finite =
        (at(1.0 + step) - at(1.0 - step)) / (2.0 * step) / number_at(report::Value(base->results), one.path);
    EXPECT_NEAR(elasticity_of(report::Value(base->results), one.result, one.value), finite, 2e-3)
        << one.request << ": " << one.key;
  }
}

/// The root of that name, or else the first value of that name in the derivation.
double derived(const report::Response& response, std::string_view name) {
  for (const int id : response.derived)
    if (response.ledger.at(id).name == name) return response.ledger.at(id).quantity.value;
  for (int id = 0; id < response.ledger.size(); ++id)
    if (response.ledger.at(id).name == name) return response.ledger.at(id).quantity.value;
  ADD_FAILURE() << name << " is not derived";
  return -1.0;
}

/// The value of that name right below a root.
double part_of_root(const report::Response& response, std::string_view name) {
  const auto find = [&](const auto& self, int id) -> std::optional<double> {
    const Node& node = response.ledger.at(id);
    for (const int operand : {node.lhs, node.rhs}) {
      if (operand < 0) continue;
      const Node& below = response.ledger.at(operand);
      if (below.name == name) return below.quantity.value;
      if (!below.name.empty()) continue;
      if (const auto found = self(self, operand)) return found;
    }
    return std::nullopt;
  };
  for (const int root : response.derived)
    if (const auto found = find(find, root)) return *found;
  ADD_FAILURE() << name << " is not derived";
  return -1.0;
}

/// Every value is what its operands give, and nothing is given without saying from where.
void expect_consistent(const Ledger& ledger, const std::string& line) {
  for (int id = 0; id < ledger.size(); ++id) {
    const Node& node = ledger.at(id);
    const double a = node.lhs >= 0 ? ledger.at(node.lhs).quantity.value : 0.0;
    const double b = node.rhs >= 0 ? ledger.at(node.rhs).quantity.value : 0.0;
    const auto expected = [&]() -> double {
      switch (node.op) {
        case Node::Op::given:
        case Node::Op::constant:
          return node.quantity.value;
        case Node::Op::alias:
          return a;
        case Node::Op::mul:
          return a * b;
        case Node::Op::div:
          return a / b;
        case Node::Op::add:
          return a + b;
        case Node::Op::sub:
          return a - b;
        case Node::Op::max:
          return a < b ? b : a;
        case Node::Op::min:
          return b < a ? b : a;
        case Node::Op::ceil:
          return std::ceil(a);
        case Node::Op::sqrt:
          return std::sqrt(a);
      }
      return 0.0;
    };
    EXPECT_EQ(node.quantity.value, expected()) << node.name << " of " << line;
    if (node.op == Node::Op::given) EXPECT_FALSE(node.source.empty()) << node.name << " of " << line;
  }
}

/// Whether a given number is the size of an element in a number format that its source names.
bool is_element(const Node& node) {
  const std::size_t word = node.source.find(' ');
  const auto format = parse_number_format(node.source.substr(0, word), "source");
  if (!format || node.quantity.dim != Bytes::dim) return false;
  const double plain = storage(*format, 1.0).value();
  if (word == std::string::npos) return node.quantity.value == plain;
  return node.source.ends_with(" with scales") && plain < node.quantity.value && node.quantity.value < 2.0 * plain;
}

/// Times, bytes and FLOP that a derivation takes as given, but for those of files and of the request, elements of
/// number formats, and the arithmetic of one element, which its formula defines.
std::string bare_numbers(const report::Response& response) {
  constexpr Flops most_of_element = 32_FLOP;
  std::string bare;
  std::set<int> seen;
  std::vector<int> left(response.derived.begin(), response.derived.end());
  while (!left.empty()) {
    const int id = left.back();
    left.pop_back();
    if (id < 0 || !seen.insert(id).second) continue;
    const Node& node = response.ledger.at(id);
    left.insert(left.end(), {node.lhs, node.rhs});
    const Dim unit = node.quantity.dim;
    const bool counts = unit == Seconds::dim || unit == Bytes::dim || unit == Flops::dim;
    if (node.op != Node::Op::given || !counts || node.quantity.value == 0.0 || is_element(node)) continue;
    if (node.source.find(".toml") != std::string::npos || node.source.starts_with("--")) continue;
    if (unit == Flops::dim && node.quantity.value <= most_of_element.value()) continue;
    bare += fmt::format("{} = {} [{}]; ", node.name, node.quantity.value, node.source);
  }
  return bare;
}

/// What a list of steps adds up to, as the price does: the steps of a layer, then its layers, then all of them.
double listed(const report::Value& results, const std::string& key) {
  const auto rows = report::find_path(results, key);
  EXPECT_TRUE(rows) << key;
  std::vector<std::pair<std::string, std::pair<double, double>>> blocks;  // layers and seconds
  for (const report::Value& row : *rows->items()) {
    const std::string block = report::scalar_text(*row.find("block"));
    if (blocks.empty() || blocks.back().first != block) blocks.push_back({block, {0.0, 0.0}});
    blocks.back().second.first = report::numeric(*row.find("layers")).value_or(0.0);
    blocks.back().second.second +=
        report::numeric(*row.find("per_layer")).value_or(0.0) * report::numeric(*row.find("time")).value_or(0.0);
  }
  double sum = 0.0;
  for (const auto& [name, block] : blocks) sum += block.first * block.second;
  return sum;
}

template <class T>
const T& one_of(const std::vector<T>& all, std::mt19937& draw) {
  return all[draw() % all.size()];
}

std::string random_serving(std::mt19937& draw) {
  const std::vector<std::string> models{"llama-3-8b",  "llama-3-70b",   "mixtral-8x7b", "gemma-2-27b", "qwen3-30b-a3b",
                                        "deepseek-v3", "nemotron-h-8b", "rwkv-7-1.5b",  "gpt2-xl",     "gpt-oss-120b"};
  const std::vector<std::string> clusters{"h100-sxm:8", "h200-sxm:16",    "tpu-v5e:4x4", "tpu-v5p:2x2x2",
                                          "mi300x:8",   "a100-sxm-80:16", "b200:8"};
  const std::vector<std::string> options{"", " --weights fp8 --kv fp8", " --fusion eager", " --weights int8",
                                         " --prompts 4"};
  return fmt::format("serve {} --on {} --prompt {} --output {} --batch {}{} --explain --list", one_of(models, draw),
                     one_of(clusters, draw), 128u << draw() % 6, 64u << draw() % 4, 1u << draw() % 8,
                     one_of(options, draw));
}

std::string random_training(std::mt19937& draw) {
  const std::vector<std::string> models{"llama-3-8b",  "llama-2-13b",     "mixtral-8x7b", "gpt-3-13b", "qwen3-30b-a3b",
                                        "gemma-2-27b", "falcon-mamba-7b", "zamba2-7b",    "t5-11b",    "jamba-v0.1"};
  const std::vector<std::string> clusters{"h100-sxm:64",   "h200-sxm:16", "tpu-v5e:8x8",
                                          "tpu-v5p:4x4x4", "mi300x:32",   "a100-sxm-80:64"};
  const std::vector<std::string> options{
      "",          " --tp 4",         " --pp 4",       " --recompute full",    " --tp 2 --pp 2",          " --cp 2",
      " --zero 3", " --software any", " --no-overlap", " --offload optimizer", " --pp 4 --schedule gpipe"};
  return fmt::format("train {} --on {} --batch {}seq --seq {}{} --tokens 1T --explain", one_of(models, draw),
                     one_of(clusters, draw), 128u << draw() % 3, 1024u << draw() % 3, one_of(options, draw));
}

std::vector<std::string> drawn(std::string (*one)(std::mt19937&)) {
  std::mt19937 draw(11);
  std::vector<std::string> lines;
  for (int i = 0; i < 50; ++i) lines.push_back(one(draw));
  return lines;
}

/// Experts that leave no data axis to weights, arrays that devices split unevenly, and weights on several stages.
const std::vector<std::string> rare_training{
    "train deepseek-v3 --on h100-sxm:512 --batch 2048seq --seq 4096 --tokens 1T --explain",
    "train gpt2-xl --on a100-sxm-80:48 --batch 96seq --seq 1024 --dp 48 --zero 3 --tokens 1T --explain",
    "train gemma-2-2b --on h100-sxm:16 --batch 64seq --seq 2048 --pp 2 --tokens 1T --explain",
    "train gpt-3-13b --on a100-sxm-80:64 --batch 256seq --seq 2048 --software any --fusion eager --tokens 1T --explain",
    "train rwkv-4-3b --on h100-sxm:8 --batch 64seq --seq 4096 --cp 2 --tokens 1T --explain"};

/// Every kernel and every collective of a listed step has its number in the derivation of the step, to the last bit, as
/// part of its block. Returns how many.
std::size_t expect_derived(const report::Response& response, const std::string& steps, std::string_view root,
                           const std::string& line) {
  const auto rows = report::find_path(report::Value(response.results), steps);
  std::map<std::string, std::map<std::string, std::set<double>>> blocks;  // numbers by block and name
  for (const report::Value& row : *rows->items()) blocks[report::scalar_text(*row.find("block"))];
  std::set<std::pair<int, const void*>> seen;
  const auto note = [&](const auto& self, int id, std::map<std::string, std::set<double>>* block) -> void {
    if (id < 0 || !seen.emplace(id, block).second) return;
    const Node& node = response.ledger.at(id);
    if (const auto known = blocks.find(node.name); !block && known != blocks.end()) block = &known->second;
    if (block) (*block)[node.name].insert(node.quantity.value);
    self(self, node.lhs, block);
    self(self, node.rhs, block);
  };
  std::vector<int> ids(response.derived.begin(), response.derived.end());  // of a root, or else of what one is made of
  for (int id = 0; id < response.ledger.size(); ++id) ids.push_back(id);
  const auto found = std::find_if(ids.begin(), ids.end(), [&](int id) { return response.ledger.at(id).name == root; });
  if (found != ids.end()) note(note, *found, nullptr);
  std::size_t compared = 0;
  for (const report::Value& row : *rows->items()) {
    const double time = report::numeric(*row.find("time")).value_or(0.0);
    if (!(time > 0.0)) continue;
    ++compared;
    const std::string block = report::scalar_text(*row.find("block")), step = report::scalar_text(*row.find("step"));
    EXPECT_TRUE(blocks[block][step].contains(time)) << step << " of " << block << ", " << time << " s, of " << line;
  }
  return compared;
}

/// Prices that a search adds up in another order than a derivation.
void expect_sum(double derived, double priced, const std::string& line) {
  constexpr double rounding = 1e-12;
  EXPECT_NEAR(derived, priced, rounding * std::abs(priced)) << line;
}

TEST(Agreement, AServerIsListedAndDerivedAsItIsPriced) {
  const std::vector<std::string> lines = testing::sampled(drawn(&random_serving));
  std::size_t answered = 0, compared = 0;
  for (const std::string& line : lines) {
    const auto response = answer_of(line);
    if (!response) continue;
    const report::Value results(response->results);
    if (!report::find_path(results, "decode.step_time")) continue;
    ++answered;
    expect_sum(derived(*response, "decode step"), number_at(results, "decode.step_time.estimate"), line);
    expect_sum(derived(*response, "prefill"), number_at(results, "prefill.time.estimate"), line);
    EXPECT_EQ(derived(*response, "kernels and collectives"), listed(results, "decode_steps")) << line;
    compared += expect_derived(*response, "decode_steps", "decode step", line) +
                expect_derived(*response, "prefill_steps", "prefill", line);
    expect_sum(derived(*response, "step with prompts"), number_at(results, "served.mixed_step_time.estimate"), line);
    expect_sum(derived(*response, "output tokens per second per chip"),
               number_at(results, "served.output_tokens_per_second_per_chip"), line);
    EXPECT_EQ(derived(*response, "memory"), number_at(results, "memory.total")) << line;
    if (report::find_path(results, "served.cost_per_million_output_tokens"))
      expect_sum(derived(*response, "cost per million output tokens"),
                 number_at(results, "served.cost_per_million_output_tokens"), line);
    expect_consistent(response->ledger, line);
    EXPECT_EQ(bare_numbers(*response), "") << line;
  }
  EXPECT_GE(2 * answered, lines.size());
  EXPECT_GT(compared, 10 * answered);
}

/// Equal but for rounding: kernels at their clock are added up one by one, and as sums in the search.
void expect_close(double derived, double shown, const std::string& what) {
  EXPECT_NEAR(derived, shown, 1e-12 * shown) << what;
}

TEST(Agreement, AStepIsDerivedAsItIsPriced) {
  std::vector<std::string> lines = testing::sampled(drawn(&random_training));
  for (const std::string& rare : rare_training) lines.push_back(rare);
  std::size_t answered = 0;
  for (const std::string& line : lines) {
    const auto response = answer_of(line);
    if (!response || response->outcome != report::Outcome::ok) continue;
    ++answered;
    const report::Value results(response->results);
    expect_close(derived(*response, "step time"), number_at(results, "step_time.estimate"), line);
    EXPECT_EQ(derived(*response, "memory"), number_at(results, "memory.total")) << line;
    for (const auto& [part, path] :
         {std::pair("compute", "breakdown.compute"), std::pair("tensor collectives", "breakdown.tensor_collectives"),
          std::pair("context collectives", "breakdown.context_collectives"),
          std::pair("expert collectives", "breakdown.expert_collectives"),
          std::pair("exposed weights traffic", "breakdown.weights_exposed"),
          std::pair("stage handover", "breakdown.stage_handover"),
          std::pair("pipeline bubble", "breakdown.pipeline_bubble"),
          std::pair("exposed gradients", "breakdown.gradients_exposed"), std::pair("update", "breakdown.update"),
          std::pair("parameters", "memory.parameters"), std::pair("gradients", "memory.gradients")})
      if (const double shown = number_at(results, path); shown > 0.0)
        expect_close(part_of_root(*response, part), shown, std::string(part) + " of " + line);
    expect_close(derived(*response, "training time"), number_at(results, "training_time.estimate"), line);
    for (const char* known : {"cost", "energy"})  // of chips with a price, and with a published power
      if (const auto shown = report::find_path(results, known); shown && report::numeric(*shown))
        expect_close(derived(*response, known), number_at(results, known), line);
    expect_consistent(response->ledger, line);
    EXPECT_EQ(bare_numbers(*response), "") << line;
  }
  EXPECT_GE(2 * answered, lines.size());
}

}  // namespace
}  // namespace assay::verbs
