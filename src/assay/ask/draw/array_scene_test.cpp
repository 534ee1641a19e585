#include "assay/ask/draw/array_scene.h"

#include <gtest/gtest.h>

namespace assay::draw {
namespace {

TEST(ArrayScene, ShowsWhatWorkingCellsPassOn) {
  const Scene scene = draw_array("array", "cycle 3", {1, 2, {3, 4}, {5, 6}, {7, 8}, {true, false}});
  std::vector<std::string> texts;
  for (const SceneItem& item : scene.items)
    if (const auto* label = std::get_if<Label>(&item.shape)) texts.push_back(label->text);
  const std::vector<std::string> cells(texts.end() - 4, texts.end());
  EXPECT_EQ(cells, (std::vector<std::string>{"w 3", "x 5", "s 7", "w 4"}));
}

}  // namespace
}  // namespace assay::draw
