#include "assay/ask/draw/animation.h"

#include <gtest/gtest.h>

namespace assay::draw {
namespace {

TEST(Animation, ShowsEachFrameInTurn) {
  Scene frame;
  frame.width = 100.0;
  frame.height = 50.0;
  const std::string svg = to_animated_svg("a < b", {frame, frame, frame}, 2.0);
  EXPECT_NE(svg.find("<title>a &lt; b</title>"), std::string::npos);
  EXPECT_NE(svg.find("dur=\"6.0s\""), std::string::npos);
  EXPECT_NE(svg.find("values=\"visible;hidden\" keyTimes=\"0;0.333333\""), std::string::npos);
  EXPECT_NE(svg.find("values=\"hidden;visible;hidden\" keyTimes=\"0;0.333333;0.666667\""), std::string::npos);
  EXPECT_NE(svg.find("values=\"hidden;visible\" keyTimes=\"0;0.666667\""), std::string::npos);
}

TEST(Animation, OneFrameDoesNotMove) {
  Scene frame;
  frame.width = frame.height = 10.0;
  EXPECT_EQ(to_animated_svg("one", {frame}, 2.0).find("<animate"), std::string::npos);
}

}  // namespace
}  // namespace assay::draw
