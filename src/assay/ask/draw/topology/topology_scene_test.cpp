#include "assay/ask/draw/topology/topology_scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "assay/ask/draw/lettering.h"
#include "assay/testing/scene_text.h"

namespace assay::draw {
namespace {

using testing::shows;

hardware::Cluster cluster_of(const std::string& text, const std::vector<hardware::Override>& overrides = {}) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  auto cluster = hardware::parse_cluster(text, catalogue, "test", overrides);
  if (!cluster) ADD_FAILURE() << text << ": " << cluster.error().what;
  return *std::move(cluster);
}

Scene drawn(const std::string& text) { return draw_cluster(cluster_of(text)); }

const std::vector<std::string>& many_clusters() {
  static const std::vector<std::string> texts = {"tpu-v5e",
                                                 "tpu-v5e:2x2",
                                                 "tpu-v5e:2x4",
                                                 "tpu-v5e:4x4",
                                                 "tpu-v5e:4x8",
                                                 "tpu-v5e:8x16",
                                                 "tpu-v5e:16x8",
                                                 "tpu-v5e:16x16",
                                                 "tpu-v6e:16x16",
                                                 "tpu-v3:32x32",
                                                 "tpu-v2:16x16",
                                                 "tpu-v5p:1x1x1",
                                                 "tpu-v5p:2x2x1",
                                                 "tpu-v5p:2x2x4",
                                                 "tpu-v5p:4x2x4",
                                                 "tpu-v5p:4x4x4",
                                                 "tpu-v5p:4x4x8",
                                                 "tpu-v5p:8x4x4",
                                                 "tpu-v5p:4x8x4",
                                                 "tpu-v5p:4x4x8_twisted",
                                                 "tpu-v5p:8x4x4_twisted",
                                                 "tpu-v5p:4x8x8_twisted",
                                                 "tpu-v5p:16x20x28",
                                                 "tpu-v5p:28x16x20",
                                                 "tpu-v5p:4x4x12",
                                                 "tpu-v4:16x16x16",
                                                 "tpu-v7:4x4x576",
                                                 "tpu-v7:576x4x4",
                                                 "tpu-v7:4x576x4",
                                                 "2*tpu-v5e:1x1",
                                                 "2*tpu-v5e:4x4",
                                                 "4*tpu-v5p:8x8x8",
                                                 "100*tpu-v5e:16x16",
                                                 "1000*tpu-v5p:16x20x28",
                                                 "9*tpu-v7:4x4x576",
                                                 "20*tpu-v5p:2x2x1",
                                                 "trainium2:16",
                                                 "h100-sxm",
                                                 "h100-sxm:2",
                                                 "h100-sxm:8",
                                                 "h100-sxm:256",
                                                 "h100-sxm:1024",
                                                 "h100-sxm:16384",
                                                 "h100-sxm:10000000",
                                                 "gb200-nvl72:72",
                                                 "gb200-nvl72:576",
                                                 "l4",
                                                 "l4:8",
                                                 "l4:64",
                                                 "mi300x:8",
                                                 "mi300x:1024",
                                                 "mi250x:4",
                                                 "gaudi3:64",
                                                 "h100-pcie:2",
                                                 "h100-pcie:4",
                                                 "v100-sxm:16",
                                                 "v100-sxm:32",
                                                 "a100-sxm-80:1120",
                                                 "b300:576",
                                                 "rtx-4090"};
  return texts;
}

struct TextBox {
  std::string text;
  double left, top, right, bottom;
};

TextBox box_of(const Label& label) {
  const double width = text_width(label.text, label.size, label.bold);
  const double left = label.at.x - (label.anchor == Anchor::start    ? 0.0
                                    : label.anchor == Anchor::middle ? width / 2.0
                                                                     : width);
  return {label.text, left, label.at.y - 0.75 * label.size, left + width, label.at.y};
}

template <class Shape>
std::vector<Shape> all(const Scene& scene) {
  std::vector<Shape> found;
  for (const SceneItem& item : scene.items)
    if (const Shape* shape = std::get_if<Shape>(&item.shape)) found.push_back(*shape);
  return found;
}

std::size_t with_tooltip(const Scene& scene, const std::string& part) {
  return static_cast<std::size_t>(std::count_if(scene.items.begin(), scene.items.end(), [&](const SceneItem& item) {
    return item.tooltip.find(part) != std::string::npos;
  }));
}

bool crosses(PlotPoint a, PlotPoint b, const TextBox& box) {
  // Liang and Barsky: the part of the line inside each of the four edges.
  double from = 0.0, to = 1.0;
  const auto clip = [&](double step, double room) {
    if (step == 0.0) return room >= 0.0;
    const double t = room / step;
    if (step < 0.0)
      from = std::max(from, t);
    else
      to = std::min(to, t);
    return from <= to;
  };
  const double dx = b.x - a.x, dy = b.y - a.y;
  return clip(-dx, a.x - box.left) && clip(dx, box.right - a.x) && clip(-dy, a.y - box.top) &&
         clip(dy, box.bottom - a.y);
}

TEST(TopologyScene, NoTextOverlapsAnotherOrLeavesThePicture) {
  for (const std::string& text : many_clusters()) {
    const Scene scene = drawn(text);
    const auto labels = all<Label>(scene);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const TextBox a = box_of(labels[i]);
      EXPECT_GE(a.left, 0.0) << text << ": " << a.text;
      EXPECT_LE(a.right, scene.width) << text << ": " << a.text;
      EXPECT_GE(a.top, 0.0) << text << ": " << a.text;
      EXPECT_LE(a.bottom, scene.height) << text << ": " << a.text;
      for (std::size_t j = 0; j < i; ++j) {
        const TextBox b = box_of(labels[j]);
        const bool apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
        EXPECT_TRUE(apart) << text << ": " << a.text << " over " << b.text;
      }
    }
  }
}

