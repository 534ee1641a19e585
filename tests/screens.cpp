// The default answer to everyday requests, drawn at random from the catalogue with a fixed seed, is one screen: at most
// 25 lines of 100 columns, without exponents, and never an error.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "assay/ask/report/layout.h"
#include "assay/ask/verbs/request.h"
#include "assay/base/text.h"
#include "assay/model/model_catalogue.h"
#include "assay/testing/sampling.h"

namespace assay {
namespace {

constexpr unsigned seed = 22;
constexpr std::size_t most_lines = 25, most_columns = 100;

class Draw {
 public:
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }

 private:
  std::mt19937 random_{seed};
};

/// Models that people ask for, by the names that the catalogue has.
const std::vector<std::string> models{"llama-3-8b",  "llama-3-70b",   "llama-3.1-405b", "mistral-7b",  "mixtral-8x7b",
                                      "qwen2.5-72b", "qwen3-30b-a3b", "gemma-2-27b",    "deepseek-v3", "gpt-oss-120b",
                                      "gpt-3-175b",  "llama-2-13b",   "pythia-12b",     "bloom-176b"};
const std::vector<std::string> clusters{"h100-sxm:8",     "h100-sxm:64",   "h100-sxm:512", "a100-sxm-80:16",
                                        "h200-sxm:8",     "b200:64",       "mi300x:8",     "tpu-v5p:4x4x4",
                                        "tpu-v5e:16x16",  "tpu-v6e:8x8",   "trainium2:16", "h100-sxm:1",
                                        "gb200-nvl72:72", "a100-sxm-40:8", "tpu-v4:4x4x8"};

std::string train_request(Draw& draw) {
  return fmt::format("train {} --on {} --batch {}seq --seq {}{}", draw.one_of(models), draw.one_of(clusters),
                     draw.one_of<int>({256, 512, 1024}), draw.one_of<int>({1024, 2048, 4096}),
                     draw.one_of<std::string>({"", " --tokens 1T", " --tokens 15T"}));
}

std::string serve_request(Draw& draw) {
  return fmt::format("serve {} --on {} --prompt {} --output {}{}", draw.one_of(models), draw.one_of(clusters),
                     draw.one_of<int>({128, 512, 700}), draw.one_of<int>({64, 256}),
                     draw.one_of<std::string>({"", " --batch 32", " --tpot 50ms", " --ttft 2s"}));
}

std::string other_request(Draw& draw, const hardware::Catalogue& catalogue) {
  const std::string cluster = draw.one_of(clusters);
  switch (draw.one_of<int>({0, 1, 2, 3, 4, 5, 6})) {
    case 0:
      return fmt::format("roofline bf16[{},8192]@bf16[8192,32768] --on {}", draw.one_of<int>({1, 240, 4096}),
                         cluster.substr(0, cluster.find(':')));
    case 1:
      return fmt::format("collective {} --bytes {} --on {}", draw.one_of<std::string>({"all-reduce", "all-gather"}),
                         draw.one_of<std::string>({"1GB", "64MiB", "4kB"}), cluster);
    case 2:
      return fmt::format("models {} --seq 512", draw.one_of(model::model_ids(catalogue)));
    case 3:
      return fmt::format("chips {}", cluster.substr(0, cluster.find(':')));
    case 4:
      return fmt::format("clusters {}", cluster);
    case 5:
      return fmt::format("scaling {} --on {} --batch 4Mi", draw.one_of(models), cluster);
    default:
      return fmt::format("systolic {} 512 512 --array 128x128", draw.one_of<int>({8, 128, 512}));
  }
}

void expect_one_screen(const std::string& line, const hardware::Catalogue& catalogue) {
  SCOPED_TRACE(line);
  const auto words = verbs::split_words(line);
  ASSERT_TRUE(words);
  const auto request = verbs::parse_request(*words);
  ASSERT_TRUE(request) << request.error().what;
  const auto response = verbs::ask(*request, {catalogue});
  ASSERT_TRUE(response) << response.error().where << ": " << response.error().what;
  EXPECT_NE(response->outcome, report::Outcome::check_failed);
  const std::string text = report::render(*response, {});
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size(); ++lines) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(report::columns(text.substr(at, end - at)), most_columns) << text.substr(at, end - at);
    at = end + 1;
  }
  EXPECT_LE(lines, most_lines) << text;
  EXPECT_EQ(text.find("e+"), std::string::npos) << text;
}

TEST(Screens, OfEverydayRequestsFit) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  Draw draw;
  for (int i = 0; i < testing::sampled_count(16); ++i) expect_one_screen(train_request(draw), catalogue);
  for (int i = 0; i < testing::sampled_count(12); ++i) expect_one_screen(serve_request(draw), catalogue);
  for (int i = 0; i < testing::sampled_count(20); ++i) expect_one_screen(other_request(draw, catalogue), catalogue);
}

}  // namespace
}  // namespace assay
