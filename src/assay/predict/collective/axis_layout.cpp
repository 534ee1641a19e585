#include "assay/predict/collective/axis_layout.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace assay::collective {

PhysicalAxes physical_axes_of(const hardware::Cluster& cluster) {
  PhysicalAxes physical_axes;
  if (cluster.slices > 1) physical_axes.push_back({PhysicalAxis::slices, cluster.slices, false});
  for (std::size_t i = 0; i < cluster.torus->axes.size(); ++i)
    if (const hardware::Axis& axis = cluster.torus->axes[i]; axis.size > 1)
      physical_axes.push_back({i, axis.size, axis.ring});
  return physical_axes;
}

namespace {

/// The first physical axis of the same kind as this one.
std::size_t kind_of(const PhysicalAxes& physical_axes, const PhysicalAxis& physical) {
  const auto is_like = [&](const PhysicalAxis& other) { return physical.is_like(other); };
  return static_cast<std::size_t>(std::find_if(physical_axes.begin(), physical_axes.end(), is_like) -
                                  physical_axes.begin());
}

}  // namespace

std::vector<PhysicalAxes> physical_axis_orders(const PhysicalAxes& physical_axes) {
  // Permutations of kinds: equivalent axes are not exchanged.
  std::vector<std::size_t> kinds;
  for (const PhysicalAxis& physical : physical_axes) kinds.push_back(kind_of(physical_axes, physical));
  const std::vector<std::size_t> first = kinds;
  std::vector<PhysicalAxes> orders;
  do {
    PhysicalAxes order;
    std::vector<std::size_t> next_of_kind(kinds.size());
    for (const std::size_t kind : kinds) {
      std::size_t& at = next_of_kind[kind];
      while (first[at] != kind) ++at;
      order.push_back(physical_axes[at++]);
    }
    orders.push_back(order);
    std::next_permutation(kinds.begin(), kinds.end());  // wraps to the first permutation after the last
  } while (kinds != first);
  return orders;
}

std::optional<AxisParts> AxisFilling::lay(std::int64_t size) {
  AxisParts inner_first;
  while (size > 1) {
    if (room_ == 1) {
      if (next_ == 0) return std::nullopt;
      room_ = (*physical_axes_)[--next_].size;
      stride_ = 1;
    }
    const std::int64_t taken = std::gcd(size, room_);
    if (taken != size && taken != room_) return std::nullopt;
    if (taken > 1) inner_first.push_back({(*physical_axes_)[next_].axis, taken, stride_});
    size /= taken;
    room_ /= taken;
    stride_ *= taken;
  }
  std::reverse(inner_first.begin(), inner_first.end());
  return inner_first;
}

std::int64_t devices_within(const AxisPart& part, std::int64_t unit_chips) {
  return std::gcd(part.size * part.stride, unit_chips) / std::gcd(part.stride, unit_chips);
}

namespace {

/// A key that distinguishes the links of axes.
using Links = FixedList<std::uint32_t, program::max_mesh_axes + 4 * (program::max_mesh_axes + max_torus_axes)>;

struct Before {
  bool operator()(const Links& a, const Links& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }
};

/// Enumerates the orders of some axes, from the innermost outwards.
class Orders {
 public:
  Orders(std::span<const std::int64_t> sizes, const hardware::Cluster& cluster) : sizes_(sizes), cluster_(cluster) {
    for (std::size_t i = sizes.size(); i-- > 0;) (sizes[i] > 1 ? laid_ : idle_).push_back(static_cast<std::uint8_t>(i));
    parts_.resize(sizes.size());
  }

  std::vector<AxisLayout> all() {
    if (!cluster_.torus) {
      for (std::size_t i = 0; i < sizes_.size() * lower_levels().size(); ++i) within_.push_back(0);
      stretch(0, 1);
      return std::move(found_);
    }
    const PhysicalAxes physical_axes = physical_axes_of(cluster_);
    for (const PhysicalAxis& physical : physical_axes)
      kinds_[physical.axis] = static_cast<std::uint8_t>(1 + kind_of(physical_axes, physical));
    const std::vector<PhysicalAxes> orders = physical_axis_orders(physical_axes);
    for (torus_order_ = 1; torus_order_ <= orders.size(); ++torus_order_)
      fill(0, AxisFilling(orders[torus_order_ - 1u]));
    return std::move(found_);
  }

