#include "assay/ask/verbs/verbs.h"
#include "assay/testing/catalogue.h"
#include "assay/testing/sampling.h"
#include "assay/testing/test_directory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::verbs {
namespace {

using testing::catalogue;

Result<report::Response> answer_to(std::string_view line, bool picture = false) {
  const auto words = split_words(line);
  if (!words) return tl::unexpected<Error>(words.error());
  auto request = parse_request(*words);
  if (!request) return tl::unexpected<Error>(request.error());
  if (picture) request->want_picture();
  return ask(*request, {catalogue()});
}

/// The results of one command line, read by path.
class Answer {
 public:
  explicit Answer(std::string_view line) {
    const auto response = answer_to(line);
    if (!response) throw std::runtime_error(response.error().where + ": " + response.error().what);
    results_ = report::Value(response->results);
    headline_ = response->headline;
  }
  double number(std::string_view path) const {
    const auto value = report::find_path(results_, path);
    const auto found = value ? report::numeric(*value) : std::nullopt;
    EXPECT_TRUE(found) << path;
    return found.value_or(NAN);
  }
  std::string text(std::string_view path) const {
    const auto value = report::find_path(results_, path);
    EXPECT_TRUE(value) << path;
    return value ? report::scalar_text(*value) : "";
  }
  bool has(std::string_view path) const { return report::find_path(results_, path).has_value(); }
  const std::string& headline() const { return headline_; }

