// Pareto fronts: what is best in one respect for every value of another.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace assay::search {

/// A point; less is better in both coordinates.
struct FrontPoint {
  double x = 0, y = 0;
};

/// Indices of the points that no other point beats, in order of x: none is as low in both and lower in one. The first
/// of equal points stays.
std::vector<std::size_t> pareto_front(std::span<const FrontPoint> points);

}  // namespace assay::search
