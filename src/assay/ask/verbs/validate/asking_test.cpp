#include "assay/ask/verbs/validate/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/hardware/calibration.h"
#include "assay/lab/fit/inference_predictor.h"
#include "assay/lab/fit/training_predictor.h"
#include "assay/lab/validate/rows/tables.h"
#include "assay/predict/numbers/interval.h"
#include "assay/testing/sampling.h"
#include "assay/testing/test_directory.h"

namespace assay::verbs::validate_verb {
namespace {

using validate::ValidationCase;
using validate::ValidationInput;
using validate::ValidationSet;

struct Asked {
  hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  Context context{catalogue};

  Result<validate::ValidationResult> run(std::string_view set, std::optional<std::string> data = std::nullopt,
                                         bool with_fitted = false) const {
    return (*validate::validation_set(set, "test"))
        ->run(ValidationInput(catalogue, std::move(data), with_fitted, asking(context)));
  }
  /// Pastes the command line of every n-th case, and compares what comes back with the table.
  void paste(const std::vector<ValidationCase>& cases, std::size_t every) const {
    for (std::size_t i = 0; i < cases.size(); i += every) {
      const std::string line = command_line(cases[i].request);
      auto words = split_words(line);
      ASSERT_TRUE(words) << line;
      ASSERT_EQ(words->front(), "assay");
      words->erase(words->begin());
      EXPECT_EQ(*words, cases[i].request);
      const auto request = parse_request(*words);
      ASSERT_TRUE(request) << line << ": " << request.error().what;
      const auto response = ask(*request, context);
      ASSERT_TRUE(response) << line << ": " << response.error().what;
      const auto estimate = report::find_path(report::Value(response->results), cases[i].result);
      ASSERT_TRUE(estimate) << line;
      const report::Value* middle = estimate->find("estimate");
      EXPECT_EQ(report::numeric(middle ? *middle : *estimate), cases[i].predicted.value) << line;
    }
  }
};

constexpr const char* kernel_sets[] = {"h200-measure",  "h200-experts", "h200-ops",  "h200-random",
                                       "h200-products", "h200-odd",     "h200-heads"};
constexpr const char* own_step_sets[] = {"h200-prefill", "h200-decode", "h200-train", "h200-train-memory",
                                         "h200-static-cache"};
struct PublishedSample {
  const char* set;
  std::size_t rows, every;
};
constexpr PublishedSample published_sets[] = {{"training", 100, 7},
                                              {"training-memory", 10, 3},
                                              {"inference-tpot", 30, 5},
                                              {"inference-ttft", 5, 1},
                                              {"inference-throughput", 80, 11}};

/// The tests below paste requests of every set.
TEST(Requests, OfEverySetAreTried) {
  // Data of servers under load is not part of the project.
  std::vector<std::string_view> tried{"public",       "kernels",   "collectives",
                                      "serving-load", "ml-energy", "ml-energy-power"};
  tried.insert(tried.end(), std::begin(kernel_sets), std::end(kernel_sets));
  tried.insert(tried.end(), std::begin(own_step_sets), std::end(own_step_sets));
  for (const PublishedSample& sample : published_sets) tried.emplace_back(sample.set);
  for (const ValidationSet& set : validate::validation_sets())
    EXPECT_NE(std::find(tried.begin(), tried.end(), set.name), tried.end()) << set.name;
}

TEST(Requests, AnswerWithTheVeryNumberOfTheTable) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  const Asked asked;
  for (const char* set : kernel_sets) {
    const auto result = asked.run(set);
    ASSERT_TRUE(result) << set;
    EXPECT_GT(result->cases.size(), 100u) << set;
    asked.paste(result->cases, 7);
  }
}

TEST(Requests, OfWholeStepsAnswerWithTheVeryNumberToo) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  const Asked asked;
  for (const char* set : own_step_sets) {
    const auto result = asked.run(set);
    ASSERT_TRUE(result) << set;
    EXPECT_GT(result->cases.size(), 10u) << set;
    EXPECT_TRUE(result->unanswered.empty()) << set;
    asked.paste(result->cases, 5);
  }
}

