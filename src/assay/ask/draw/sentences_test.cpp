#include "assay/ask/draw/sentences.h"

#include <gtest/gtest.h>

namespace assay::draw {
namespace {

TEST(Sentences, AreWrappedBelowEachOther) {
  const Scene scene =
      sentences("it does not fit", {"a short note", std::string(300, 'x') + " " + std::string(90, 'y')});
  ASSERT_GE(scene.items.size(), 3u);
  double last = 0.0;
  for (const SceneItem& item : scene.items) {
    const Label& label = std::get<Label>(item.shape);
    EXPECT_GT(label.at.y, last);
    last = label.at.y;
  }
  EXPECT_LT(last, scene.height);
  EXPECT_EQ(scene.title, "it does not fit");
}

}  // namespace
}  // namespace assay::draw
