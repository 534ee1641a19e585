// Topology: how chips are connected. A torus has axes that are rings or lines; a switched network is a tree of levels.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "assay/base/units.h"
#include "assay/hardware/chip.h"

namespace assay::hardware {

struct Axis {
  std::string name;  ///< X, Y, Z
  std::int64_t size = 1;
  bool ring = false;  ///< closed by a wraparound link; otherwise a line
};

/// Axes of chips joined to their neighbours. Twisted: the wraparound of a short axis also shifts by half of each long
/// one.
struct Torus {
  std::vector<Axis> axes;
  bool twisted = false;

  std::int64_t chips() const;
};

/// Index of a chip from its coordinates; the last axis runs fastest.
std::int64_t chip_index(const Torus& torus, const std::vector<std::int64_t>& coordinates);
std::vector<std::int64_t> chip_coordinates(const Torus& torus, std::int64_t index);

/// The chips one link away, without repeats; up to two per axis.
std::vector<std::int64_t> neighbours(const Torus& torus, std::int64_t chip);

/// Pairs of neighbours in the whole torus: its two-way links.
std::int64_t link_count(const Torus& torus);

/// Hops between two chips on a shortest path.
std::int64_t distance(const Torus& torus, std::int64_t from, std::int64_t to);

/// The largest distance between any two chips, and the mean distance from a chip to all others.
std::int64_t diameter(const Torus& torus);
double mean_distance(const Torus& torus);

/// Links across the best cut perpendicular to an axis into two halves, or as close to halves as an odd axis allows;
/// if all axes are even and none is twisted, no other bisection has fewer links.
std::int64_t bisection_links(const Torus& torus);

/// Number of paths between two chips that share no link: the ports that one transfer can keep busy at once.
/// `shortest_only` admits only links that bring the data closer.
std::int64_t disjoint_paths(const Torus& torus, std::int64_t from, std::int64_t to, bool shortest_only);

/// The torus of a slice of the given shape by the generation's rules, or an error that names the nearest shapes that
/// exist.
Result<Torus> make_torus(const Chip& chip, const Shape& shape, bool twisted, std::string_view where);

/// The shape chosen for a count of chips without a shape: the most compact one that exists.
Result<Shape> default_shape(const Chip& chip, std::int64_t chips, std::string_view where);

/// "16x20x28"
std::string shape_text(const Shape& shape);

}  // namespace assay::hardware