/// Keeps every n-th row of a table of the catalogue.
void thin(hardware::Catalogue& catalogue, const std::string& path, std::size_t every) {
  std::string kept;
  std::size_t rows = 0;
  bool in_rows = false;
  for (const auto& [name, text] : catalogue.files(path))
    for (const std::string& line : split(text, '\n')) {
      if (!in_rows || rows++ % every == 0) kept += line + "\n";
      in_rows = in_rows || line.starts_with("id,");
    }
  catalogue.put(path, kept);
}

TEST(Requests, OfPublishedRowsAnswerWithTheVeryNumberToo) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  Asked asked, whole;
  thin(asked.catalogue, "validation/published_training.csv", 7);
  thin(asked.catalogue, "validation/published_inference.csv", 11);
  for (const auto& [set, rows, every] : published_sets) {
    const auto result = asked.run(set);
    ASSERT_TRUE(result) << set;
    EXPECT_GE(result->cases.size(), rows) << set;
    asked.paste(result->cases, every);
    if (set != std::string_view("training")) continue;
    const auto all = summarise("all", result->cases);
    EXPECT_LT(all.median, 0.15);
    EXPECT_GT(all.rank, 0.95);
  }
  const auto known = whole.run("public");
  ASSERT_TRUE(known);
  EXPECT_GE(known->cases.size(), 8u);
  whole.paste(known->cases, 1);
}

/// steps/unseen/inference-tpot-stages.toml says what the rows with stages say.
TEST(Requests, OfRowsWithStagesAreAsFarOffAsTheCatalogueSays) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  const Asked asked;
  const auto result = asked.run("inference-tpot");
  ASSERT_TRUE(result);
  std::vector<numbers::Residual> residuals;
  for (const ValidationCase& one : result->cases) {
    std::string stages = "1", chip;
    for (std::size_t i = 0; i + 1 < one.request.size(); ++i) {
      if (one.request[i] == "--pp") stages = one.request[i + 1];
      if (one.request[i] == "--on") chip = one.request[i + 1].substr(0, one.request[i + 1].find(':'));
    }
    if (stages == "1") continue;
    residuals.push_back({one.group,
                         std::log(one.predicted.value / one.measured.value),
                         {"all"},
                         {},
                         {},
                         std::string(one.source()) + " on " + chip});
  }
  const auto stages = *numbers::unseen_intervals(asked.catalogue, "inference-tpot", "stages");
  ASSERT_EQ(std::ssize(residuals), stages.classes.at(0).rows);
  EXPECT_NEAR(numbers::residual_spread(residuals, hardware::spread_coverage), stages.classes.at(0).spread, 0.0005);
  const auto prompts = *numbers::unseen_intervals(asked.catalogue, "inference-ttft", "stages");
  EXPECT_EQ(prompts.classes.at(0).spread, stages.classes.at(0).spread);
}

