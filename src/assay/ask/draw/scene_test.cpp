#include "assay/ask/draw/scene.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace assay::draw {
namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const Paint blue_line = {.stroke = ColourRole::series_1, .stroke_width = 2.0};

TEST(Scene, SaysWhatItIsToThoseWhoCannotSeeIt) {
  const std::string svg = to_svg({.width = 10, .height = 20, .title = "Roof & wall", .description = "a < b"});
  EXPECT_TRUE(has(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"20\" viewBox=\"0 0 10 20\""));
  EXPECT_TRUE(has(svg, "role=\"img\""));
  EXPECT_TRUE(has(svg, "<title>Roof &amp; wall</title>\n<desc>a &lt; b</desc>"));
}

TEST(Scene, EqualScenesGiveEqualBytes) {
  Scene scene = {.width = 100, .height = 100};
  scene.add(Polyline{{{0, 0}, {1.0 / 3.0, 2.5}, {-0.001, 100}}, blue_line});
  EXPECT_EQ(to_svg(scene), to_svg(scene));
  EXPECT_TRUE(has(to_svg(scene), "points=\"0,0 0.33,2.5 0,100\""));
}

TEST(Scene, NamesConcreteColoursOfUsedRolesOnceForEachBackground) {
  Scene scene = {.width = 100, .height = 100};
  scene.add(Polyline{{{0, 0}, {1, 1}}, blue_line});
  const std::string svg = to_svg(scene);
  const std::string light(role_colours(ColourRole::series_1).light);
  const std::string dark(role_colours(ColourRole::series_1).dark);
  EXPECT_TRUE(has(svg, ".assay-stroke-series-1{stroke:" + light + "}"));
  EXPECT_LT(svg.find(light), svg.find("@media (prefers-color-scheme:dark)"));
  EXPECT_GT(svg.find(dark), svg.find("@media (prefers-color-scheme:dark)"));
  EXPECT_FALSE(has(svg, "series-2"));
  EXPECT_FALSE(has(svg, "var("));
}

TEST(Scene, AThemeCanBeFixed) {
  const Scene scene = {.width = 10, .height = 10};
  EXPECT_FALSE(has(to_svg(scene, SvgTheme::dark), "@media"));
  EXPECT_TRUE(has(to_svg(scene, SvgTheme::dark), std::string(role_colours(ColourRole::surface).dark)));
  EXPECT_TRUE(has(to_svg(scene, SvgTheme::light), std::string(role_colours(ColourRole::surface).light)));
}

TEST(Scene, NeighboursWithOneTooltipFormOneGroup) {
  Scene scene = {.width = 10, .height = 10};
  scene.add(Polyline{{{0, 0}, {1, 1}}, blue_line}, "a");
  scene.add(Marker{.centre = {1, 1}, .paint = blue_line}, "a");
  scene.add(Marker{.centre = {2, 2}, .paint = blue_line}, "b");
  scene.add(Marker{.centre = {3, 3}, .paint = blue_line});
  const std::string svg = to_svg(scene);
  EXPECT_EQ(occurrences(svg, "<g><title>"), 2u);
  EXPECT_EQ(occurrences(svg, "</g>"), 2u);
  EXPECT_EQ(occurrences(svg, "<title>a</title>"), 1u);
  EXPECT_GT(svg.find("cx=\"3\""), svg.rfind("</g>"));
}

TEST(Scene, LeavesOutWhatHasNoPlace) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  Scene scene = {.width = 10, .height = 10};
  scene.add(Polyline{{{0, 0}, {nan, 1}}, blue_line});
  scene.add(Polyline{{{0, 0}}, blue_line});
  scene.add(Polygon{{{0, 0}, {1, 1}, {infinity, 2}}, blue_line});
  scene.add(Rectangle{.width = -1, .height = 5, .paint = blue_line}, "never seen");
  scene.add(Marker{.centre = {nan, 0}, .paint = blue_line});
  scene.add(Label{{0, infinity}, "x"});
  scene.add(Label{{0, 0}, ""});
  EXPECT_EQ(to_svg(scene), to_svg({.width = 10, .height = 10}));
}

TEST(Scene, ASizeThatIsNoSizeGivesAnEmptyDrawing) {
  EXPECT_TRUE(has(to_svg({.width = std::nan(""), .height = -3}), "viewBox=\"0 0 0 0\""));
}

TEST(Scene, TextKeepsItsAnchor) {
  Scene scene = {.width = 10, .height = 10};
  scene.add(Label{{3, 4}, "up", 12.0, Anchor::middle, ColourRole::ink, true});
  EXPECT_TRUE(has(to_svg(scene),
                  "<text x=\"3\" y=\"4\" font-size=\"12\" text-anchor=\"middle\" font-weight=\"600\" "
                  "class=\"assay-fill-ink\">up</text>"));
}

TEST(Scene, AHaloIsASecondCopyBelowTheText) {
  Scene scene = {.width = 10, .height = 10};
  scene.add(Label{{0, 0}, "over lines", 12.0, Anchor::start, ColourRole::ink, false, true});
  const std::string svg = to_svg(scene);
  EXPECT_EQ(occurrences(svg, ">over lines</text>"), 2u);
  EXPECT_LT(svg.find("aria-hidden=\"true\">over lines"), svg.find("class=\"assay-fill-ink\">over lines"));
}

TEST(Scene, EveryMarkerShapeIsDrawnAroundItsCentre) {
  for (int shape = 1; shape < series_colour_count; ++shape) {
    Scene scene = {.width = 10, .height = 10};
    scene.add(Marker{{5, 5}, static_cast<MarkerShape>(shape), 2.0, {.fill = ColourRole::ink}});
    EXPECT_TRUE(has(to_svg(scene), "<polygon points=\"")) << shape;
  }
}

TEST(XmlEscaped, ReplacesWhatXmlCannotHold) {
  EXPECT_EQ(xml_escaped("<a b=\"c\" d='e'> & f"), "&lt;a b=&quot;c&quot; d=&apos;e&apos;&gt; &amp; f");
  EXPECT_EQ(xml_escaped("bell\x07 tab\t"), "bell\ufffd tab\t");
  EXPECT_EQ(xml_escaped("caf\u00e9 \u2264 \U0001f600"), "caf\u00e9 \u2264 \U0001f600");
  EXPECT_EQ(xml_escaped("cut \xe2\x89"), "cut \ufffd\ufffd");
  EXPECT_EQ(xml_escaped("latin \xe9"), "latin \ufffd");
}

}  // namespace
}  // namespace assay::draw
