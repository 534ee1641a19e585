#include "assay/sharding/explorer.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace assay {
namespace {

template <class F>
void for_each_axis(AxisSet axes, F act) {
  for (AxisSet rest = axes; rest != 0; rest &= rest - 1) act(std::countr_zero(rest));
}

AxisList appended(AxisList list, AxisList more) {
  for (int axis : more.axes()) list = list.pushed(axis);
  return list;
}

AxisList prepended(int axis, AxisList list) { return appended(AxisList{}.pushed(axis), list); }

}  // namespace

Explorer::Explorer(const Mesh& mesh, const Tensor& tensor, const Sharding& start, bool forward, const Prices& prices) : mesh_(mesh), tensor_(tensor), prices_(prices), forward_(forward) {
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (mesh.axes[i].size > 1) all_axes_ |= axis_bit(static_cast<int>(i));
  table_.assign(256, -1);
  nodes_.reserve(128);
  nodes_.push_back({start, 0.0, 0, -1, StepKind::slice, 0});
  done_.push_back(0);
  table_[hash(start) & (table_.size() - 1)] = 0;
  heap_.push_back({0.0, 0, 0});
}

std::uint64_t Explorer::hash(const Sharding& sharding) const {
  std::uint64_t h = sharding.unreduced;
  for (std::size_t i = 0; i < tensor_.dims.size(); ++i) h = (h ^ sharding.dims[i].bits()) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
  return h;
}

int Explorer::find(const Sharding& sharding) const {
  for (std::size_t slot = hash(sharding) & (table_.size() - 1); table_[slot] >= 0; slot = (slot + 1) & (table_.size() - 1))
    if (nodes_[static_cast<std::size_t>(table_[slot])].sharding == sharding) return table_[slot];
  return -1;
}

Bytes Explorer::local(const Sharding& sharding) const {
  double elements = 1.0;
  for (std::size_t i = 0; i < tensor_.dims.size(); ++i) {
    std::int64_t ways = 1;
    for_each_axis(sharding.dims[i].set(), [&](int axis) { ways *= mesh_.size(axis); });
    elements *= static_cast<double>((tensor_.dims[i].size + ways - 1) / ways);
  }
  return storage(tensor_.dtype, elements);
}

double Explorer::frontier() const { return heap_.empty() ? std::numeric_limits<double>::infinity() : heap_.front().cost; }

int Explorer::next(double limit) {
  const auto later = [](const Entry& a, const Entry& b) { return a.cost != b.cost ? a.cost > b.cost : a.steps > b.steps; };
  while (!heap_.empty()) {
    const Entry top = heap_.front();
    if (top.cost > limit) return -1;
    std::pop_heap(heap_.begin(), heap_.end(), later);
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
  const double price = kind == StepKind::slice ? 0.0 : prices_.collective(kind, axes, local(source));
  const Reached candidate{to, base.cost + price, base.steps + 1, from, kind, axes};
  const auto later = [](const Entry& a, const Entry& b) { return a.cost != b.cost ? a.cost > b.cost : a.steps > b.steps; };
  int id = find(to);
  if (id < 0) {
    id = static_cast<int>(nodes_.size());
    nodes_.push_back(candidate);
    done_.push_back(0);
    if (nodes_.size() * 2 > table_.size()) {
      table_.assign(table_.size() * 4, -1);
      for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) {
        std::size_t slot = hash(nodes_[i].sharding) & (table_.size() - 1);
        while (table_[slot] >= 0) slot = (slot + 1) & (table_.size() - 1);
        table_[slot] = static_cast<int>(i);
      }
    }
    std::size_t slot = hash(to) & (table_.size() - 1);
    while (table_[slot] >= 0) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = id;
  } else {
    Reached& known = nodes_[static_cast<std::size_t>(id)];
    if (settled(id) || known.cost < candidate.cost || (known.cost == candidate.cost && known.steps <= candidate.steps)) return;
    known = candidate;
  }
  heap_.push_back({candidate.cost, candidate.steps, id});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

/// Inner axes leave some dimensions together (forwards), or free axes join them (backwards).
void Explorer::expand_gathers(int id, std::size_t dim, Sharding at, AxisSet moved) {
  if (dim == tensor_.dims.size()) {
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
void Explorer::permute_all(int id) {
  const Sharding start = nodes_[static_cast<std::size_t>(id)].sharding;
  std::vector<Sharding> found{start};
  const auto add = [&](const Sharding& s) {
    if (std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
  };
  // Any composition of exchanges is one permutation of devices, so its closure costs one step.
  for (std::size_t i = 0; i < found.size() && found.size() < 512; ++i) {
    const Sharding at = found[i];
    struct Place {
      std::size_t dim, index;
      int axis;
    };
    std::vector<Place> places;
    for (std::size_t d = 0; d < tensor_.dims.size(); ++d) {
      const std::vector<int> axes = at.dims[d].axes();
      for (std::size_t k = 0; k < axes.size(); ++k) places.push_back({d, k, axes[k]});
    }
    const auto replaced = [](AxisList list, std::size_t index, int axis) {
      AxisList out;
      std::size_t k = 0;
      for (int a : list.axes()) out = out.pushed(k++ == index ? axis : a);
      return out;
    };
    for (std::size_t a = 0; a < places.size(); ++a) {
      for (std::size_t b = a + 1; b < places.size(); ++b) {
        const Place &x = places[a], &y = places[b];
        if (x.dim != y.dim && mesh_.size(x.axis) != mesh_.size(y.axis)) continue;
        Sharding s = at;
        s.dims[x.dim] = replaced(s.dims[x.dim], x.index, y.axis);
        s.dims[y.dim] = replaced(s.dims[y.dim], y.index, x.axis);
        add(s);
      }
      for_each_axis(all_axes_ & ~at.used_axes(), [&](int axis) {
        if (mesh_.size(axis) != mesh_.size(places[a].axis)) return;
        Sharding s = at;
        s.dims[places[a].dim] = replaced(s.dims[places[a].dim], places[a].index, axis);
        add(s);
      });
    }
  }
  for (std::size_t i = 1; i < found.size(); ++i) reach(id, found[i], StepKind::permute, start.split_axes() | found[i].split_axes());
}

void Explorer::expand(int id) {
  const Sharding at = nodes_[static_cast<std::size_t>(id)].sharding;
  const std::size_t rank = tensor_.dims.size();
  for (std::size_t d = 0; d < rank; ++d) {
    if (forward_) {
      for_each_axis(all_axes_ & ~at.used_axes(), [&](int axis) {
        if (local_size(mesh_, tensor_.dims[d].size, at.dims[d]) == 1) return;
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
      moved = prepended(rest.last(), moved);
      axes |= axis_bit(rest.last());
      rest = rest.popped();
      for (std::size_t e = 0; e < rank; ++e) {
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
