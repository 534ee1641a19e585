#include "assay/lab/benchmark/benchmark_file.h"

#include <gtest/gtest.h>

#include "assay/hardware/catalogue.h"

namespace assay::benchmark {
namespace {

const std::vector<Writer>& writers() {
  static const std::vector<Writer> all = *writers_of(hardware::Catalogue::builtin());
  return all;
}

std::string file(const std::string& name) { return *hardware::read_file("tests/cli/calibrate/" + name, "FILE"); }

BenchmarkFile read(const std::string& name) {
  auto out = read_benchmark(file(name), name, writers());
  EXPECT_TRUE(out) << name << ": " << (out ? "" : out.error().where + ": " + out.error().what);
  return out ? *out : BenchmarkFile{};
}

std::string refused(std::string_view text) {
  const auto out = read_benchmark(text, "f", writers());
  return out ? "read" : out.error().where + ": " + out.error().what;
}

TEST(BenchmarkFile, OneRunInTheFormatsOfAllWritersIsTheSame) {
  // Stage 2 of one public run: 74.94 requests per second, first tokens after 38.577 ms, times per token of 11.7549 ms.
  const struct {
    const char *name, *writer;
    std::size_t row;
    bool says_rate, says_token;
  } cases[] = {{"vllm.json", "vllm", 0, true, true},
               {"vllm.jsonl", "vllm", 2, true, true},
               {"sglang.jsonl", "sglang", 2, true, true},
               {"guidellm.json", "guidellm", 2, true, true},
               {"profile_export_aiperf.json", "aiperf", 0, true, true},
               {"profile_export_aiperf.csv", "aiperf-csv", 0, false, true},
               {"stage_2_lifecycle_metrics.json", "inference-perf", 0, true, false}};
  for (const auto& one : cases) {
    const BenchmarkFile got = read(one.name);
    ASSERT_GT(got.rows.size(), one.row) << one.name;
    const BenchmarkRow& row = got.rows[one.row];
    EXPECT_EQ(got.writer.id, one.writer);
    EXPECT_NEAR(row.number("first_token").value_or(0), 0.038577, 1e-5) << one.name;
    EXPECT_NEAR(row.number("prompt").value_or(0), 200.93, 0.01) << one.name;
    EXPECT_NEAR(row.number("output").value_or(0), 62.752, 0.01) << one.name;
    EXPECT_NEAR(row.number("throughput").value_or(0), 4661.36, 0.01) << one.name;
    EXPECT_NEAR(row.number("rate").value_or(0), one.says_rate ? 74.94 : 0.0, 1e-9) << one.name;
    EXPECT_NEAR(row.number("per_token").value_or(0), one.says_token ? 0.0117549 : 0.0, 1e-5) << one.name;
  }
}

TEST(BenchmarkFile, LogsAreTheMedianOfWarmSteps) {
  const BenchmarkFile maxtext = read("maxtext.log"), metrics = read("maxtext.jsonl"), titan = read("torchtitan.log");
  ASSERT_EQ(maxtext.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(maxtext.rows[0].number("step").value_or(0), 6.999);  // of 7.003 6.998 6.999 7.001 6.997
  EXPECT_DOUBLE_EQ(metrics.rows.at(0).number("step").value_or(0), 6.999);
  EXPECT_DOUBLE_EQ(maxtext.rows[0].number("sequences").value_or(0), 128);
  EXPECT_EQ(maxtext.rows[0].text("model"), "llama2-70b");
  EXPECT_DOUBLE_EQ(titan.rows.at(0).number("chip_throughput").value_or(0), 5762);  // without the first step
  EXPECT_DOUBLE_EQ(titan.rows[0].number("sequences").value_or(0), 16);
  EXPECT_DOUBLE_EQ(titan.rows[0].number("sequence").value_or(0), 8192);
  EXPECT_EQ(titan.rows[0].text("chip"), "NVIDIA H100");
}

TEST(BenchmarkFile, WrongFilesNameTheirPlaceAndRule) {
  EXPECT_EQ(refused(""), "f: the file is empty");
  EXPECT_TRUE(refused(R"({"traceEvents": []})").starts_with("f: it is a file of no benchmark that is known"));
  EXPECT_TRUE(refused("step loss\n1 2\n").starts_with("f: it is a file of no benchmark that is known"));
  const std::string good = file("vllm.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return refused(text.replace(at, from.size(), to));
  };
  EXPECT_EQ(with("\"mean_ttft_ms\": 38.577", "\"mean_ttft_ms\": NaN"),
            "f: mean_ttft_ms: a measured figure is above 0 and finite, got \"nan\"");
  EXPECT_EQ(with("\"mean_ttft_ms\": 38.577", "\"mean_ttft_ms\": \"slow\""),
            "f: mean_ttft_ms: it is a number, got \"slow\"");
  EXPECT_EQ(with("\"completed\": 4496", "\"completed\": 0"), "f: no request of this run was answered");
  EXPECT_TRUE(with("\"failed\": 0", "\"failed\": 500").starts_with("f: 500 of 4996 requests failed"));
  EXPECT_EQ(with("mean_ttft_ms", "other"), "f: it looks like a file of vllm bench serve, but lacks mean_ttft_ms");
  // Latencies in seconds beside first tokens in milliseconds.
  EXPECT_EQ(with("\"mean_ttft_ms\"", "\"mean_e2el_ms\": 0.76, \"mean_ttft_ms\""),
            "f: a request takes 760 µs and its first token 38.58 ms");
  EXPECT_TRUE(refused("completed step: 0, seconds: 3.2, TFLOP/s/device: 20.1\n").starts_with("f: it has 1 steps"));
  std::string csv = file("profile_export_aiperf.csv");
  csv.replace(csv.find("Request Latency (ms)"), 20, "Other Latency (ms)");
  EXPECT_NE(refused(csv), "read");
}

TEST(BenchmarkFile, UnitsStandInTheFile) {
  std::string text = file("profile_export_aiperf.json");
  const std::string ms = "\"unit\": \"ms\",\n  \"avg\": 38.577";
  ASSERT_NE(text.find(ms), std::string::npos);
  text.replace(text.find(ms), ms.size(), "\"unit\": \"sec\",\n  \"avg\": 0.038577");
  const auto seconds = read_benchmark(text, "f", writers());
  ASSERT_TRUE(seconds);
  EXPECT_NEAR(seconds->rows[0].number("first_token").value_or(0), 0.038577, 1e-9);
  text.replace(text.find("\"sec\""), 5, "\"fortnights\"");
  EXPECT_EQ(refused(text), "f: time_to_first_token.avg: \"fortnights\" is no unit of time");
}

}  // namespace
}  // namespace assay::benchmark