/// Fits price rows by themselves, many times: they must see what the requests answer.
TEST(Requests, AnswerWhatFitsSee) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  const Asked asked;
  const auto table = *validate::catalogue_table(asked.catalogue, "validation/published_training.csv");
  const auto steps = *validate::read_training(table, asked.catalogue);
  auto step = *validate::TrainingPredictor::make(asked.catalogue);
  const validate::Ask ask = asking(asked.context);
  const auto answer = [&](const validate::Question& question) {
    std::vector<std::string> words = question.words;
    words.insert(words.end(), question.own_way.begin(), question.own_way.end());
    return ask(words, question);
  };
  for (std::size_t i = 0; i < steps.rows.size(); i += 29) {
    const auto cost = step(steps.rows[i]);
    const auto said = answer(question_of(steps.rows[i], validate::StepFigure::time));
    ASSERT_EQ(cost.has_value(), said.has_value()) << steps.rows[i].id;
    if (cost) EXPECT_NEAR(cost->estimate.value() / said->value.value, 1.0, 1e-5) << steps.rows[i].id;
  }
  const auto figures_table = *validate::catalogue_table(asked.catalogue, "validation/published_inference.csv");
  const auto figures = *validate::read_inference(figures_table, asked.catalogue);
  auto figure = *validate::InferencePredictor::make(asked.catalogue);
  std::size_t alike = 0, all = 0;
  for (std::size_t i = 0; i < figures.rows.size(); i += 29) {
    const validate::InferenceRow& row = figures.rows[i];
    if (row.figure == validate::InferenceFigure::throughput || !figure.fits(row)) continue;
    const auto seconds = figure(row);
    const auto said = answer(question_of(row));
    if (!seconds || !said) continue;
    ++all;
    alike += std::abs(seconds->value() / said->value.value - 1.0) < 1e-9 ? 1 : 0;
    EXPECT_NEAR(seconds->value() / said->value.value, 1.0, 0.05) << row.id << ": searches may place axes better";
  }
  EXPECT_GT(all, 10u);
  EXPECT_GE(4 * alike, 3 * all);
}

TEST(Requests, OfThirdPartyTablesAnswerWithTheVeryNumberToo) {
  const testing::TestDirectory data;
  data.write(
      "third_party/kernels.csv",
      "id,source_key,op,chip,dtype,kv_dtype,direction,m,n,k,batch,n_heads,n_kv_heads,head_dim,v_head_dim,q_len,"
      "kv_len,causal,window,moe_experts,time_us,tflops,framework,notes,split,kernel\n"
      "k-a-1,vidur,gemm,A100-PCIe-80GB,fp16,,fwd,64,512,256,,,,,,,,,,,10,,,,calib,\n"
      "k-a-2,aiconfigurator,gemm,B200-SXM-180GB,nvfp4,,fwd,64,512,256,,,,,,,,,,,10,,,,test,\n"
      "k-a-3,aiconfigurator,gemm,H100-SXM-80GB,fp8,,fwd,64,512,256,,,,,,,,,,,10,,,,calib,\n"
      "k-a-4,simumax,gemm,B200-SXM-180GB,bf16,,wgrad,640,5120,1536,,,,,,,,,,,60,,,accumulate=True,calib,\n"
      "k-a-5,simumax,grouped_gemm,B200-SXM-180GB,bf16,,wgrad,616,5120,1536,,,,,,,,,,40,600,,,,calib,\n"
      "k-a-6,simumax,attention,B200-SXM-180GB,bf16,,bwd,,,,1,64,8,192,128,4096,4096,y,,,,1960,TE/cuDNN,NOT "
      "causal-halved,calib,\n"
      "k-a-7,flash-attention,attention,A100-SXM-80GB,fp16,,fwd+bwd,,,,1,16,16,128,,4096,4096,n,,,500,,"
      "FlashAttention-2,,calib,\n"
      "k-a-8,aiconfigurator,attention_decode,H100-SXM-80GB,bfloat16,fp8,fwd,,,,4,32,8,128,,1,1000,y,128,,20,,,,calib,\n"
      "k-a-9,vidur,silu_mul,H100-SXM-80GB,fp16,,fwd,4096,8192,,,,,,,,,,,,40,,,,calib,\n");
  data.write("third_party/collectives.csv",
             "id,source_key,op,chip,n_ranks,nodes,gpus_per_node,interconnect,bytes,time_us,algbw_gbps,algorithm,split\n"
             "c-a-1,nccl-tests-docs,all_reduce,H100-SXM-80GB,16,2,8,NVLink4 + 32x100G EFA,1000,100,,,calib\n"
             "c-a-2,aiconfigurator-nccl,alltoall,H100-SXM-80GB,8,1,8,NVLink4,1000,,10,,calib\n"
             "c-a-3,nccl-tests-transcribed,all_reduce,GB200,8,2,4,NVLink5 NVL72 (same domain),1000,100,,Ring,test\n"
             "c-a-4,scaling-book,all_gather,TPUv5e,16,1,,\"ICI 8x16 slice, 16-ring\",1000000,100,,,calib\n");
  const Asked asked;
  const auto kernels = asked.run("kernels", data.path());
  ASSERT_TRUE(kernels);
  for (const auto& row : kernels->unanswered) ADD_FAILURE() << row.id << ": " << row.why;
  EXPECT_EQ(kernels->cases.size(), 9u);
  asked.paste(kernels->cases, 1);
  const auto collectives = asked.run("collectives", data.path());
  ASSERT_TRUE(collectives);
  for (const auto& row : collectives->unanswered) ADD_FAILURE() << row.id << ": " << row.why;
  EXPECT_EQ(collectives->cases.size(), 4u);
  asked.paste(collectives->cases, 1);
  // Whatever was used for fitting is asked with numbers that did not see it, unless fitted rows are wanted.
  const auto folds = [](const auto& cases) {
    std::size_t n = 0;
    for (const ValidationCase& one : cases)
      n += std::find(one.request.begin(), one.request.end(), "--without-fold") != one.request.end();
    return n;
  };
  EXPECT_EQ(folds(kernels->cases), 8u);
  EXPECT_EQ(folds(asked.run("kernels", data.path(), true)->cases), 0u);
}

