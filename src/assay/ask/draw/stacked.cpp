#include "assay/ask/draw/stacked.h"

#include <algorithm>
#include <type_traits>

namespace assay::draw {
namespace {

SceneShape lowered(SceneShape shape, double by) {
  std::visit(
      [&](auto& s) {
        using Shape = std::decay_t<decltype(s)>;
        if constexpr (std::is_same_v<Shape, Polyline> || std::is_same_v<Shape, Polygon>) {
          for (PlotPoint& point : s.points) point.y += by;
        } else if constexpr (std::is_same_v<Shape, Rectangle>) {
          s.y += by;
        } else if constexpr (std::is_same_v<Shape, Marker>) {
          s.centre.y += by;
        } else {
          s.at.y += by;
        }
      },
      shape);
  return shape;
}

}  // namespace

Scene stacked(Scene upper, const Scene& lower) {
  for (const SceneItem& item : lower.items) upper.add(lowered(item.shape, upper.height), item.tooltip);
  upper.width = std::max(upper.width, lower.width);
  upper.height += lower.height;
  upper.title += "; " + lower.title;
  upper.description += " " + lower.description;
  return upper;
}

}  // namespace assay::draw
