#include "assay/hardware/topology.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "assay/hardware/catalogue.h"

namespace assay::hardware {
namespace {

/// A graph that knows nothing of axes: who is joined to whom.
using Graph = std::vector<std::set<std::size_t>>;

/// Built from the definition, chip by chip: +1 along each axis, modulo the lattice of a twisted torus.
Graph explicit_graph(const Torus& torus) {
  const auto count = static_cast<std::size_t>(torus.chips());
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (const Axis& axis : torus.axes) shortest = std::min(shortest, axis.size);
  Graph graph(count);
  for (std::size_t chip = 0; chip < count; ++chip) {
    for (std::size_t i = 0; i < torus.axes.size(); ++i) {
      auto at = chip_coordinates(torus, static_cast<std::int64_t>(chip));
      if (++at[i] == torus.axes[i].size) {
        if (!torus.axes[i].ring) continue;
        at[i] = 0;
        if (torus.twisted && torus.axes[i].size == shortest)
          for (std::size_t j = 0; j < at.size(); ++j)
            if (torus.axes[j].size > shortest) at[j] = (at[j] + shortest) % torus.axes[j].size;
      }
      const auto next = static_cast<std::size_t>(chip_index(torus, at));
      if (next != chip) graph[chip].insert(next), graph[next].insert(chip);
    }
  }
  return graph;
}

std::vector<std::int64_t> hops_from(const Graph& graph, std::size_t start) {
  std::vector<std::int64_t> hops(graph.size(), -1);
  std::vector<std::size_t> front{start};
  hops[start] = 0;
  for (std::int64_t hop = 1; !front.empty(); ++hop) {
    std::vector<std::size_t> next;
    for (std::size_t chip : front)
      for (std::size_t there : graph[chip])
        if (hops[there] < 0) {
          hops[there] = hop;
          next.push_back(there);
        }
    front = std::move(next);
  }
  return hops;
}

/// Links out of a set of chips, given as bits; with `hops`, only those that come closer to their target.
std::int64_t links_out(const Graph& graph, unsigned inside, const std::vector<std::int64_t>* hops = nullptr) {
  std::int64_t links = 0;
  for (std::size_t a = 0; a < graph.size(); ++a)
    for (std::size_t b : graph[a])
      links += (inside >> a & 1u) && !(inside >> b & 1u) && (!hops || (*hops)[b] < (*hops)[a]);
  return links;
}

Torus torus_of(const Shape& sizes, const std::vector<bool>& rings, bool twisted = false) {
  Torus torus;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    torus.axes.push_back({std::string(1, static_cast<char>('X' + i)), sizes[i], rings[i]});
  torus.twisted = twisted;
  return torus;
}

/// Up to three axes of up to six chips, each a ring or a line.
Torus any_torus() {
  Torus torus;
  for (auto axes = *rc::gen::inRange(1, 4); axes > 0; --axes)
    torus.axes.push_back({"A", *rc::gen::inRange<std::int64_t>(1, 7), *rc::gen::arbitrary<bool>()});
  return torus;
}

Chip chip(std::string_view id) { return *Catalogue::builtin().chip(id, "--on"); }

std::vector<bool> rings(std::string_view id, const Shape& shape) {
  const Torus torus = make_torus(chip(id), shape, false, "--on").value();
  std::vector<bool> closed;
  for (const Axis& axis : torus.axes) closed.push_back(axis.ring);
  return closed;
}

RC_GTEST_PROP(Torus, AgreesWithTheExplicitGraph, ()) {
  const Torus torus = any_torus();
  const Graph graph = explicit_graph(torus);
  std::int64_t links = 0, longest = 0, total = 0;
  for (std::size_t chip = 0; chip < graph.size(); ++chip) {
    const auto near = neighbours(torus, static_cast<std::int64_t>(chip));
    RC_ASSERT(std::set<std::size_t>(near.begin(), near.end()) == graph[chip]);
    RC_ASSERT(near.size() == graph[chip].size());  // without repeats
    links += static_cast<std::int64_t>(near.size());
    const auto hops = hops_from(graph, chip);
    for (std::size_t other = 0; other < graph.size(); ++other) {
      RC_ASSERT(distance(torus, static_cast<std::int64_t>(chip), static_cast<std::int64_t>(other)) == hops[other]);
      longest = std::max(longest, hops[other]);
      total += hops[other];
    }
  }
  const auto n = static_cast<double>(graph.size());
  RC_ASSERT(link_count(torus) == links / 2);
  RC_ASSERT(diameter(torus) == longest);
  RC_ASSERT(std::abs(mean_distance(torus) - (graph.size() < 2 ? 0.0 : static_cast<double>(total) / (n * (n - 1)))) <
            1e-9);
}

TEST(Torus, ACubeByHand) {
  // 4x4x4, all rings: 64 chips x 6 ports / 2 = 192 links; 3 x 4/2 = 6 hops across.
  // A ring of 4 has distances 0 1 2 1, mean 1 over all four, so 3 x 1 x 64 hops to the 63 others; each half has 2 x 16
  // links.
  const Torus cube = torus_of({4, 4, 4}, {true, true, true});
  EXPECT_EQ(link_count(cube), 192);
  EXPECT_EQ(diameter(cube), 6);
  EXPECT_DOUBLE_EQ(mean_distance(cube), 192.0 / 63.0);
  EXPECT_EQ(bisection_links(cube), 32);
  EXPECT_EQ(disjoint_paths(cube, 0, 1, false), 6);
  EXPECT_EQ(disjoint_paths(cube, 0, 1, true), 1);
  EXPECT_EQ(disjoint_paths(cube, 0, 2, true), 2);   // both ways round the ring
  EXPECT_EQ(disjoint_paths(cube, 0, 42, true), 6);  // 2,2,2: the far corner
}

TEST(Torus, OneChipHasNoLinks) {
  const Torus one = torus_of({1, 1, 1}, {true, false, true});
  EXPECT_EQ(link_count(one), 0);
  EXPECT_EQ(diameter(one), 0);
  EXPECT_EQ(mean_distance(one), 0.0);
  EXPECT_EQ(bisection_links(one), 0);
  EXPECT_EQ(disjoint_paths(one, 0, 0, false), 0);
}

TEST(TwistedTorus, FourFourEightByHand) {
  // Chips at 0..6 hops, counted on the lattice (4,0,4) (0,4,4) (0,0,8): 1 6 18 38 43 20 2, together 440 hops to 127
  // others. Untwisted: 2 + 2 + 4 = 8 hops across, 512/127 on average. Halving X cuts 2 x 32 links; halving Z also every
  // wraparound of X and Y: 32 + 32 + 32.
  const Torus twisted = torus_of({4, 4, 8}, {true, true, true}, true);
  EXPECT_EQ(diameter(twisted), 6);
  EXPECT_DOUBLE_EQ(mean_distance(twisted), 440.0 / 127.0);
  EXPECT_EQ(link_count(twisted), 384);
  EXPECT_EQ(bisection_links(twisted), 64);
  EXPECT_EQ(bisection_links(torus_of({4, 4, 8}, {true, true, true})), 32);
}

TEST(TwistedTorus, LooksTheSameFromEveryChipAndIsNoWider) {
  for (const Shape& shape :
       {Shape{4, 4, 8}, Shape{4, 8, 4}, Shape{8, 4, 4}, Shape{4, 8, 8}, Shape{8, 4, 8}, Shape{4, 8}}) {
    const Torus twisted = torus_of(shape, std::vector<bool>(shape.size(), true), true);
    const Graph graph = explicit_graph(twisted);
    std::vector<std::int64_t> wanted;
    for (std::size_t chip = 0; chip < graph.size(); ++chip) {
      const auto near = neighbours(twisted, static_cast<std::int64_t>(chip));
      EXPECT_EQ(near.size(), 2 * shape.size()) << shape_text(shape);
      EXPECT_EQ(std::set<std::size_t>(near.begin(), near.end()), graph[chip]) << shape_text(shape);
      auto hops = hops_from(graph, chip);
      if (chip % 17 == 0) EXPECT_EQ(distance(twisted, static_cast<std::int64_t>(chip), 5), hops[5]);
      std::sort(hops.begin(), hops.end());
      if (chip == 0) wanted = hops;
      EXPECT_EQ(hops, wanted) << shape_text(shape);
    }
    Torus straight = twisted;
    straight.twisted = false;
    EXPECT_EQ(diameter(twisted), wanted.back());
    EXPECT_LT(diameter(twisted), diameter(straight)) << shape_text(shape);
    EXPECT_LT(mean_distance(twisted), mean_distance(straight)) << shape_text(shape);
    EXPECT_GE(bisection_links(twisted), bisection_links(straight)) << shape_text(shape);
  }
}

/// The least links over all cuts by two planes perpendicular to an axis, half its length apart.
std::int64_t least_axis_cut(const Torus& torus) {
  const Graph graph = explicit_graph(torus);
  std::int64_t least = 0;
  for (std::size_t i = 0; i < torus.axes.size(); ++i) {
    const Axis& axis = torus.axes[i];
    for (std::int64_t start = 0; start < (axis.size < 2 ? 0 : axis.ring ? axis.size : 1); ++start) {
      std::int64_t links = 0;
      const auto inside = [&](std::size_t chip) {
        const std::int64_t at = chip_coordinates(torus, static_cast<std::int64_t>(chip))[i];
        return (at - start + axis.size) % axis.size < axis.size / 2;
      };
      for (std::size_t a = 0; a < graph.size(); ++a)
        for (std::size_t b : graph[a]) links += inside(a) && !inside(b);
      least = least == 0 ? links : std::min(least, links);
    }
  }
  return least;
}

RC_GTEST_PROP(Bisection, IsTheBestCutAcrossAnAxis, ()) {
  const Torus torus = any_torus();
  RC_ASSERT(bisection_links(torus) == least_axis_cut(torus));
}

TEST(Bisection, ATwistedOneIsTheBestCutAcrossAnAxis) {
  for (const Shape& shape : {Shape{4, 4, 8}, Shape{4, 8, 8}}) {
    const Torus torus = torus_of(shape, {true, true, true}, true);
    EXPECT_EQ(bisection_links(torus), least_axis_cut(torus));
  }
}

TEST(Bisection, OfEvenAxesNoHalvesHaveFewerLinksBetweenThem) {
  for (const Shape& shape : {Shape{2, 2, 2}, Shape{2, 4}, Shape{12}, Shape{2, 6}, Shape{2, 2}})
    for (unsigned closed = 0; closed < 1u << shape.size(); ++closed) {
      std::vector<bool> ring;
      for (std::size_t i = 0; i < shape.size(); ++i) ring.push_back(closed >> i & 1u);
      const Torus torus = torus_of(shape, ring);
      const Graph graph = explicit_graph(torus);
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (unsigned half = 0; half < 1u << graph.size(); ++half)
        if (2 * static_cast<std::size_t>(std::popcount(half)) == graph.size())
          least = std::min(least, links_out(graph, half));
      EXPECT_EQ(bisection_links(torus), least) << shape_text(shape) << " " << closed;
    }
}

RC_GTEST_PROP(DisjointPaths, AreAsManyAsTheSmallestCutHasLinks, ()) {
  const std::vector<Shape> shapes{{2}, {7}, {10}, {2, 3}, {3, 3}, {2, 5}, {1, 8}, {2, 4}, {2, 2, 2}, {3, 1, 3}};
  const Shape shape = *rc::gen::elementOf(shapes);
  std::vector<bool> ring;
  for (std::size_t i = 0; i < shape.size(); ++i) ring.push_back(*rc::gen::arbitrary<bool>());
  const Torus torus = torus_of(shape, ring);
  const Graph graph = explicit_graph(torus);
  const auto from = *rc::gen::inRange<std::size_t>(0, graph.size());
  const auto to = (from + *rc::gen::inRange<std::size_t>(1, graph.size())) % graph.size();
  const auto hops = hops_from(graph, to);
  std::int64_t any = std::numeric_limits<std::int64_t>::max(), shortest = any;
  for (unsigned cut = 0; cut < 1u << graph.size(); ++cut) {
    if (!(cut >> from & 1u) || (cut >> to & 1u)) continue;
    any = std::min(any, links_out(graph, cut));
    shortest = std::min(shortest, links_out(graph, cut, &hops));
  }
  const auto paths = [&](bool shortest_only) {
    return disjoint_paths(torus, static_cast<std::int64_t>(from), static_cast<std::int64_t>(to), shortest_only);
  };
  RC_ASSERT(paths(false) == any);
  RC_ASSERT(paths(true) == shortest);
}

TEST(WrapRule, AnAxisOfTheRightLengthClosesOnV5e) {
  EXPECT_EQ(rings("tpu-v5e", {8, 16}), (std::vector<bool>{false, true}));
  EXPECT_EQ(rings("tpu-v5e", {16, 8}), (std::vector<bool>{true, false}));
  EXPECT_EQ(rings("tpu-v5e", {16, 16}), (std::vector<bool>{true, true}));
  EXPECT_EQ(rings("tpu-v5e", {4, 4}), (std::vector<bool>{false, false}));
}

TEST(WrapRule, WholeCubesCloseOnV5p) {
  EXPECT_EQ(rings("tpu-v5p", {2, 2, 4}), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(rings("tpu-v5p", {4, 4, 4}), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(rings("tpu-v5p", {16, 20, 28}), (std::vector<bool>{true, true, true}));
}

TEST(Slice, ShapesThatDoNotExistAreRefusedWithTheNearest) {
  const auto refused = [](std::string_view id, const Shape& shape, bool twisted = false) {
    const auto torus = make_torus(chip(id), shape, twisted, "--on");
    return torus ? "accepted" : torus.error().where + ": " + torus.error().what + "; " + torus.error().hint;
  };
  EXPECT_EQ(refused("tpu-v5p", {5, 5, 5}),
            "--on: 5x5x5 is not made of whole 4x4x4 cubes; nearest shapes: 4x4x8, 4x4x4, 2x4x4");
  EXPECT_EQ(
      refused("tpu-v5e", {16, 20}),
      "--on: 16x20 is 320 chips, the largest pod of tpu-v5e is 16x16 = 256 chips; nearest shapes: 16x16, 8x16, 8x8");
  EXPECT_EQ(refused("tpu-v5e", {3, 5}), "--on: tpu-v5e has no slice of shape 3x5; nearest shapes: 4x4, 2x4, 2x2");
  EXPECT_EQ(refused("tpu-v5p", {4, 4}).substr(0, 46), "--on: tpu-v5p is a torus of 3 axes, 4x4 has 2;");
  EXPECT_NE(refused("tpu-v5p", {4, 4, 12}, true).find("tpu-v5p:4x4x12 cannot be twisted"), std::string::npos);
  EXPECT_NE(refused("tpu-v5p", {2, 2, 4}, true).find("cannot be twisted"), std::string::npos);
  EXPECT_NE(refused("tpu-v5e", {8, 16}, true).find("cannot be twisted"), std::string::npos);
  EXPECT_TRUE(make_torus(chip("tpu-v4"), {4, 8, 8}, true, "")->twisted);
}

TEST(Slice, ACountGetsTheMostCompactShape) {
  const auto shape = [](std::string_view id, std::int64_t chips) {
    return shape_text(*default_shape(chip(id), chips, "--on"));
  };
  EXPECT_EQ(shape("tpu-v5p", 1), "1x1x1");
  EXPECT_EQ(shape("tpu-v5p", 16), "2x2x4");
  EXPECT_EQ(shape("tpu-v5p", 512), "8x8x8");
  EXPECT_EQ(shape("tpu-v4", 1024), "8x8x16");  // not 4x16x16, which is as long but 18 hops across instead of 16
  EXPECT_EQ(shape("tpu-v5p", 8960), "16x20x28");
  EXPECT_EQ(shape("tpu-v5e", 128), "8x16");
  EXPECT_EQ(default_shape(chip("tpu-v5e"), 300, "--on").error().hint, "nearest shapes: 16x16, 8x16, 8x8");
  EXPECT_FALSE(default_shape(chip("tpu-v5p"), 65, "--on"));
}

}  // namespace
}  // namespace assay::hardware
