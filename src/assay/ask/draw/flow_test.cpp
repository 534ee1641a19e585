#include "assay/ask/draw/flow.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay::draw {
namespace {

std::vector<Rectangle> boxes(const Scene& scene) {
  std::vector<Rectangle> out;
  for (const SceneItem& item : scene.items)
    if (const auto* box = std::get_if<Rectangle>(&item.shape)) out.push_back(*box);
  return out;
}

TEST(Flow, PutsEveryNodeBelowWhatItReads) {
  const Flow flow{"a layer", "", {{"in", {}, {}}, {"left", {}, {0}}, {"right", {}, {0}}, {"sum", {}, {1, 2, 0}}}};
  const Scene scene = draw_flow(flow);
  const auto placed = boxes(scene);
  ASSERT_EQ(placed.size(), 4u);
  EXPECT_LT(placed[0].y, placed[1].y);
  EXPECT_EQ(placed[1].y, placed[2].y);
  EXPECT_LT(placed[1].x + placed[1].width, placed[2].x);
  EXPECT_LT(placed[2].y, placed[3].y);
}

TEST(Flow, LeadsWhatPassesNodesByAroundThem) {
  const Scene scene = draw_flow({"", "", {{"in", {}, {}}, {"middle", {}, {0}}, {"sum", {}, {1, 0}}}});
  const auto placed = boxes(scene);
  const bool around = std::any_of(scene.items.begin(), scene.items.end(), [&](const SceneItem& item) {
    const auto* line = std::get_if<Polyline>(&item.shape);
    return line && std::any_of(line->points.begin(), line->points.end(),
                               [&](PlotPoint at) { return at.x < placed[1].x && at.y > placed[0].y; });
  });
  EXPECT_TRUE(around);
}

}  // namespace
}  // namespace assay::draw
