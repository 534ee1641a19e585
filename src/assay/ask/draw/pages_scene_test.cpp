#include "assay/ask/draw/pages_scene.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay::draw {
namespace {

std::vector<std::string> words_of(const Scene& scene) {
  std::vector<std::string> out;
  for (const SceneItem& item : scene.items)
    if (const auto* label = std::get_if<Label>(&item.shape)) out.push_back(label->text);
  return out;
}

TEST(PagesScene, SaysWhichPagesAreSharedAndFree) {
  const Scene scene = draw_pages("Pages", "", {{"one", {0, 1}, 1}, {"two", {0}, 2}},
                                 {{"the q", {0, 1}, 1.0}, {"uick", {0}, 0.8}, {"", {}, 0.0}});
  const auto words = words_of(scene);
  for (const char* wanted : {"one", "two", "page 0, shared by 2", "the q", "page 1", "page 2, free"})
    EXPECT_NE(std::find(words.begin(), words.end(), wanted), words.end()) << wanted;
}

TEST(PagesScene, StaysWithinItsWidth) {
  const Scene scene = draw_pages("Pages", "none yet", {}, std::vector<PageBox>(20));
  for (const SceneItem& item : scene.items)
    if (const auto* box = std::get_if<Rectangle>(&item.shape)) {
      EXPECT_LE(box->x + box->width, scene.width);
      EXPECT_LE(box->y + box->height, scene.height);
    }
}

}  // namespace
}  // namespace assay::draw