 private:
  report::Value results_;
  std::string headline_;
};

Error refused(std::string_view line) {
  const auto response = answer_to(line);
  EXPECT_FALSE(response) << line;
  return response ? Error{} : response.error();
}

TEST(Verbs, ChipsListsTheCatalogue) {
  const auto response = answer_to("chips");
  ASSERT_TRUE(response);
  const auto rows = report::find_path(report::Value(response->results), "chips");
  EXPECT_EQ(rows->items()->size(), catalogue().chip_ids().size());
}

// 197 TFLOP/s over 820 GB/s is 240.2 FLOP/B.
TEST(Verbs, ChipsShowsOneChipWithWhatFollows) {
  const Answer chip("chips tpu-v5e");
  EXPECT_EQ(chip.number("peak.bf16"), 197e12);
  EXPECT_EQ(chip.number("memory.hbm.capacity"), 16e9);
  EXPECT_NEAR(chip.number("derived.critical_intensity.hbm.bf16"), 240.24, 0.01);
  EXPECT_EQ(chip.number("memory.hbm.bandwidth.also[gcloud]"), 819e9);
  EXPECT_EQ(Answer("chips tpu-v5e --set memory.hbm.bandwidth=1TB/s").number("memory.hbm.bandwidth"), 1e12);
}

// 16 * 20 * 28 = 8960 chips, four to a host; all three axes are multiples of 4 and close.
TEST(Verbs, ClustersAddsUpAPod) {
  const Answer pod("clusters tpu-v5p:16x20x28");
  EXPECT_EQ(pod.number("chips"), 8960);
  EXPECT_EQ(pod.number("hosts"), 2240);
  EXPECT_EQ(pod.number("axes[2].size"), 28);
  EXPECT_EQ(pod.text("axes[0].ring"), "yes");
  EXPECT_EQ(pod.number("flops_per_second"), 8960 * 459e12);
  const Answer nodes("clusters h100-sxm:16");
  EXPECT_EQ(nodes.number("levels[0].chips"), 8);
  EXPECT_EQ(nodes.number("hosts"), 2);
}

// See cost/roofline_test.cpp for the arithmetic.
TEST(Verbs, RooflineAnswersUnderThePromisedKeys) {
  const Answer matmul("roofline 'bf16[240,8192] @ bf16[8192,8192]' --on tpu-v5e");
  EXPECT_EQ(matmul.number("flops"), 2.0 * 240 * 8192 * 8192);
  EXPECT_NEAR(matmul.number("intensity"), 226.71, 0.01);
  EXPECT_NEAR(matmul.number("critical_intensity"), 240.24, 0.01);
  EXPECT_EQ(matmul.text("limiter"), "memory");
  EXPECT_EQ(matmul.number("time.lower"), matmul.number("memory_time"));
  EXPECT_EQ(matmul.number("time.upper"), matmul.number("memory_time") + matmul.number("compute_time"));
  EXPECT_GE(matmul.number("time.estimate"), matmul.number("time.lower"));
}

TEST(Verbs, RooflineSolvesForTheFreeSize) {
  const Answer layer("roofline 'int8[B,4096] @ int8[4096,16384]' --on tpu-v5e");
  EXPECT_EQ(layer.text("critical_size.name"), "B");
  EXPECT_NEAR(layer.number("critical_size.value"), 259.25, 0.005);
  EXPECT_EQ(layer.number("critical_size.whole"), 260);
  EXPECT_NEAR(layer.number("compute_time") / layer.number("memory_time"), 1, 1e-9);
  EXPECT_NEAR(Answer("roofline 'bf16[4096,D] @ bf16[D,8192]' --split 2 --on tpu-v5e").number("critical_size.value"),
              8755.56, 0.01);
  EXPECT_EQ(Answer("roofline 'dot(N)' --on tpu-v5e").text("critical_size.verdict"), "memory-bound at every size");
}

TEST(Verbs, RooflineSweepsAndCompares) {
  const Answer sweep("roofline 'bf16[B,8192] @ bf16[8192,8192]' --vary B=64..512:64 --on tpu-v5e");
  EXPECT_EQ(sweep.number("sweep[0].B"), 64);
  EXPECT_EQ(sweep.number("sweep[7].B"), 512);
  EXPECT_FALSE(sweep.has("sweep[8]"));
  EXPECT_EQ(sweep.text("sweep[0].limiter"), "memory");
  EXPECT_EQ(sweep.text("sweep[7].limiter"), "compute");
  const Answer both("roofline 'bf16[8,512] @ bf16[512,512]' 'bf16[4096,4096] @ bf16[4096,4096]' --on tpu-v5e");
  EXPECT_EQ(both.text("operations[0].limiter"), "memory");
  EXPECT_EQ(both.text("operations[1].limiter"), "compute");
}

TEST(Verbs, RooflineTakesRawWork) {
  const Answer raw("roofline --flops 2T --bytes 1GB --on tpu-v5e");
  EXPECT_EQ(raw.number("flops"), 2e12);
  EXPECT_EQ(raw.number("intensity"), 2000);
  EXPECT_EQ(raw.text("limiter"), "compute");
  EXPECT_EQ(Answer("roofline --bytes 'bf16[8,128,8192]' --on tpu-v5e").number("bytes"), 16.0 * 1024 * 1024);
}

// Tiles of 512: (4096 / 512)^2 blocks, each streams 2 * 4096 * 512 elements and stores 512 * 512, two bytes each.
TEST(Verbs, RooflineCountsTheTrafficOfTiles) {
  const Answer tiled("roofline 'bf16[4096,4096] @ bf16[4096,4096]' --tile 512 --on tpu-v5e");
  EXPECT_EQ(tiled.number("tile.intensity_without_store"), 256);
  EXPECT_EQ(tiled.number("bytes"), 64.0 * (2 * 4096 * 512 + 512 * 512) * 2);
  EXPECT_EQ(tiled.text("tile.compute_bound"), "yes");
}

TEST(Verbs, SystolicRunsTheProductAndAgreesWithTheClosedForm) {
  // Two tiles of four rows on 2 x 2: 2 load + 8 fed + 2 drained = 12 cycles, 4 * 4 * 2 = 32 useful of 48.
  const Answer run("systolic 4 4 2 --array 2x2");
  EXPECT_EQ(run.number("tiles"), 2);
  EXPECT_EQ(run.number("cycles.total"), 12);
  EXPECT_NEAR(run.number("utilisation"), 32.0 / 48.0, 1e-12);
  EXPECT_EQ(run.text("simulated.equals_closed_form"), "yes");
  EXPECT_EQ(run.number("simulated.max_error"), 0);
  EXPECT_EQ(Answer("systolic 8 128 128 --on tpu-v5e").number("steady_cycles_per_tile"), 8);
  EXPECT_FALSE(Answer("systolic 100k 100k 100k").has("simulated"));
}

// See cost/transfer_test.cpp for the arithmetic.
TEST(Verbs, TransferTimesBothEndsOfARoute) {
  const Answer corner("transfer --bytes 16MiB --from 'chip(0,0)' --to 'chip(3,3)' --on tpu-v5e:4x4");
  EXPECT_NEAR(corner.number("bandwidth_time"), 186.41e-6, 1e-8);
  EXPECT_NEAR(corner.number("first_byte"), 6e-6, 1e-12);
  EXPECT_EQ(corner.number("hops"), 6);
  EXPECT_GE(corner.number("time.estimate"), corner.number("time.lower"));
  EXPECT_EQ(corner.number("ports.disjoint_paths"), 2);
  const Answer host("transfer --bytes 16GB --from host --to 'chip(0,0)' --on tpu-v5e:4x4");
  EXPECT_NEAR(host.number("stages[0].time"), 62.5e-3, 1e-9);
  EXPECT_NEAR(host.number("stages[1].time"), 166.667e-3, 1e-6);
  EXPECT_EQ(host.text("limiter"), "ici");
}

TEST(Verbs, TransferAddsTheWorkThatWaits) {
  const Answer then(
      "transfer --bytes 16GB --from host --to 'chip(0,0)' --on tpu-v5e:4x4 --then 'bf16[8,131072] @ "
      "int8[131072,131072]'");
  EXPECT_EQ(then.number("flops"), 2.0 * 8 * 131072 * 131072);
  EXPECT_EQ(then.text("stages[3].name"), "compute");
  // A dot product keeps both halves of a fused multiply-add busy.
  const Answer dot("transfer --bytes 1GB --from host --to hbm --on h100-sxm --then 'dot(fp32[1Mi])'");
  const Answer sum("transfer --bytes 1GB --from host --to hbm --on h100-sxm --then 'add(fp32[1Mi])'");
  EXPECT_NEAR(dot.number("stages[2].time") / sum.number("stages[2].time"), 1.0, 1e-5);
}

// The whole book is a test of its own, see tests/CMakeLists.txt.
TEST(Verbs, BookReproducesAChapter) {
  const Answer book("book tpus");
  EXPECT_EQ(book.number("failed"), 0);
  EXPECT_GT(book.number("passed"), 20);
}

TEST(Verbs, EveryExampleOfTheHelpIsAnswered) {
  const testing::TestDirectory directory;
  std::vector<std::string> commands;
  for (const VerbSpec& verb : verbs())
    for (const auto& [command, shows] : verb.examples)
      commands.push_back(std::string(command) +
                         (find_option(verb, "results") ? " --results " + directory.file("rows") : ""));
  for (const std::string& command : testing::sampled(commands)) {
    const bool picture = command.find(".svg") != std::string_view::npos;
    ASSERT_TRUE(command.starts_with("assay ")) << command;
    const auto response = answer_to(std::string_view(command).substr(6), picture);
    EXPECT_TRUE(response) << command << ": " << (response ? "" : response.error().what);
    if (response) EXPECT_EQ(response->picture.has_value(), picture) << command;
  }
}

TEST(Verbs, EveryChipAnswersEveryQuestionAboutOneChip) {
  for (const std::string& id : catalogue().chip_ids())
    for (const std::string& line :
         {"chips " + id, "clusters " + id, "roofline 'bf16[B,512] @ bf16[512,512]' --compute vector --on " + id,
          "roofline --flops 1T --bytes 1GB --on " + id, "transfer --bytes 1GB --from host --to hbm --on " + id}) {
      const auto response = answer_to(line);
      EXPECT_TRUE(response) << line << ": " << (response ? "" : response.error().what);
    }
}

TEST(Verbs, TheDerivationEndsInTheNumberThatIsShown) {
  const auto response = answer_to("roofline 'bf16[B,8192] @ int8[8192,8192]' --on h100-sxm --explain");
  ASSERT_TRUE(response);
  ASSERT_FALSE(response->derived.empty());
  const report::Value results(response->results);
  EXPECT_EQ(response->ledger.at(response->derived[0]).quantity.value,
            *report::numeric(*report::find_path(results, "time.lower")));
  EXPECT_NEAR(response->ledger.at(response->derived.back()).quantity.value,
              *report::numeric(*report::find_path(results, "critical_size.value")), 1e-6);
}

TEST(Verbs, AVerbWithoutAPictureSaysSo) {
  EXPECT_EQ(answer_to("book", true).error().kind, Error::Kind::usage);
  EXPECT_EQ(answer_to("chips", true).error().what, "a picture shows one chip");
  EXPECT_TRUE(answer_to("chips tpu-v5e", true)->picture);
}

TEST(Verbs, ContradictionsAreRefused) {
  const char* const matmul = "roofline 'bf16[B,8] @ bf16[8,8]' --on tpu-v5e ";
  for (const std::string rest :
       {"--flops 1", "--split 2 --tile 8", "--split 2 --pad", "--accumulate fp32", "--sizes C=1", "--vary C=1..2",
        "--vary B=2..1", "--vary B", "--tile 1,2", "--split 1"})
    EXPECT_EQ(refused(matmul + rest).kind, Error::Kind::usage) << rest;
  for (const char* line :
       {"roofline --flops 1 --bytes 1B --vary B=1..2 --on tpu-v5e", "roofline --on tpu-v5e",
        "roofline 'dot(N)' --tile 8 --on tpu-v5e", "roofline 'dot(N)' 'bf16[8,8] @ bf16[8,8]' --on tpu-v5e",
        "systolic 1 1 1 --on tpu-v5e --array 2x2", "chips --set a=b", "transfer --on tpu-v5e"})
    EXPECT_EQ(refused(line).kind, Error::Kind::usage) << line;
  for (const char* line : {"roofline --flops 0 --bytes 0B --on tpu-v5e", "roofline --flops -1 --on tpu-v5e",
                           "roofline --bytes 4 --on tpu-v5e", "systolic 0 1 1", "systolic 1e15 1e15 1e15",
                           "transfer --bytes 0B --from host --to hbm --on tpu-v5e", "chips tpu-v99", "book nope",
                           "roofline 'bf16[4,4] @ bf16[4,4]' --split 2 --on l4"})
    EXPECT_NE(refused(line).kind, Error::Kind::usage) << line;
}

}  // namespace
}  // namespace assay::verbs