TEST(TopologyScene, NoLineRunsThroughTextOutsideOfABox) {
  for (const std::string& text : many_clusters()) {
    const Scene scene = drawn(text);
    for (const Label& label : all<Label>(scene)) {
      const TextBox box = box_of(label);
      const auto boxes = all<Rectangle>(scene);
      const bool boxed = std::any_of(boxes.begin(), boxes.end(), [&](const Rectangle& r) {
        return r.x <= box.left && box.right <= r.x + r.width && r.y <= box.top && box.bottom <= r.y + r.height;
      });
      if (boxed) continue;
      for (const Polyline& line : all<Polyline>(scene))
        for (std::size_t i = 1; i < line.points.size(); ++i)
          EXPECT_FALSE(crosses(line.points[i - 1], line.points[i], box)) << text << ": " << label.text;
    }
  }
}

TEST(TopologyScene, HasAFewHundredShapesHoweverLargeTheCluster) {
  for (const std::string& text : many_clusters()) {
    const Scene scene = drawn(text);
    EXPECT_LE(scene.items.size(), 500u) << text;
    EXPECT_LE(scene.width, 1500.0) << text;
    EXPECT_LE(scene.height, 1100.0) << text;
    EXPECT_EQ(to_svg(scene), to_svg(drawn(text))) << text;
    EXPECT_EQ(to_svg(scene).find("nan"), std::string::npos) << text;
  }
}

TEST(TopologyScene, EveryChipOfASmallSliceIsDrawn) {
  EXPECT_EQ(all<Marker>(drawn("tpu-v5p:4x4x4")).size(), 64u + 1u);  // and one in the key
  EXPECT_EQ(with_tooltip(drawn("tpu-v5e:8x16"), "chip "), 128u);
  EXPECT_TRUE(shows(drawn("tpu-v5e:4x4"), "3,3"));
}

