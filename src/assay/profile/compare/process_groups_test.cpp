#include "assay/profile/compare/process_groups.h"

#include <gtest/gtest.h>

#include "assay/testing/catalogue.h"

namespace assay::compare {
namespace {

const trace::Vocabulary& grouped_vocabulary() { return **trace::vocabulary_of(testing::catalogue()); }

trace::RankSummary of_eight() {
  trace::RankSummary out;
  out.world_size = 8;
  return out;
}
const trace::ProcessGroup all{"0", "default_pg", 8, {0, 1, 2, 3, 4, 5, 6, 7}};

TEST(RunMesh, DescribedGroupsAreAxesFromTheOutermost) {
  trace::Trace trace;
  trace.groups = {all, {"1", "mesh_tp", 2, {0, 1}}, {"2", "mesh_dp_shard", 4, {0, 2, 4, 6}}};
  const RunMesh mesh = run_mesh(trace, grouped_vocabulary(), of_eight());
  ASSERT_EQ(mesh.axes.size(), 2u);
  EXPECT_EQ(mesh.axes[0].role, program::Role::fsdp);
  EXPECT_EQ(mesh.axes[1].role, program::Role::tensor);
  EXPECT_TRUE(mesh.complete);
  EXPECT_FALSE(mesh.splits_data_alone());
}

TEST(RunMesh, GroupsThatDoNotMakeAllRanksAreNoWholeMesh) {
  trace::Trace trace;
  trace.groups = {all, {"1", "TENSOR_MODEL_PARALLEL_GROUP", 2, {0, 1}}, {"2", "MODEL_PARALLEL_GROUP", 4, {0, 1, 2, 3}}};
  const RunMesh mesh = run_mesh(trace, grouped_vocabulary(), of_eight());
  ASSERT_EQ(mesh.axes.size(), 1u);
  EXPECT_EQ(mesh.axes[0].role, program::Role::tensor);
  EXPECT_FALSE(mesh.complete);
}

TEST(RunMesh, AGroupOfAllRanksIsNotNamedWithoutItsTraffic) {
  trace::Trace trace;
  trace.groups = {all};
  RunMesh mesh = run_mesh(trace, grouped_vocabulary(), of_eight());
  ASSERT_EQ(mesh.axes.size(), 1u);
  EXPECT_FALSE(mesh.axes[0].role);
  EXPECT_FALSE(mesh.complete);
  trace::RankSummary rank = of_eight();
  for (const char* kind : {"all-gather", "reduce-scatter"}) {
    rank.collectives.push_back({kind, "0", "", "default_pg", 8, 0, 7, 1_GiB, 1_GiB, {{0, 1, {}}}});
    trace.events.resize(1);
  }
  mesh = run_mesh(trace, grouped_vocabulary(), rank);
  EXPECT_EQ(mesh.axes[0].role, program::Role::fsdp);
  EXPECT_TRUE(mesh.splits_data_alone());
}

TEST(RunMesh, OneRankHasNone) {
  trace::Trace trace;
  trace::RankSummary rank;
  rank.world_size = 1;
  EXPECT_TRUE(run_mesh(trace, grouped_vocabulary(), rank).axes.empty());
}

}  // namespace
}  // namespace assay::compare
