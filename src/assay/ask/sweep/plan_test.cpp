#include "assay/ask/sweep/plan.h"

#include <gtest/gtest.h>

#include "assay/ask/report/render.h"

namespace assay::sweep {
namespace {

constexpr std::string_view small_plan = R"(
verb = "train"
requests = ["train llama-3-8b --on h100-sxm:8"]
[arguments]
seq = 4096
[grid]
model = ["a", "b"]
batch = [1, 2, 3]
[summary]
best = "lowest step_time.estimate"
for_each = "model"
front = ["lowest cost", "highest mfu"]
heat_map = "highest mfu"
)";

TEST(SweepPlan, ReadsAGridAndWhatIsBest) {
  const auto plan = read_plan(small_plan, "plan.toml");
  ASSERT_TRUE(plan) << plan.error().what;
  EXPECT_EQ(plan->grid_size(), 6u);
  EXPECT_EQ(report::render_json(plan->grid_request(4), report::Layout::one_line),
            "{\"verb\":\"train\",\"arguments\":{\"seq\":4096,\"batch\":2,\"model\":\"b\"}}\n");
  ASSERT_EQ(plan->best.size(), 1u);
  EXPECT_EQ(plan->best[0].path, "step_time.estimate");
  EXPECT_FALSE(plan->best[0].highest);
  ASSERT_TRUE(plan->heat_map);
  EXPECT_EQ(plan->heat_map->down, "model");
  EXPECT_EQ(plan->heat_map->across, "batch");
}

TEST(SweepPlan, NamesFaults) {
  const auto what = [](std::string_view text) {
    const auto plan = read_plan(text, "plan.toml");
    return plan ? std::string("none") : plan.error().where + ": " + plan.error().what;
  };
  EXPECT_EQ(what("verb = \"train\"\n[grid]\nbatch = 3\n"), "plan.toml:3:1: grid.batch: expected a list of values");
  EXPECT_EQ(what("[summary]\n"), "plan.toml:1:1: requests: the file asks nothing");
  EXPECT_NE(what("verb = \"train\"\n[summary]\nbest = \"step_time\"\n").find("does not say what is best"),
            std::string::npos);
  EXPECT_NE(what("verb = \"train\"\nunknown = 1\n").find("unknown"), std::string::npos);
  EXPECT_NE(what("verb = \"train\"\n[grid]\na = [1, 2]\n[summary]\nheat_map = \"lowest x\"\n").find("two arguments"),
            std::string::npos);
  std::string large = "verb = \"train\"\n[grid]\n";
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    large += std::string(name) + " = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n";
  EXPECT_NE(what(large).find("at most 1,000,000 requests"), std::string::npos);
}

}  // namespace
}  // namespace assay::sweep
