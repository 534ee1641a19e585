#include "assay/predict/training/memory_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "assay/hardware/catalogue.h"
#include "assay/model/model_catalogue.h"

namespace assay::training {
namespace {

// The fullest moment of every stage is the memory that is reported of it, whatever the schedule, and a step ends as it
// began but for its gradients.
TEST(MemoryCurve, IsFullestWhereTheMemoryOfTheStageIs) {
  const model::ImportedModel imported = *model::load_model("llama-3-8b", hardware::Catalogue::builtin(), "test");
  const hardware::Cluster cluster = *hardware::parse_cluster("h100-sxm:8", hardware::Catalogue::builtin(), "test");
  TrainingQuestion question;
  question.setup.model = &imported.model;
  question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "test");
  question.sequences = 32, question.chips = 8;
  using enum clock::PipelineSchedule;
  for (const std::int64_t stages : {1, 4})
    for (const std::int64_t chunks : {2, 3, 5})
      for (const clock::PipelineSchedule schedule : {gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, zb_v, dualpipe}) {
        if ((stages == 1 && schedule != one_f_one_b) || (chunks > 2 && schedule != interleaved)) continue;
        Strategy s;
        s.parallelism.pipeline = stages, s.parallelism.data = 8 / stages;
        s.schedule = schedule, s.interleave = schedule == interleaved ? chunks : 1;
        const auto m = static_cast<std::int64_t>(microbatches(question, s));
        ASSERT_TRUE(clock::is_possible({schedule, stages, m, s.interleave}));
        const clock::StageSplit split = stage_split(imported.model, s);
        const auto microbatch = price_stages(question, 4096, cluster, s, split);
        const auto input = pipeline_input(question, 4096, cluster, s);
        ASSERT_TRUE(microbatch && input);
        const auto result = clock::simulate_pipeline(*input);
        ASSERT_TRUE(result);
        for (const MemoryParts& peak : stage_memory(*microbatch, split, s)) {
          const auto curve = memory_curve(*microbatch, split, input->shape, result->events, peak.stage);
          double most = 0.0;
          for (const MemoryMoment& moment : curve) most = std::max(most, moment.memory.allocated().value());
          EXPECT_DOUBLE_EQ(most, peak.allocated().value()) << clock::schedule_name(schedule) << " stage " << peak.stage;
          EXPECT_EQ(curve.back().held, 0.0);
          EXPECT_EQ(curve.back().memory.activations, Bytes());
        }
      }
}

}  // namespace
}  // namespace assay::training
