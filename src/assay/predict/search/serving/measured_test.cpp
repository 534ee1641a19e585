#include "assay/predict/search/serving/measured.h"

#include <gtest/gtest.h>

#include "assay/model/model_catalogue.h"

namespace assay::search {
namespace {

TEST(SearchMeasured, MeasuredTimesReplaceEstimatesAndScaleTheOthers) {
  const hardware::Catalogue builtin = hardware::Catalogue::builtin();
  const model::Transformer model = model::load_model("llama-3-8b", builtin, "test")->model;
  const hardware::Cluster cluster = *hardware::parse_cluster("h100-sxm:2", builtin, "test");
  serving::ServingQuestion question;
  question.setup.model = &model;
  question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test");
  question.prompt = 1024;
  question.output = 256;
  question.capacity = cluster.chip.hbm().capacity.value;
  ServingChoices choices;
  choices.batch = 8;
  const ServingSearch estimated = *search_measured(question, cluster, choices, {});
  MeasuredTimes measured;
  measured.step = Seconds(0.05);
  measured.prefill = Seconds(1.0);
  const ServingSearch found = *search_measured(question, cluster, choices, measured);
  EXPECT_EQ(found.best->decode.estimate, Seconds(0.05));
  EXPECT_EQ(found.best->prefill.estimate, Seconds(1.0));
  ASSERT_EQ(found.front.size(), estimated.front.size());
  const double factor = Seconds(0.05) / estimated.best->decode.estimate;
  for (std::size_t i = 0; i < found.front.size(); ++i)
    EXPECT_DOUBLE_EQ(found.front[i].decode.estimate.value(), factor * estimated.front[i].decode.estimate.value());
  // Limits apply to what was measured.
  choices.per_token = Seconds(0.02);
  const ServingSearch slow = *search_measured(question, cluster, choices, measured);
  EXPECT_FALSE(slow.best);
  EXPECT_EQ(slow.closest->decode.estimate, Seconds(0.05));
  // 2 x 8e9 FLOP of 1024 tokens on two chips of 1e15 FLOP/s at 40 %: 20.48 ms on one replica.
  MeasuredTimes by_mfu;
  by_mfu.prefill_mfu = 0.4;
  by_mfu.prefill_flops_per_token = Flops(16e9);
  by_mfu.peak = FlopsPerSecond(1e15);
  choices.per_token.reset();
  choices.data = 1;
  EXPECT_NEAR(search_measured(question, cluster, choices, by_mfu)->best->prefill.estimate.value(), 20.48e-3, 1e-9);
}

}  // namespace
}  // namespace assay::search
