#include "assay/ask/draw/tornado.h"

#include <gtest/gtest.h>

namespace assay::draw {
namespace {

TEST(Tornado, TheWidestBarIsOnTopAndBarsMeetAtTheResult) {
  const Scene scene = draw_tornado({"step",
                                    "each rate",
                                    {10.0, "10 s"},
                                    {{"memory", {11.0, "11 s"}, {9.5, "9.5 s"}, {}},
                                     {"matrix", {16.0, "16 s"}, {6.0, "6 s"}, TornadoEnd{5.0, "5 s"}}}});
  std::vector<Rectangle> bars;
  std::vector<std::string> names;
  for (const SceneItem& item : scene.items) {
    if (const auto* bar = std::get_if<Rectangle>(&item.shape); bar && !item.tooltip.empty()) bars.push_back(*bar);
    if (const auto* label = std::get_if<Label>(&item.shape); label && item.tooltip.starts_with(label->text + ":"))
      names.push_back(label->text);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"matrix", "memory"}));
  ASSERT_EQ(bars.size(), 4u);  // halved and doubled of each row
  EXPECT_NEAR(bars[1].x + bars[1].width, bars[0].x, 1e-9);
  EXPECT_NEAR(bars[0].width / bars[1].width, 6.0 / 4.0, 1e-9);
  EXPECT_LT(bars[3].x + bars[3].width, scene.width);
}

TEST(Tornado, WithoutAnyChangeThereIsStillAPicture) {
  const Scene scene = draw_tornado({"step", "", {10.0, "10 s"}, {{"latency", {10.0, "10 s"}, {10.0, "10 s"}, {}}}});
  EXPECT_EQ(to_svg(scene).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace assay::draw