/// Rows of a table of one's own, with words that no shipped table has.
TEST(Requests, OfRowsInOtherWordsAnswerWithTheVeryNumberToo) {
  const testing::TestDirectory data;
  data.write("published/training.csv",
             "id,source_key,model,seq_len,accelerator,n_chips,chips_per_node,interconnect,precision,global_batch,"
             "micro_batch,tp,pp,ep,etp,fsdp_zero,recompute,step_time_s,peak_mem_gb,framework,year,split\n"
             "n-1,nobody,mixtral-8x7b,4096,NVIDIA H100 80GB HBM3,64,4,1x HDR200,FP8 hybrid,128,1,2,1,8,1,ZeRO-1,Full,1,"
             "60 GiB,NeMo 25.11,2025,test\n");
  data.write(
      "published/inference.csv",
      "id,source_key,model,accelerator,n_chips,tp,weight_precision,engine,engine_version,concurrency,input_len,"
      "output_len,phase,ttft_ms,tpot_ms,output_tokens_per_s_per_chip,split\n"
      "n-2,nobody,meta-llama/Llama-3.1-70B-Instruct,H100,4,TP4,AWQ,TRT-LLM,v1.2,64,1024,256,serving,,,500,test\n"
      "n-3,nobody,meta-llama/Llama-3.1-8B,AMD Instinct MI300X,1,1,bf16,vLLM,v0.11.0,1,1024,256,serving,50,9,,test\n");
  Asked asked;
  for (const char* table : {"validation/published_training.csv", "validation/published_inference.csv"})
    thin(asked.catalogue, table, 100000);
  for (const PublishedSample& sample : published_sets) {
    const char* const set = sample.set;
    auto result = asked.run(set, data.path());
    ASSERT_TRUE(result) << set;
    std::erase_if(result->cases, [](const ValidationCase& one) { return !one.id.starts_with("n-"); });
    for (const auto& row : result->unanswered) EXPECT_FALSE(row.id.starts_with("n-")) << row.why;
    EXPECT_EQ(result->cases.size(), 1u) << set;
    asked.paste(result->cases, 1);
  }
}

