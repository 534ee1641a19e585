#include "assay/ask/draw/page.h"

#include <gtest/gtest.h>

#include "assay/testing/scene_text.h"

namespace assay::draw {
namespace {

TEST(Page, GrowsDownwardsAndKeepsMargins) {
  Sketch box;
  box.add(Rectangle{-5, -7, 30, 20});
  Page page(200.0);
  page.text("title", 10.0, ColourRole::ink, true);
  page.space(6.0);
  page.add(box, 3.0);
  EXPECT_EQ(page.next(), 14.0 + 6.0 + 20.0);
  EXPECT_EQ(page.drawn(), page.next());
  const Scene scene = page.scene("title", "what it shows", page.drawn());
  EXPECT_EQ(scene.width, 200.0 + 2.0 * picture_margin);
  EXPECT_EQ(scene.height, 40.0 + 2.0 * picture_margin);
  ASSERT_EQ(scene.items.size(), 2u);
  const auto& placed = std::get<Rectangle>(scene.items[1].shape);
  EXPECT_EQ(placed.x, picture_margin + 3.0);
  EXPECT_EQ(placed.y, picture_margin + 20.0);
}

TEST(Page, TextIsNoWiderThanThePage) {
  Page page(60.0);
  page.text("several words that do not fit side by side", 12.0);
  EXPECT_EQ(testing::labels_of(page.scene("", "", page.drawn())).size(), 3u);
}

TEST(Page, ATitledPictureIsDescribedByItsSubtitle) {
  const Scene scene = titled_scene(100.0, 50.0, "title", "subtitle");
  EXPECT_EQ(scene.description, "subtitle");
  EXPECT_EQ(testing::labels_of(scene).size(), 2u);
}

}  // namespace
}  // namespace assay::draw
