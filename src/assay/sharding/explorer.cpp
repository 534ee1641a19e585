#include "assay/sharding/explorer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace assay {
namespace {

template <class F>
void for_each_axis(AxisSet axes, F act) {
  for (AxisSet rest = axes; rest != 0; rest &= rest - 1) act(std::countr_zero(rest));
}

/// Axes of a list after those of another; both stay in order.
AxisList appended(AxisList list, AxisList more) {
  int reversed[max_mesh_axes], n = 0;
  for (AxisList rest = more; !rest.empty(); rest = rest.popped()) reversed[n++] = rest.last();
  while (n > 0) list = list.pushed(reversed[--n]);
  return list;
}

/// The list with the axis at a distance from the inner end replaced.
AxisList replaced(AxisList list, int from_inner, int axis) {
  int inner[max_mesh_axes];
  for (int i = 0; i < from_inner; ++i) inner[i] = list.last(), list = list.popped();
  list = list.popped().pushed(axis);
  for (int i = from_inner; i-- > 0;) list = list.pushed(inner[i]);
  return list;
}

bool later(double cost_a, int steps_a, double cost_b, int steps_b) { return cost_a != cost_b ? cost_a > cost_b : steps_a > steps_b; }

}  // namespace

Explorer::Explorer(const Mesh& mesh, const Tensor& tensor, const Sharding& start, bool forward, const Prices& prices)
    : mesh_(mesh), tensor_(tensor), prices_(prices), forward_(forward), rank_(tensor.dims.size()), ways_(std::size_t{1} << mesh.axes.size(), 1.0), element_(storage(tensor.dtype, 1.0).value()) {
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (mesh.axes[i].size > 1) all_axes_ |= axis_bit(static_cast<int>(i));
  for (AxisSet axes = 1; axes < ways_.size(); ++axes) {
    const int first = std::countr_zero(axes);
    ways_[axes] = ways_[axes & (axes - 1)] * static_cast<double>(mesh.size(first));
  }
  for (std::size_t i = 0; i < rank_; ++i) sizes_[i] = static_cast<double>(tensor.dims[i].size);
  table_.assign(256, -1);
  nodes_.reserve(128);
  done_.reserve(128);
  class_done_.reserve(128);
  heap_.reserve(256);
  nodes_.push_back({start, 0.0, 0, -1, StepKind::slice, 0});
  done_.push_back(0);
  class_done_.push_back(0);
  table_[slot(start)] = 0;
  heap_.push_back({0.0, 0, 0});
}

/// Where a sharding stands in the table, or the free place where it would.
std::size_t Explorer::slot(const Sharding& sharding) const {
  std::uint64_t h = sharding.unreduced;
  for (std::size_t i = 0; i < rank_; ++i) h = (h ^ sharding.dims[i].bits()) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
  std::size_t at = h & (table_.size() - 1);
  while (table_[at] >= 0 && !(nodes_[static_cast<std::size_t>(table_[at])].sharding == sharding)) at = (at + 1) & (table_.size() - 1);
  return at;
}

int Explorer::find(const Sharding& sharding) const { return table_[slot(sharding)]; }

Bytes Explorer::local(const Sharding& sharding) const {
  double elements = 1.0;
  for (std::size_t i = 0; i < rank_; ++i) elements *= std::ceil(sizes_[i] / ways_[sharding.dims[i].set()]);
  return Bytes(elements * element_);
}

void Explorer::push(double cost, int steps, int id) {
  heap_.push_back({cost, steps, id});
  std::push_heap(heap_.begin(), heap_.end(), [](const Entry& a, const Entry& b) { return later(a.cost, a.steps, b.cost, b.steps); });
}

double Explorer::frontier() const { return heap_.empty() ? std::numeric_limits<double>::infinity() : heap_.front().cost; }