TEST(TopologyScene, OnlyRingsHaveWraparoundLinks) {
  EXPECT_EQ(with_tooltip(drawn("tpu-v5e:4x4"), "wraparound"), 0u);
  EXPECT_EQ(with_tooltip(drawn("tpu-v5p:2x2x4"), "wraparound"), 0u);
  const Scene half = drawn("tpu-v5e:8x16");
  EXPECT_EQ(with_tooltip(half, "X: 8 chips, line: wraparound"), 0u);
  EXPECT_EQ(with_tooltip(half, "Y: 16 chips, ring: wraparound"), 8u);
  EXPECT_TRUE(shows(half, "X: 8 chips, line"));
  EXPECT_TRUE(shows(half, "Y: 16 chips, ring"));
  EXPECT_EQ(with_tooltip(drawn("tpu-v5e:16x16"), "wraparound"), 32u);
  EXPECT_EQ(with_tooltip(drawn("tpu-v5p:4x4x4"), "wraparound"), 6u);  // along the outline, two for each axis
}

TEST(TopologyScene, HostsAreGroupsOfTheirShape) {
  EXPECT_EQ(with_tooltip(drawn("tpu-v5e:8x16"), "host of 4x2 chips"), 16u);
  EXPECT_EQ(with_tooltip(drawn("tpu-v5e:2x4"), "host of 2x4 chips"), 1u);  // turned, as eight chips are one host
  EXPECT_EQ(with_tooltip(drawn("tpu-v5p:4x4x8"), "host of 2x2x1 chips"), 32u);
}

TEST(TopologyScene, AxesSayTheirSizeKindAndRate) {
  const Scene scene = drawn("tpu-v5p:16x20x28");
  for (const char* text :
       {"TPU v5p, 16x20x28 slice", "X: 16 chips = 4 cubes, ring", "Y: 20 chips = 5 cubes, ring",
        "Z: 28 chips = 7 cubes, ring", "90 GB/s one way per link", "one cube of 4x4x4 chips", "64 chips on 16 hosts"})
    EXPECT_TRUE(shows(scene, text)) << text;
  EXPECT_NE(scene.description.find("8,960 chips on 2,240 hosts"), std::string::npos);
}

TEST(TopologyScene, ATwistedTorusSaysHow) {
  EXPECT_TRUE(shows(drawn("tpu-v5p:4x4x8_twisted"), "TPU v5p, 4x4x8 twisted slice"));
  EXPECT_TRUE(shows(drawn("tpu-v5p:4x4x8_twisted"), "twisted: shifts Z by 4"));
  EXPECT_TRUE(shows(drawn("tpu-v5p:4x8x8_twisted"), "twisted: shifts Y by 4 and Z by 4"));
  EXPECT_FALSE(shows(drawn("tpu-v5p:4x4x8"), "twisted: shifts Z by 4"));
}

TEST(TopologyScene, SlicesHangOnTheDataCentreNetwork) {
  const Scene four = drawn("4*tpu-v5p:8x8x8");
  EXPECT_TRUE(shows(four, "data-centre network: 6.25 GB/s one way per chip, 3.2 TB/s per slice"));
  EXPECT_TRUE(shows(four, "slice 4"));
  EXPECT_TRUE(shows(drawn("100*tpu-v5e:16x16"), "\u2026 100 slices"));
}

TEST(TopologyScene, EveryLevelOfATreeSaysWhatItJoins) {
  const Scene scene = drawn("h100-sxm:16384");
  for (const char* text : {"node: 8 chips", "450 GB/s one way per chip", "4 switches each, 8,192 in all",
                           "leaf: 32 nodes", "400 GB/s one way per node, 50 GB/s per chip", "spine: 4 leaf units",
                           "core: 16 spine units", "in-network reduction", "31 more", "15 more", "node, 1 of 2,048"})
    EXPECT_TRUE(shows(scene, text)) << text;
  EXPECT_TRUE(shows(drawn("mi300x:8"), "no switches: a link between every two chips"));
  EXPECT_TRUE(shows(drawn("l4:8"), "over PCIe and the host"));
}

TEST(TopologyScene, OneChipIsDrawnWithItsIdleLinks) {
  const Scene scene = drawn("tpu-v5e");
  EXPECT_TRUE(shows(scene, "TPU v5e, one chip"));
  EXPECT_TRUE(shows(scene, "4 ICI links, none in use"));
}

}  // namespace
}  // namespace assay::draw
