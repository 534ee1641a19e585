#include "assay/ask/draw/sharding/sharding_scene.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "assay/program/plan/notation.h"

namespace assay::draw {
namespace {

program::Mesh mesh_of(std::string_view text) { return *program::parse_mesh(text, "mesh"); }

program::Tensor tensor_of(const program::Mesh& mesh, std::string_view text) {
  return plan::parse_sharding(text, mesh, {{"I", 64}, {"J", 128}, {"K", 32}}, Dtype::bf16)->left;
}

/// How often each label stands in a scene.
std::map<std::string, int> labels(const Scene& scene) {
  std::map<std::string, int> counts;
  for (const SceneItem& item : scene.items)
    if (const auto* label = std::get_if<Label>(&item.shape)) ++counts[label->text];
  return counts;
}

/// The fills of the boxes of which the tooltip starts so, as text.
std::set<std::string> fills(const Scene& scene, std::string_view tooltip) {
  std::set<std::string> found;
  for (const SceneItem& item : scene.items)
    if (const auto* box = std::get_if<Rectangle>(&item.shape); box && item.tooltip.find(tooltip) != std::string::npos)
      found.insert(std::to_string(static_cast<int>(box->paint.fill)) + "/" + std::to_string(box->paint.fill_opacity));
  return found;
}

std::size_t lines(const Scene& scene) {
  std::size_t count = 0;
  for (const SceneItem& item : scene.items) count += std::holds_alternative<Polyline>(item.shape);
  return count;
}

TEST(ShardIndex, FollowsTheOrderOfTheSubscript) {
  const program::Mesh mesh = mesh_of("X=2,Y=4");
  // Y is minor in I_XY: device x=1, y=2 holds block 1*4 + 2; in I_YX block 2*2 + 1.
  EXPECT_EQ(shard_index(mesh, tensor_of(mesh, "A[I_XY, J]"), {1, 2}), (std::vector<std::int64_t>{6, 0}));
  EXPECT_EQ(shard_index(mesh, tensor_of(mesh, "A[I_YX, J]"), {1, 2}), (std::vector<std::int64_t>{5, 0}));
  EXPECT_EQ(shard_index(mesh, tensor_of(mesh, "A[I, J_Y]"), {1, 2}), (std::vector<std::int64_t>{0, 2}));
}

TEST(ShardingScene, DevicesAndTheirShardsHaveOneColour) {
  const program::Mesh mesh = mesh_of("X=2,Y=4");
  const Scene scene = draw_sharding(mesh, tensor_of(mesh, "A[I_X, J]"));
  // Four devices and the array's shard each.
  EXPECT_EQ(labels(scene)["0,0"], 5);
  EXPECT_EQ(labels(scene)["1,0"], 5);
  EXPECT_EQ(fills(scene, "shard 0,0").size(), 1u);
  EXPECT_EQ(fills(scene, "shard 1,0").size(), 1u);
  EXPECT_NE(fills(scene, "shard 0,0"), fills(scene, "shard 1,0"));
}

TEST(ShardingScene, UpToTwentyFourShardsLookDifferent) {
  const program::Mesh mesh = mesh_of("X=4,Y=6");
  const Scene scene = draw_sharding(mesh, tensor_of(mesh, "A[I_X, J_Y]"));
  EXPECT_EQ(fills(scene, "shard").size(), 24u);
}

TEST(ShardingScene, PartialSumsAreHatched) {
  const program::Mesh mesh = mesh_of("X=2,Y=2");
  EXPECT_EQ(lines(draw_sharding(mesh, tensor_of(mesh, "A[I_X, J]"))), 0u);
  EXPECT_GT(lines(draw_sharding(mesh, tensor_of(mesh, "A[I_X, J] {U_Y}"))), 4u);
}

TEST(ShardingScene, LargeMeshesStaySmallPictures) {
  for (const char* text : {"X=1024", "X=64,Y=64", "X=16,Y=16,Z=16", "X=4,Y=4,Z=4,W=4", "X=1"}) {
    const program::Mesh mesh = mesh_of(text);
    const Scene scene =
        draw_sharding(mesh, tensor_of(mesh, text[2] == '1' && text[3] == '\0' ? "A[I, J]" : "A[I_X, J]"));
    EXPECT_LT(scene.items.size(), 500u) << text;
    EXPECT_LT(scene.width, 1500.0) << text;
    for (const SceneItem& item : scene.items)
      if (const auto* box = std::get_if<Rectangle>(&item.shape)) {
        EXPECT_GE(box->x, 0.0);
        EXPECT_LE(box->x + box->width, scene.width);
        EXPECT_LE(box->y + box->height, scene.height);
      }
  }
}

TEST(ShardingScene, MoreDimensionsStandSideBySide) {
  const program::Mesh mesh = mesh_of("X=2,Y=2,Z=2");
  const auto found = labels(draw_sharding(mesh, tensor_of(mesh, "A[I_X, J_Y, K_Z]")));
  EXPECT_EQ(found.at("1,0,1"), 2);
  EXPECT_EQ(found.count("side by side: I = 64 over X"), 1u);
}

TEST(PlanScene, HasAPanelForEachStepWithItsCost) {
  const program::Mesh mesh = mesh_of("X=2,Y=2");
  const program::Tensor from = tensor_of(mesh, "A[I_X, J_Y]"), to = tensor_of(mesh, "A[I, J]");
  const plan::Plan plan = plan::plan_reshard(mesh, from, to.sharding, plan::byte_prices(mesh));
  ASSERT_EQ(plan.steps.size(), 1u);
  const auto found = labels(draw_plan(mesh, "title", "subtitle", plan, {"12 KiB received"}));
  EXPECT_EQ(found.count("1.  A[I, J] = AllGather_XY(A[I_X, J_Y])"), 1u);
  EXPECT_EQ(found.count("all-gather over XY"), 1u);
  EXPECT_EQ(found.count("12 KiB received"), 1u);
  EXPECT_EQ(found.at("1,1"), 1);
  EXPECT_EQ(found.at("0,0"), 5);  // one device before, all four after
}

}  // namespace
}  // namespace assay::draw