int Explorer::next(double limit) {
  limit_ = limit;
  while (!heap_.empty()) {
    const Entry top = heap_.front();
    if (top.cost > limit) return -1;
    std::pop_heap(heap_.begin(), heap_.end(), [](const Entry& a, const Entry& b) { return later(a.cost, a.steps, b.cost, b.steps); });
    heap_.pop_back();
    if (settled(top.id)) continue;
    done_[static_cast<std::size_t>(top.id)] = 1;
    expand(top.id);
    return top.id;
  }
  return -1;
}

/// Records a neighbour. Forwards the step runs from `from` to `to`; backwards from `to` to `from`.
void Explorer::reach(int from, const Sharding& to, StepKind kind, AxisSet axes) {
  const Reached& base = nodes_[static_cast<std::size_t>(from)];
  const Sharding& source = forward_ ? base.sharding : to;
  const double cost = base.cost + (kind == StepKind::slice ? 0.0 : prices_(kind, axes, local(source)));
  if (cost > limit_) return;
  const Reached candidate{to, cost, base.steps + 1, from, kind, axes};
  std::size_t at = slot(to);
  int id = table_[at];
  if (id < 0) {
    id = static_cast<int>(nodes_.size());
    nodes_.push_back(candidate);
    done_.push_back(0);
    class_done_.push_back(0);
    table_[at] = id;
    if (nodes_.size() * 2 > table_.size()) {
      table_.assign(table_.size() * 4, -1);
      for (std::size_t i = 0; i < nodes_.size(); ++i) table_[slot(nodes_[i].sharding)] = static_cast<int>(i);
    }
  } else {
    Reached& known = nodes_[static_cast<std::size_t>(id)];
    if (settled(id) || !later(known.cost, known.steps, cost, candidate.steps)) return;
    known = candidate;
  }
  push(cost, candidate.steps, id);
}

/// Inner axes leave some dimensions together (forwards), or free axes join them (backwards).
void Explorer::expand_gathers(int id, std::size_t dim, Sharding at, AxisSet moved) {
  if (dim == rank_) {
    if (moved) reach(id, at, StepKind::all_gather, moved);
    return;
  }
  expand_gathers(id, dim + 1, at, moved);
  if (forward_) {
    while (!at.dims[dim].empty()) {
      moved |= axis_bit(at.dims[dim].last());
      at.dims[dim] = at.dims[dim].popped();
      expand_gathers(id, dim + 1, at, moved);
    }
  } else {
    for_each_axis(all_axes_ & ~at.used_axes(), [&](int axis) {
      Sharding more = at;
      more.dims[dim] = more.dims[dim].pushed(axis);
      // The same dimension may take further axes; the next one starts from what is left.
      expand_gathers(id, dim, more, moved | axis_bit(axis));
    });
  }
}

/// Partial sums over several axes are scattered along one dimension (forwards), or inner axes become partial sums.
void Explorer::expand_scatters(int id, std::size_t dim, Sharding at, AxisSet moved) {
  if (forward_) {
    for_each_axis(at.unreduced, [&](int axis) {
      Sharding less = at;
      less.unreduced &= ~axis_bit(axis);
      less.dims[dim] = less.dims[dim].pushed(axis);
      reach(id, less, StepKind::reduce_scatter, moved | axis_bit(axis));
      expand_scatters(id, dim, less, moved | axis_bit(axis));
    });
  } else {
    while (!at.dims[dim].empty()) {
      const AxisSet bit = axis_bit(at.dims[dim].last());
      at.unreduced |= bit, moved |= bit;
      at.dims[dim] = at.dims[dim].popped();
      reach(id, at, StepKind::reduce_scatter, moved);
    }
  }
}

