#include "assay/ask/draw/timeline/timeline_scene.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace assay::draw {
namespace {

/// A pipeline: each stage does every micro-batch forwards and backwards, one after the other.
Timeline pipeline(std::size_t stages, std::size_t micro_batches) {
  Timeline timeline{.title = "Pipeline", .subtitle = "forward and backward", .classes = {"forward", "backward"}};
  for (std::size_t s = 0; s < stages; ++s) {
    timeline.lanes.push_back({"stage " + std::to_string(s)});
    for (std::size_t m = 0; m < micro_batches; ++m) {
      const double start = static_cast<double>(s + 3 * m);
      timeline.bars.push_back({s, Seconds(start), Seconds(start + 1), "F" + std::to_string(m), 0});
      timeline.bars.push_back({s, Seconds(start + 1), Seconds(start + 3), "B" + std::to_string(m), 1});
    }
  }
  timeline.marks.push_back({Seconds(static_cast<double>(3 * micro_batches)), "no bubble"});
  return timeline;
}

template <class Shape>
std::vector<Shape> shapes(const Scene& scene) {
  std::vector<Shape> found;
  for (const SceneItem& item : scene.items)
    if (const auto* shape = std::get_if<Shape>(&item.shape)) found.push_back(*shape);
  return found;
}

bool says(const Scene& scene, std::string_view text) {
  for (const Label& label : shapes<Label>(scene))
    if (label.text == text) return true;
  return false;
}

TEST(TimelineScene, ShowsEveryBarWhereThereIsRoom) {
  const Timeline timeline = pipeline(3, 4);
  const Scene scene = draw_timeline(timeline);
  EXPECT_EQ(shapes<Rectangle>(scene).size(), timeline.bars.size() + timeline.classes.size());
  for (const char* text : {"stage 0", "stage 2", "F0", "B3", "no bubble, 12 s", "forward", "time [s]"})
    EXPECT_TRUE(says(scene, text)) << text;
  for (const Rectangle& box : shapes<Rectangle>(scene)) {
    EXPECT_GE(box.x, 0.0);
    EXPECT_LE(box.x + box.width, scene.width);
    EXPECT_LE(box.y + box.height, scene.height);
  }
}

TEST(TimelineScene, ThinBarsOfSeveralClassesAreAllSeen) {
  const Scene scene = draw_timeline(pipeline(2, 700));
  const auto areas = shapes<Polygon>(scene);
  for (const int number : {1, 2})
    EXPECT_TRUE(std::any_of(areas.begin(), areas.end(), [&](const Polygon& area) {
      return area.paint.fill == series_colour(number);
    })) << number;
}

TEST(TimelineScene, ManyStagesMakeAPictureOfModerateSize) {
  for (const std::size_t stages : {8u, 16u, 32u})
    for (const std::size_t micro_batches : {8u, 64u, 512u})
      EXPECT_LT(to_svg(draw_timeline(pipeline(stages, micro_batches))).size(), 200'000u)
          << stages << ' ' << micro_batches;
}

TEST(TimelineScene, ClassesOfOneColourDifferInStrength) {
  Timeline timeline = pipeline(2, 4);
  timeline.classes = {{"forward", arithmetic_colour, 1.5}, {"backward", arithmetic_colour, 0.8}};
  const auto boxes = shapes<Rectangle>(draw_timeline(timeline));
  for (const Rectangle& box : boxes) EXPECT_EQ(box.paint.fill, arithmetic_colour);
  EXPECT_GT(boxes[0].paint.fill_opacity, boxes[1].paint.fill_opacity);
}

TEST(TimelineScene, BarsAreAsLongAsTheyLast) {
  Timeline timeline{.title = "t", .lanes = {{"a"}}};
  timeline.bars = {{0, 0_us, 10_us, "one", 0}, {0, 20_us, 50_us, "two", 0}};
  const auto boxes = shapes<Rectangle>(draw_timeline(timeline));
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_NEAR(boxes[1].width, 3.0 * boxes[0].width, 1e-9);
  EXPECT_NEAR(boxes[1].x - boxes[0].x, 2.0 * boxes[0].width, 1e-9);
}

TEST(TimelineScene, TensOfThousandsOfBarsStayASmallPicture) {
  const Scene scene = draw_timeline(pipeline(32, 2000));  // 128 000 bars
  EXPECT_LT(scene.items.size(), 32u * 900u);
  EXPECT_LT(to_svg(scene).size(), 6'000'000u);
  const Scene wide = draw_timeline(pipeline(1000, 2));
  EXPECT_TRUE(says(wide, "\u2026 948 more"));
  EXPECT_LT(wide.height, 1400.0);
}

TEST(TimelineScene, ThinNeighboursShareAShapeThatKeepsTheirExtent) {
  Timeline timeline{.title = "t", .lanes = {{"a"}}};
  for (int i = 0; i < 20000; ++i) timeline.bars.push_back({0, Seconds(i), Seconds(i + 1), "x", 0});
  double covered = 0;
  for (const Rectangle& box : shapes<Rectangle>(draw_timeline(timeline))) covered += box.width;
  EXPECT_NEAR(covered, 860.0, 10.0);
}

TEST(TimelineScene, EmptyAndOddInputIsDrawn) {
  EXPECT_GT(draw_timeline({}).height, 0.0);
  Timeline odd{.title = "t", .lanes = {{"a"}}};
  odd.bars = {
      {7, 0_s, 1_s, "no such lane", 0}, {0, 2_s, 1_s, "backwards", 0}, {0, 0_s, Seconds(1.0 / 0.0), "for ever", -3}};
  EXPECT_TRUE(shapes<Rectangle>(draw_timeline(odd)).empty());
}

TEST(ChromeTrace, HasOneEventForEachBarAndNamesItsLanes) {
  const Timeline timeline = pipeline(2, 3);
  const auto json = nlohmann::json::parse(chrome_trace_json(timeline));
  std::size_t bars = 0, names = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "X") {
      ++bars;
      EXPECT_GE(event.at("dur").get<double>(), 1e6);
    }
    names += event.at("name") == "thread_name";
  }
  EXPECT_EQ(bars, timeline.bars.size());
  EXPECT_EQ(names, timeline.lanes.size());
}

}  // namespace
}  // namespace assay::draw
