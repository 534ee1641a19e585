// One price: headline, list and explanation of the same request are the same number, to the last bit.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "assay/testing/catalogue.h"
#include "assay/testing/sampling.h"
#include "assay/verbs/request.h"

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

/// The first value of that name in the derivation.
double derived(const report::Response& response, std::string_view name) {
  for (int id = 0; id < response.ledger.size(); ++id)
    if (response.ledger.at(id).name == name) return response.ledger.at(id).quantity.value;
  ADD_FAILURE() << name << " is not derived";
  return -1.0;
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
  const std::vector<std::string> models{"llama-3-8b",  "llama-3-70b",   "mixtral-8x7b",
                                        "gemma-2-27b", "qwen3-30b-a3b", "deepseek-v3"};
  const std::vector<std::string> clusters{"h100-sxm:8", "h200-sxm:16",    "tpu-v5e:4x4", "tpu-v5p:2x2x2",
                                          "mi300x:8",   "a100-sxm-80:16", "b200:8"};
  const std::vector<std::string> options{"", " --weights fp8 --kv fp8", " --fusion eager", " --weights int8",
                                         " --prompts 4"};
  return fmt::format("serve {} --on {} --prompt {} --output {} --batch {}{} --explain --list", one_of(models, draw),
                     one_of(clusters, draw), 128u << draw() % 6, 64u << draw() % 4, 1u << draw() % 8,
                     one_of(options, draw));
}

std::string random_training(std::mt19937& draw) {
  const std::vector<std::string> models{"llama-3-8b", "llama-2-13b",   "mixtral-8x7b",
                                        "gpt-3-13b",  "qwen3-30b-a3b", "gemma-2-27b"};
  const std::vector<std::string> clusters{"h100-sxm:64",   "h200-sxm:16", "tpu-v5e:8x8",
                                          "tpu-v5p:4x4x4", "mi300x:32",   "a100-sxm-80:64"};
  const std::vector<std::string> options{"", " --tp 4", " --pp 4", " --recompute full", " --tp 2 --pp 2", " --cp 2"};
  return fmt::format("train {} --on {} --batch {}seq --seq {}{} --explain", one_of(models, draw),
                     one_of(clusters, draw), 128u << draw() % 3, 1024u << draw() % 3, one_of(options, draw));
}

std::vector<std::string> drawn(std::string (*one)(std::mt19937&)) {
  std::mt19937 draw(11);
  std::vector<std::string> lines;
  for (int i = 0; i < 25; ++i) lines.push_back(one(draw));
  return lines;
}

TEST(Agreement, AServerIsListedAndDerivedAsItIsPriced) {
  const std::vector<std::string> lines = testing::sampled(drawn(&random_serving));
  std::size_t answered = 0;
  for (const std::string& line : lines) {
    const auto response = answer_of(line);
    if (!response) continue;
    const report::Value results(response->results);
    if (!report::find_path(results, "decode.step_time")) continue;
    ++answered;
    EXPECT_EQ(derived(*response, "decode step"), number_at(results, "decode.step_time.estimate")) << line;
    EXPECT_EQ(derived(*response, "prefill"), number_at(results, "prefill.time.estimate")) << line;
    EXPECT_EQ(derived(*response, "kernels and collectives"), listed(results, "decode_steps")) << line;
  }
  EXPECT_GE(2 * answered, lines.size());
}

TEST(Agreement, AStepIsDerivedAsItIsPriced) {
  const std::vector<std::string> lines = testing::sampled(drawn(&random_training));
  std::size_t answered = 0;
  for (const std::string& line : lines) {
    const auto response = answer_of(line);
    if (!response || response->outcome != report::Outcome::ok) continue;
    ++answered;
    const double priced = number_at(report::Value(response->results), "step_time.estimate");
    EXPECT_EQ(derived(*response, "step time"), priced) << line;
  }
  EXPECT_GE(2 * answered, lines.size());
}

}  // namespace
}  // namespace assay::verbs
