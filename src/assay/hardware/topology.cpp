#include "assay/hardware/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <numeric>

#include "assay/base/text.h"

namespace assay::hardware {
namespace {

std::int64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Shape sorted(Shape shape) {
  std::sort(shape.begin(), shape.end());
  return shape;
}

/// The neighbour one step of +1 or -1 along an axis, if there is a link.
std::optional<std::int64_t> step(const Torus& torus, std::int64_t chip, std::size_t axis, int direction) {
  std::vector<std::int64_t> at = chip_coordinates(torus, chip);
  const Axis& along = torus.axes[axis];
  if (along.size < 2) return std::nullopt;
  at[axis] += direction;
  if (at[axis] < 0 || at[axis] >= along.size) {
    if (!along.ring) return std::nullopt;
    at[axis] = (at[axis] + along.size) % along.size;
    if (torus.twisted) {
      // Leaving a short axis also moves half way along every axis twice as long: the lattices that make n x n x 2n
      // (face-centred) and n x 2n x 2n (body-centred) look the same along every axis.
      for (std::size_t other = 0; other < torus.axes.size(); ++other)
        if (torus.axes[other].size == 2 * along.size) at[other] = (at[other] + along.size) % torus.axes[other].size;
    }
  }
  return chip_index(torus, at);
}

std::vector<std::int64_t> distances_from(const Torus& torus, std::int64_t start) {
  std::vector<std::int64_t> hops(static_cast<std::size_t>(torus.chips()), -1);
  std::deque<std::int64_t> queue{start};
  hops[static_cast<std::size_t>(start)] = 0;
  while (!queue.empty()) {
    const std::int64_t chip = queue.front();
    queue.pop_front();
    for (std::int64_t next : neighbours(torus, chip)) {
      auto& there = hops[static_cast<std::size_t>(next)];
      if (there < 0) {
        there = hops[static_cast<std::size_t>(chip)] + 1;
        queue.push_back(next);
      }
    }
  }
  return hops;
}

/// All shapes with this many chips in a generation built from cubes, largest axis last.
std::vector<Shape> cube_shapes(std::int64_t chips, std::int64_t side) {
  std::vector<Shape> shapes;
  for (std::int64_t a = side; a * a * a <= chips; a += side)
    for (std::int64_t b = a; a * b * b <= chips; b += side)
      if (chips % (a * b) == 0 && (chips / (a * b)) % side == 0) shapes.push_back({a, b, chips / (a * b)});
  return shapes;
}

bool is_small_shape(const ScaleUp& up, const Shape& shape) {
  if (product(shape) == 1) return true;
  if (!up.shapes) return false;
  return std::any_of(up.shapes->value.begin(), up.shapes->value.end(),
                     [&](const Shape& s) { return sorted(s) == sorted(shape); });
}

/// Why a shape does not exist; empty if it does.
std::string shape_fault(const Chip& chip, const ScaleUp& up, const Shape& shape) {
  const Shape& pod = up.pod->value;
  if (product(shape) > product(pod))
    return fmt::format("{} is {} chips, the largest pod of {} is {} = {} chips", shape_text(shape), product(shape),
                       chip.id, shape_text(pod), product(pod));
  if (is_small_shape(up, shape)) return "";
  if (*up.wrap_rule == "cube") {
    const std::int64_t side = up.wrap_length->value;
    if (std::all_of(shape.begin(), shape.end(), [&](std::int64_t n) { return n % side == 0; })) return "";
    return fmt::format("{} is not made of whole {}x{}x{} cubes", shape_text(shape), side, side, side);
  }
  const Shape a = sorted(shape), b = sorted(pod);
  if (!up.shapes && std::equal(a.begin(), a.end(), b.begin(), [](auto x, auto y) { return x <= y; })) return "";
  return fmt::format("{} has no slice of shape {}", chip.id, shape_text(shape));
}

std::string shape_hint(const ScaleUp& up, std::int64_t chips) {
  std::vector<Shape> all;
  if (up.shapes) all = up.shapes->value;
  if (*up.wrap_rule == "cube") {
    const std::int64_t cube = up.wrap_length->value * up.wrap_length->value * up.wrap_length->value;
    for (std::int64_t n : {chips / cube * cube, (chips / cube + 1) * cube}) {
      if (n < cube || n > product(up.pod->value)) continue;
      const auto shapes = cube_shapes(n, up.wrap_length->value);
      if (!shapes.empty())
        all.push_back(*std::min_element(shapes.begin(), shapes.end(),
                                        [](const Shape& a, const Shape& b) { return a.back() < b.back(); }));
    }
  }
  all.push_back(up.pod->value);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::stable_sort(all.begin(), all.end(), [&](const Shape& a, const Shape& b) {
    return std::abs(product(a) - chips) < std::abs(product(b) - chips);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, all.size()); ++i)
    text += (i ? ", " : "nearest shapes: ") + shape_text(all[i]);
  return text;
}

}  // namespace

std::int64_t Torus::chips() const {
  std::int64_t n = 1;
  for (const Axis& axis : axes) n *= axis.size;
  return n;
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (std::int64_t n : shape) text += (text.empty() ? "" : "x") + std::to_string(n);
  return text;
}

std::int64_t chip_index(const Torus& torus, const std::vector<std::int64_t>& coordinates) {
  std::int64_t index = 0;
  for (std::size_t i = 0; i < torus.axes.size(); ++i) index = index * torus.axes[i].size + coordinates[i];
  return index;
}

std::vector<std::int64_t> chip_coordinates(const Torus& torus, std::int64_t index) {
  std::vector<std::int64_t> at(torus.axes.size());
  for (std::size_t i = torus.axes.size(); i-- > 0; index /= torus.axes[i].size) at[i] = index % torus.axes[i].size;
  return at;
}

std::vector<std::int64_t> neighbours(const Torus& torus, std::int64_t chip) {
  std::vector<std::int64_t> found;
  for (std::size_t axis = 0; axis < torus.axes.size(); ++axis)
    for (int direction : {-1, 1})
      if (const auto next = step(torus, chip, axis, direction);
          next && *next != chip && std::find(found.begin(), found.end(), *next) == found.end())
        found.push_back(*next);
  return found;
}

std::int64_t link_count(const Torus& torus) {
  std::int64_t links = 0;
  // The wraparound of two chips would duplicate the link between them; it is not counted, as in neighbours().
  for (const Axis& axis : torus.axes)
    links += torus.chips() / axis.size * (axis.ring && axis.size > 2 ? axis.size : axis.size - 1);
  return links;
}

std::int64_t distance(const Torus& torus, std::int64_t from, std::int64_t to) {
  if (torus.twisted) return distances_from(torus, from)[static_cast<std::size_t>(to)];
  const auto a = chip_coordinates(torus, from), b = chip_coordinates(torus, to);
  std::int64_t hops = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int64_t direct = std::abs(a[i] - b[i]);
    hops += torus.axes[i].ring ? std::min(direct, torus.axes[i].size - direct) : direct;
  }
  return hops;
}

