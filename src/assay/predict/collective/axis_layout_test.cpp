#include "assay/predict/collective/axis_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "assay/predict/collective/placement.h"
#include "assay/testing/catalogue.h"

namespace assay::collective {
namespace {

using testing::cluster;

/// Mesh axes of these sizes, called by their numbers, in the order of a layout.
program::Mesh mesh_of(const std::vector<std::int64_t>& sizes, const AxisLayout& layout) {
  program::Mesh mesh;
  for (const std::size_t axis : layout.order)
    if (axis < sizes.size()) mesh.axes.push_back({std::to_string(axis), sizes[axis]});
  return mesh;
}

/// The time of every collective over every set of axes, by the numbers of the axes.
std::vector<double> times(const std::vector<std::int64_t>& sizes, const AxisLayout& layout,
                          const hardware::Cluster& on) {
  const program::Mesh mesh = mesh_of(sizes, layout);
  const auto placement = Placement::make(mesh, on, "test", layout.torus_order);
  std::vector<double> out;
  if (!placement) return out;
  for (std::size_t set = 1; set < std::size_t{1} << sizes.size(); ++set) {
    program::AxisSet axes = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (set >> i & 1u) axes |= program::axis_bit(*mesh.find(std::to_string(i)));
    for (const CollectiveLine& line : collective_lines(placement->group(axes))) {
      out.push_back(line.rate.value());
      out.push_back(line.floor.value());
    }
  }
  return out;
}

struct Question {
  const char* where;
  std::vector<std::int64_t> sizes;
};
const Question questions[] = {{"h100-sxm:64", {4, 2, 8}},          {"h100-sxm:1024", {2, 4, 16, 8}},
                              {"h100-sxm:96", {3, 2, 4, 4}},       {"gb200-nvl72:144", {2, 9, 8}},
                              {"tpu-v5e:8x8", {4, 2, 8}},          {"tpu-v5p:4x4x8", {2, 4, 8, 2}},
                              {"2*tpu-v5p:4x4x8", {2, 8, 4, 4}},   {"4*tpu-v5e:4x4", {4, 4, 4}},
                              {"tpu-v5p:4x8x8", {4, 4, 16, 1, 1}}, {"tpu-v5p:4x4x12", {3, 4, 16}}};

// One layout stands for each order of the axes on each order of the torus axes, and for whole axes wherever they lie.
TEST(AxisLayout, EveryOrderHasOneThatTakesTheSameTime) {
  for (const auto& [where, sizes] : questions) {
    const hardware::Cluster on = cluster(where);
    std::vector<std::vector<double>> known;
    for (const AxisLayout& layout : axis_layouts(sizes, on)) {
      known.push_back(times(sizes, layout, on));
      EXPECT_FALSE(known.back().empty()) << where;
    }
    EXPECT_GT(known.size(), 1u) << where;
    const std::size_t torus_orders = on.torus ? 1 + physical_axis_orders(physical_axes_of(on)).size() : 1;
    AxisLayout any;
    int possible = 0;
    do
      for (any.torus_order = 0; any.torus_order < torus_orders; ++any.torus_order) {
        const auto wanted = times(sizes, any, on);
        if (wanted.empty()) continue;
        ++possible;
        EXPECT_NE(std::find(known.begin(), known.end(), wanted), known.end())
            << where << " " << program::mesh_text(mesh_of(sizes, any)) << " torus_order " << any.torus_order;
      }
    while (std::next_permutation(any.order.begin(), any.order.begin() + sizes.size()));
    EXPECT_GT(possible, static_cast<int>(known.size())) << where;
  }
}

TEST(AxisLayout, OrdersWithinAUnitAreTheSame) {
  EXPECT_EQ(axis_layouts(std::vector<std::int64_t>{2, 2, 2}, cluster("h100-sxm:8")).size(), 1u);
  // Four of eight in a node, or all of them: where the axis of 2 lies decides.
  EXPECT_EQ(axis_layouts(std::vector<std::int64_t>{2, 8}, cluster("h100-sxm:16")).size(), 2u);
  EXPECT_EQ(axis_layouts(std::vector<std::int64_t>{1, 16, 1}, cluster("h100-sxm:16")).size(), 1u);
  // Axes of a cube cannot be told apart.
  EXPECT_EQ(axis_layouts(std::vector<std::int64_t>{4, 4, 4}, cluster("tpu-v5p:4x4x4")).size(), 1u);
}

TEST(AxisLayout, TheOrderAsItIsComesFirst) {
  const auto layouts = axis_layouts(std::vector<std::int64_t>{4, 2, 8}, cluster("h100-sxm:64"));
  EXPECT_EQ(layouts.front(), AxisLayout{});
}

// 27 chips are 3 of each axis, which would leave holes between them.
TEST(AxisLayout, NoneWhereSizesDoNotFit) {
  EXPECT_FALSE(axis_layouts(std::vector<std::int64_t>{12, 144}, cluster("tpu-v5p:12x12x12")).empty());
  EXPECT_TRUE(axis_layouts(std::vector<std::int64_t>{27, 64}, cluster("tpu-v5p:12x12x12")).empty());
}

// Bounds of a search: no group that a layout gives is faster than the densest groups of as many devices.
TEST(AxisLayout, DensestGroupsAreNoSlower) {
  for (const auto& [where, sizes] : questions) {
    const hardware::Cluster on = cluster(where);
    for (std::size_t set = 1; set < std::size_t{1} << sizes.size(); ++set) {
      std::int64_t devices = 1;
      for (std::size_t i = 0; i < sizes.size(); ++i)
        if (set >> i & 1u) devices *= sizes[i];
      if (devices == 1) continue;
      const auto densest = densest_groups(on, devices, "test");
      ASSERT_TRUE(densest && !densest->empty());
      for (const AxisLayout& layout : axis_layouts(sizes, on)) {
        const program::Mesh mesh = mesh_of(sizes, layout);
        program::AxisSet axes = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i)
          if (set >> i & 1u) axes |= program::axis_bit(*mesh.find(std::to_string(i)));
        const CollectiveGroup group = Placement::make(mesh, on, "test", layout.torus_order)->group(axes);
        for (const program::Collective kind :
             {program::Collective::all_gather, program::Collective::reduce_scatter, program::Collective::all_reduce,
              program::Collective::all_to_all, program::Collective::permute}) {
          const CollectiveLine line = collective_line(kind, group);
          double rate = HUGE_VAL, floor = HUGE_VAL;
          for (const CollectiveGroup& dense : *densest) {
            const CollectiveLine other = collective_line(kind, dense);
            rate = std::min(rate, other.rate.value());
            floor = std::min(floor, other.floor.value());
          }
          EXPECT_LE(rate, line.rate.value()) << where << " " << program::mesh_text(mesh) << " " << name(kind);
          EXPECT_LE(floor, line.floor.value()) << where << " " << program::mesh_text(mesh) << " " << name(kind);
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::collective
