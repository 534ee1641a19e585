#include "assay/ask/draw/stacked.h"

#include <algorithm>

#include "assay/ask/draw/sketch.h"

namespace assay::draw {

Scene stacked(Scene upper, const Scene& lower) {
  for (const SceneItem& item : lower.items) upper.add(moved(item.shape, 0.0, upper.height), item.tooltip);
  upper.width = std::max(upper.width, lower.width);
  upper.height += lower.height;
  upper.title += "; " + lower.title;
  upper.description += " " + lower.description;
  return upper;
}

}  // namespace assay::draw