std::int64_t diameter(const Torus& torus) {
  if (torus.twisted) {  // every chip of a twisted torus sees the same distances
    const auto hops = distances_from(torus, 0);
    return *std::max_element(hops.begin(), hops.end());
  }
  std::int64_t hops = 0;
  for (const Axis& axis : torus.axes) hops += axis.ring ? axis.size / 2 : axis.size - 1;
  return hops;
}

double mean_distance(const Torus& torus) {
  const std::int64_t n = torus.chips();
  if (n < 2) return 0.0;
  double total = 0.0;  // over ordered pairs, per chip
  if (torus.twisted) {
    for (std::int64_t hops : distances_from(torus, 0)) total += static_cast<double>(hops);
  } else {
    for (const Axis& axis : torus.axes) {
      const auto size = static_cast<double>(axis.size);
      const double ring = static_cast<double>(axis.size * axis.size / 4) / size;  // floor(n^2/4) over n destinations
      const double line = (size * size - 1.0) / (3.0 * size);
      total += static_cast<double>(n) * (axis.ring ? ring : line);
    }
  }
  return total / static_cast<double>(n - 1);
}

std::int64_t bisection_links(const Torus& torus) {
  std::int64_t best = 0;
  for (std::size_t i = 0; i < torus.axes.size(); ++i) {
    const Axis& axis = torus.axes[i];
    if (axis.size < 2) continue;
    std::int64_t links = 0;
    for (std::int64_t chip = 0; chip < (torus.twisted ? torus.chips() : 0); ++chip)
      for (std::int64_t other : neighbours(torus, chip))
        links += chip_coordinates(torus, chip)[i] < axis.size / 2 && chip_coordinates(torus, other)[i] >= axis.size / 2;
    if (!torus.twisted) links = torus.chips() / axis.size * (axis.ring && axis.size > 2 ? 2 : 1);
    if (best == 0 || links < best) best = links;
  }
  return best;
}