TEST(Requests, OfATableThatNoFitHasSeenAreAskedByDefault) {
  const testing::TestDirectory data;
  data.write("third_party/collectives.csv",
             "id,source_key,op,chip,n_ranks,nodes,gpus_per_node,interconnect,bytes,time_us,algbw_gbps,algorithm,split\n"
             "c-a-1,nobody-knows,all_reduce,H100-SXM-80GB,8,1,8,NVLink4,1000000,100,,,calib\n");
  const Asked asked;
  const auto result = asked.run("collectives", data.path());
  ASSERT_TRUE(result);
  ASSERT_EQ(result->cases.size(), 1u);
  EXPECT_EQ(result->cases[0].predicted.value, result->cases[0].predicted_by_default->value);
  asked.paste(result->cases, 1);
}

TEST(Requests, ShellsSplitCommandLinesIntoTheSameWords) {
  EXPECT_EQ(command_line(std::vector<std::string>{"roofline", "dot(bf16[8])", "--on", "h200-sxm:8"}),
            "assay roofline 'dot(bf16[8])' --on h200-sxm:8");
  EXPECT_EQ(command_line(std::vector<std::string>{"it's", ""}), R"(assay 'it'\''s' '')");
}

TEST(Requests, WithoutAFoldUseItsNumbersAlone) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  Asked before, after;
  for (const auto& [path, text] : before.catalogue.files("folds/2/calibration/h200-sxm.toml")) {
    std::string slower(text);
    slower.replace(slower.find("memory_share = 0."), 17, "memory_share = 0.1");
    after.catalogue.put(path, slower);
  }
  const auto then = before.run("h200-products"), now = after.run("h200-products");
  const auto fitted = after.run("h200-products", std::nullopt, true);
  ASSERT_TRUE(then && now && fitted);
  ASSERT_EQ(then->cases.size(), now->cases.size());
  std::size_t moved = 0;
  for (std::size_t i = 0; i < then->cases.size(); ++i) {
    EXPECT_FALSE(then->cases[i].fitted);
    EXPECT_TRUE(fitted->cases[i].fitted);
    moved += then->cases[i].predicted.value != now->cases[i].predicted.value ? 1 : 0;
  }
  EXPECT_GT(moved, then->cases.size() / 20);
  EXPECT_LT(moved, then->cases.size() / 3);
}

TEST(Sets, OurStepsArePredictedAsWellAsPromised) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  const Asked asked;
  for (const std::string_view set : {"h200-train", "h200-train-memory"}) {
    const auto result = asked.run(set);
    ASSERT_TRUE(result) << result.error().what;
    const auto all = summarise("all", result->cases);
    EXPECT_GE(all.n, 5u);
    EXPECT_LT(all.median, set == "h200-train" ? 0.08 : 0.04) << set;
  }
}

TEST(Sets, OurOwnKernelsArePredictedAsWellAsPromised) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  const Asked asked;
  std::vector<ValidationCase> products, attention, library;
  for (const char* set : {"h200-ops", "h200-random", "h200-products"}) {
    const auto result = asked.run(set);
    ASSERT_TRUE(result);
    for (const ValidationCase& c : result->cases) {
      auto& group = set == std::string_view("h200-products") ? library
                    : c.group.starts_with("attention")       ? attention
                                                             : products;
      if (c.group.starts_with("attention") || c.group.starts_with("matmul")) group.push_back(c);
    }
  }
  const auto p = summarise("products", products), a = summarise("attention", attention);
  EXPECT_GE(p.n, 100u);
  EXPECT_LT(p.median, 0.04);
  EXPECT_LT(p.p90, 0.12);
  EXPECT_LT(a.median, 0.07);
  // The intervals hold what they promise, on rows that did not make them.
  EXPECT_GE(p.covered.value_or(0.0), 0.8);
  // What users get without naming a way of measuring is about as good as the way of the table.
  const auto l = summarise("library", library);
  ASSERT_TRUE(l.default_mape);
  EXPECT_LT(*l.default_mape, 1.1 * l.mape);
}

}  // namespace
}  // namespace assay::verbs::validate_verb