/// Device permutations that keep every local shape: reorder the axes of a dimension, or exchange axes of equal size.
/// Any composition of exchanges is one permutation of devices, so its closure costs one step.
void Explorer::permute_all(int id) {
  // All shardings of one set of local shapes reach each other, and the first one settled is the cheapest to start from.
  if (class_done_[static_cast<std::size_t>(id)]) return;
  const Reached& base = nodes_[static_cast<std::size_t>(id)];
  const Sharding start = base.sharding;
  const AxisSet used = start.split_axes();
  if (used == 0) return;
  // A permutation keeps all local sizes, so its price is the same in both directions.
  if (base.cost + prices_(StepKind::permute, used, local(start)) > limit_) return;
  permuted_.assign(1, start);
  const auto add = [&](const Sharding& s) {
    if (std::find(permuted_.begin(), permuted_.end(), s) == permuted_.end()) permuted_.push_back(s);
  };
  struct Place {
    std::size_t dim;
    int from_inner, axis;
  };
  for (std::size_t i = 0; i < permuted_.size(); ++i) {
    const Sharding at = permuted_[i];
    Place places[max_mesh_axes];
    std::size_t count = 0;
    for (std::size_t d = 0; d < rank_; ++d) {
      int depth = 0;
      for (AxisList rest = at.dims[d]; !rest.empty(); rest = rest.popped()) places[count++] = {d, depth++, rest.last()};
    }
    const AxisSet free = all_axes_ & ~at.used_axes();
    for (std::size_t a = 0; a < count; ++a) {
      const Place& x = places[a];
      for (std::size_t b = a + 1; b < count; ++b) {
        const Place& y = places[b];
        if (x.dim != y.dim && mesh_.size(x.axis) != mesh_.size(y.axis)) continue;
        Sharding s = at;
        s.dims[x.dim] = replaced(s.dims[x.dim], x.from_inner, y.axis);
        s.dims[y.dim] = replaced(s.dims[y.dim], y.from_inner, x.axis);
        add(s);
      }
      for_each_axis(free, [&](int axis) {
        if (mesh_.size(axis) != mesh_.size(x.axis)) return;
        Sharding s = at;
        s.dims[x.dim] = replaced(s.dims[x.dim], x.from_inner, axis);
        add(s);
      });
    }
  }
  class_done_[static_cast<std::size_t>(id)] = 1;
  for (std::size_t i = 1; i < permuted_.size(); ++i) {
    reach(id, permuted_[i], StepKind::permute, used | permuted_[i].split_axes());
    if (const int member = find(permuted_[i]); member >= 0) class_done_[static_cast<std::size_t>(member)] = 1;
  }
}

void Explorer::expand(int id) {
  const Sharding at = nodes_[static_cast<std::size_t>(id)].sharding;
  for (std::size_t d = 0; d < rank_; ++d) {
    if (forward_) {
      for_each_axis(all_axes_ & ~at.used_axes(), [&](int axis) {
        if (sizes_[d] <= ways_[at.dims[d].set()]) return;  // one element left: nothing to slice
        Sharding s = at;
        s.dims[d] = s.dims[d].pushed(axis);
        reach(id, s, StepKind::slice, axis_bit(axis));
      });
    } else if (!at.dims[d].empty()) {
      Sharding s = at;
      s.dims[d] = s.dims[d].popped();
      reach(id, s, StepKind::slice, axis_bit(at.dims[d].last()));
    }
    // Inner axes move together to the inner end of another dimension; undone by the same kind of step.
    AxisList rest = at.dims[d], moved;
    AxisSet axes = 0;
    while (!rest.empty()) {
      moved = appended(AxisList{}.pushed(rest.last()), moved);
      axes |= axis_bit(rest.last());
      rest = rest.popped();
      for (std::size_t e = 0; e < rank_; ++e) {
        if (e == d) continue;
        Sharding s = at;
        s.dims[d] = rest;
        s.dims[e] = appended(s.dims[e], moved);
        reach(id, s, StepKind::all_to_all, axes);
      }
    }
    expand_scatters(id, d, at, 0);
  }
  expand_gathers(id, 0, at, 0);
  permute_all(id);
  // All-reduce any subset of the partial sums (forwards), or of the free axes (backwards).
  const AxisSet pool = forward_ ? at.unreduced : all_axes_ & ~at.used_axes();
  for (AxisSet subset = pool; subset != 0; subset = (subset - 1) & pool) {
    Sharding s = at;
    s.unreduced ^= subset;
    reach(id, s, StepKind::all_reduce, subset);
  }
}

}  // namespace assay