std::int64_t disjoint_paths(const Torus& torus, std::int64_t from, std::int64_t to, bool shortest_only) {
  if (from == to) return 0;
  // Unit-capacity maximum flow by breadth-first augmentation; at most six augmentations, one per port.
  const auto to_target = distances_from(torus, to);
  std::map<std::pair<std::int64_t, std::int64_t>, int> flow;
  const auto capacity = [&](std::int64_t a, std::int64_t b) {
    const bool forward =
        !shortest_only || to_target[static_cast<std::size_t>(b)] < to_target[static_cast<std::size_t>(a)];
    const auto used = flow.find({a, b});
    return (forward ? 1 : 0) - (used == flow.end() ? 0 : used->second);
  };
  std::int64_t paths = 0;
  while (true) {
    std::vector<std::int64_t> previous(static_cast<std::size_t>(torus.chips()), -1);
    std::deque<std::int64_t> queue{from};
    previous[static_cast<std::size_t>(from)] = from;
    while (!queue.empty() && previous[static_cast<std::size_t>(to)] < 0) {
      const std::int64_t chip = queue.front();
      queue.pop_front();
      for (std::int64_t next : neighbours(torus, chip))
        if (previous[static_cast<std::size_t>(next)] < 0 && capacity(chip, next) > 0) {
          previous[static_cast<std::size_t>(next)] = chip;
          queue.push_back(next);
        }
    }
    if (previous[static_cast<std::size_t>(to)] < 0) return paths;
    for (std::int64_t chip = to; chip != from; chip = previous[static_cast<std::size_t>(chip)]) {
      ++flow[{previous[static_cast<std::size_t>(chip)], chip}];
      --flow[{chip, previous[static_cast<std::size_t>(chip)]}];
    }
    ++paths;
  }
}

Result<Torus> make_torus(const Chip& chip, const Shape& shape, bool twisted, std::string_view where) {
  const ScaleUp& up = *chip.network.scale_up;
  const std::size_t rank = up.pod->value.size();
  if (shape.size() != rank)
    return fail(std::string(where),
                fmt::format("{} is a torus of {} axes, {} has {}", chip.id, rank, shape_text(shape), shape.size()),
                shape_hint(up, product(shape)));
  if (std::string what = shape_fault(chip, up, shape); !what.empty())
    return fail(std::string(where), std::move(what), shape_hint(up, product(shape)));
  const std::int64_t length = up.wrap_length->value;
  const bool cubes = std::all_of(shape.begin(), shape.end(), [&](std::int64_t n) { return n % length == 0; });
  Torus torus;
  for (std::size_t i = 0; i < rank; ++i) {
    const bool ring = *up.wrap_rule == "cube" ? cubes : shape[i] == length;
    torus.axes.push_back({std::string(1, static_cast<char>('X' + i)), shape[i], ring});
  }
  if (twisted) {
    const Shape s = sorted(shape);
    const bool fits = cubes && s.back() == 2 * s.front() && (s[1] == s.front() || s[1] == s.back());
    if (!up.twisted || !up.twisted->value || !fits)
      return fail(
          std::string(where), fmt::format("{}:{} cannot be twisted", chip.id, shape_text(shape)),
          "twisted slices are n x n x 2n or n x 2n x 2n of whole cubes, e.g. 4x4x8 or 4x8x8 on tpu-v4 and tpu-v5p");
    torus.twisted = true;
  }
  return torus;
}

Result<Shape> default_shape(const Chip& chip, std::int64_t chips, std::string_view where) {
  const ScaleUp& up = *chip.network.scale_up;
  if (chips == 1) return Shape(up.pod->value.size(), 1);
  std::vector<Shape> shapes;
  if (up.shapes)
    for (const Shape& shape : up.shapes->value)
      if (product(shape) == chips) shapes.push_back(shape);
  if (*up.wrap_rule == "cube" && chips <= product(up.pod->value))
    for (Shape& shape : cube_shapes(chips, up.wrap_length->value)) shapes.push_back(std::move(shape));
  if (product(up.pod->value) == chips) shapes.push_back(up.pod->value);
  if (shapes.empty())
    return fail(std::string(where), fmt::format("{} has no slice of {} chips", chip.id, chips), shape_hint(up, chips));
  // The longest axis counts first, then the next: 8x8x16 before 4x16x16.
  return *std::min_element(shapes.begin(), shapes.end(), [](const Shape& a, const Shape& b) {
    const Shape x = sorted(a), y = sorted(b);
    return std::lexicographical_compare(x.rbegin(), x.rend(), y.rbegin(), y.rend());
  });
}

}  // namespace assay::hardware