 private:
  /// The first `at` axes are placed innermost, over `stride` consecutive chips.
  void stretch(std::size_t at, std::int64_t stride) {
    if (at == laid_.size()) return take(within_);
    for (std::size_t i = at; i < laid_.size(); ++i) {
      std::rotate(laid_.begin() + at, laid_.begin() + i, laid_.begin() + i + 1);
      const std::size_t axis = laid_[at];
      for (std::size_t l = 0; l < lower_levels().size(); ++l) within(axis, l) = devices_at(axis, stride, l);
      // If two neighbours can swap without changing anything else, keep the one that comes first in the mesh outside.
      if (at == 0 || axis < laid_[at - 1] || !may_swap(laid_[at - 1], axis, stride))
        stretch(at + 1, stride * sizes_[axis]);
      std::rotate(laid_.begin() + at, laid_.begin() + at + 1, laid_.begin() + i + 1);
    }
  }

  /// All levels but the highest, which holds all devices of every axis.
  std::span<const hardware::Level> lower_levels() const {
    return std::span(cluster_.levels).first(cluster_.levels.empty() ? 0 : cluster_.levels.size() - 1);
  }
  std::uint32_t devices_at(std::size_t axis, std::int64_t stride, std::size_t level) const {
    return static_cast<std::uint32_t>(devices_within({0, sizes_[axis], stride}, cluster_.levels[level].chips));
  }
  std::uint32_t& within(std::size_t axis, std::size_t level) { return within_[axis * lower_levels().size() + level]; }

  /// Whether two neighbouring axes can swap; the outer one starts at `stride`.
  bool may_swap(std::size_t inner, std::size_t outer, std::int64_t stride) {
    const std::int64_t below = stride / sizes_[inner];
    for (std::size_t l = 0; l < lower_levels().size(); ++l)
      if (within(inner, l) != devices_at(inner, below * sizes_[outer], l) ||
          within(outer, l) != devices_at(outer, below, l))
        return false;
    return true;
  }

  void fill(std::size_t at, const AxisFilling& inside) {
    if (at == laid_.size()) return take(ground_links());
    for (std::size_t i = at; i < laid_.size(); ++i) {
      std::rotate(laid_.begin() + at, laid_.begin() + i, laid_.begin() + i + 1);
      AxisFilling filling = inside;
      if (const auto parts = filling.lay(sizes_[laid_[at]])) {
        parts_[laid_[at]] = *parts;
        fill(at + 1, filling);
      }
      std::rotate(laid_.begin() + at, laid_.begin() + at + 1, laid_.begin() + i + 1);
    }
  }

  /// Equivalent torus axes are numbered in the order in which mesh axes use them.
  Links ground_links() const {
    Links links;
    std::array<std::uint32_t, max_torus_axes + 1> number{}, numbers{};  // by axis, by kind
    for (const AxisParts& parts : parts_) {
      std::vector<AxisPart> sorted(parts.begin(), parts.end());  // the parts of one mesh axis are unordered
      std::sort(sorted.begin(), sorted.end(), [&](const AxisPart& a, const AxisPart& b) {
        return std::tuple(kinds_[a.axis], a.size, a.stride) < std::tuple(kinds_[b.axis], b.size, b.stride);
      });
      for (const AxisPart& part : sorted) {
        if (number[part.axis] == 0) number[part.axis] = ++numbers[kinds_[part.axis]];
        const std::int64_t apart = part.axis == PhysicalAxis::slices ? 1 : part.stride;
        for (const std::int64_t each :
             {std::int64_t{kinds_[part.axis]}, std::int64_t{number[part.axis]}, part.size, apart})
          links.push_back(static_cast<std::uint32_t>(each));
      }
      links.push_back(0);
    }
    return links;
  }

  void take(const Links& links) {
    if (!known_.insert(links).second) return;
    AxisLayout layout;
    layout.torus_order = torus_order_;
    std::size_t at = 0;
    for (std::size_t i = idle_.size(); i-- > 0;) layout.order[at++] = idle_[i];
    for (std::size_t i = laid_.size(); i-- > 0;) layout.order[at++] = laid_[i];
    found_.push_back(layout);
  }

  std::span<const std::int64_t> sizes_;
  const hardware::Cluster& cluster_;
  std::array<std::uint8_t, max_torus_axes + 1> kinds_{};  ///< kinds of torus axes, from 1 on
  std::uint16_t torus_order_ = 0;
  std::vector<std::uint8_t> laid_, idle_;  ///< axes of more than one device and others, innermost first
  std::vector<AxisParts> parts_;           ///< by axis, on a torus
  Links within_;                           ///< by axis and level: devices in one unit, on a switched network
  std::set<Links, Before> known_;
  std::vector<AxisLayout> found_;
};

}  // namespace

std::vector<AxisLayout> axis_layouts(std::span<const std::int64_t> sizes, const hardware::Cluster& cluster) {
  return Orders(sizes, cluster).all();
}

}  // namespace assay::collective
