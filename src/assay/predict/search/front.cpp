#include "assay/predict/search/front.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace assay::search {

std::vector<std::size_t> pareto_front(std::span<const FrontPoint> points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return points[a].x != points[b].x ? points[a].x < points[b].x : points[a].y < points[b].y;
  });
  std::vector<std::size_t> front;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i : order)
    if (points[i].y < least) front.push_back(i), least = points[i].y;
  return front;
}

}  // namespace assay::search
