// Default plans of ordinary requests can be run: they divide what their software wants divided, and keep their margin.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "assay/ask/verbs/request.h"
#include "assay/base/text.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/clock/stage_split.h"
#include "assay/testing/sampling.h"

namespace assay::verbs::train {
namespace {

const std::vector<std::string> models{"gpt2",        "llama-2-7b",    "llama-3-8b",   "mistral-7b", "gpt-neox-20b",
                                      "gemma-2-27b", "qwen3-30b-a3b", "mixtral-8x7b", "qwen3-8b",   "llama-3-70b",
                                      "llama-2-13b", "gpt-3-175b",    "qwen2.5-72b"};
const std::vector<std::string> clusters{"h100-sxm:8", "h100-sxm:64", "a100-sxm-80:128", "h200-sxm:32", "b200:64",
                                        "mi300x:64",  "tpu-v5e:8x8", "tpu-v5p:4x4x4",   "v100-sxm:64", "h100-sxm:256"};

std::string text_at(const report::Response& response, const std::string& path) {
  const auto value = report::find_path(report::Value{response.results}, path);
  return value ? report::scalar_text(*value) : "";
}
std::int64_t count_at(const report::Response& response, const std::string& path) {
  const auto value = report::find_path(report::Value{response.results}, path);
  return value ? static_cast<std::int64_t>(report::numeric(*value).value_or(0.0)) : 0;
}

/// Checks an answer without the rules of the search.
void expect_runs(const report::Response& answer, const model::Transformer& model, const std::string& line) {
  const auto n = [&](const std::string& key) { return count_at(answer, "strategy." + key); };
  EXPECT_EQ(n("dp") * n("fsdp") * n("tp") * n("cp") * n("pp"), count_at(answer, "chips")) << line;
  EXPECT_EQ(n("dp") * n("fsdp") * n("micro_batch") * n("microbatches"), count_at(answer, "sequences")) << line;
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.attention) {
      EXPECT_EQ(layer.attention->heads % n("tp"), 0) << line;
      const std::int64_t keys = layer.attention->kv_heads;
      EXPECT_TRUE(keys % n("tp") == 0 || n("tp") % keys == 0) << line;
    }
  const std::string software = text_at(answer, "software"), schedule = text_at(answer, "strategy.schedule");
  const std::int64_t layers = clock::layers_of(model), parts = n("pp") * n("interleave");
  const bool is_even = layers % parts == 0;
  if (software.starts_with("megatron-core")) {
    EXPECT_TRUE(schedule == "none" || schedule == "1f1b" || schedule == "interleaved") << line << ": " << schedule;
    // Embedding and loss may count as layers.
    EXPECT_TRUE(is_even || (layers + 1) % parts == 0 || (layers + 2) % parts == 0) << line;
    EXPECT_EQ(text_at(answer, "strategy.offload"), "none") << line;
    EXPECT_TRUE(n("pp") == 1 || n("fsdp") == 1) << line;
    if (n("interleave") > 1) EXPECT_EQ(n("microbatches") % n("pp"), 0) << line;
  } else {
    EXPECT_TRUE(software.starts_with("maxtext")) << line << ": " << software;
    EXPECT_TRUE(is_even) << line;
    EXPECT_EQ(model.vocabulary % n("tp"), 0) << line;
  }
}

TEST(TrainPlans, DefaultPlansOfOrdinaryRequestsCanBeRun) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  std::mt19937 random(20261117);
  const auto any = [&](const auto& list) { return list[random() % list.size()]; };
  std::vector<std::pair<model::Transformer, std::string>> requests;
  for (int i = 0; i < 60; ++i) {
    const auto loaded = model::load_model(any(models), catalogue, "test");
    ASSERT_TRUE(loaded);
    const std::string cluster = any(clusters);
    const std::int64_t sequences = 64 << random() % 4, length = 1024 << random() % 3;
    requests.emplace_back(loaded->model, "train " + loaded->model.id + " --on " + cluster + " --batch " +
                                             std::to_string(sequences) + "seq --seq " +
                                             std::to_string(std::min(length, loaded->model.max_context)));
  }
  int plans = 0;
  for (const auto& [model, line] : testing::sampled(requests)) {
    const auto request = parse_request(*split_words(line));
    ASSERT_TRUE(request) << line;
    const auto answer = ask(*request, {catalogue});
    ASSERT_TRUE(answer) << line << ": " << answer.error().what;
    const std::string verdict = text_at(*answer, "memory.verdict");
    if (answer->outcome == report::Outcome::infeasible) {
      EXPECT_EQ(verdict, "no") << line;
      continue;
    }
    ++plans;
    if (verdict != "fits") {
      EXPECT_EQ(verdict, "tight") << line;
      EXPECT_NE(answer->headline.find("tight"), std::string::npos) << line;
    }
    if (verdict == "fits")  // to the byte
      EXPECT_LE(count_at(*answer, "memory.total"), count_at(*answer, "memory.budget") + 1) << line;
    expect_runs(*answer, model, line);
  }
  EXPECT_GT(plans, 0);
}

}  // namespace
}  // namespace assay::verbs::train
