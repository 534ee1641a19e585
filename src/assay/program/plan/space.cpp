#include "assay/program/plan/space.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace assay::plan {
namespace {

template <class F>
void for_each_axis(program::AxisSet axes, F act) {
  for (program::AxisSet rest = axes; rest != 0; rest &= rest - 1) act(std::countr_zero(rest));
}

/// The axes of one list followed by the axes of another; both keep their order.
program::AxisList appended(program::AxisList list, program::AxisList more) {
  int reversed[program::max_mesh_axes], n = 0;
  for (program::AxisList rest = more; !rest.empty(); rest = rest.popped()) reversed[n++] = rest.last();
  while (n > 0) list = list.pushed(reversed[--n]);
  return list;
}

/// The list with two axes swapped.
program::AxisList exchanged(program::AxisList list, int a, int b) {
  if (list.empty()) return list;
  const int last = list.last();
  return exchanged(list.popped(), a, b).pushed(last == a ? b : last == b ? a : last);
}

}  // namespace

ShardingSpace::ShardingSpace(const program::Mesh& mesh, std::size_t rank, bool forward,
                             std::function<bool(const program::Sharding&)> contains)
    : mesh_(mesh), contains_(std::move(contains)), rank_(rank), forward_(forward) {
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (mesh.axes[i].size > 1) all_axes_ |= program::axis_bit(static_cast<int>(i));
  table_.assign(256, -1);
}

/// The slot of a sharding in the table, or the free slot where it would go.
std::size_t ShardingSpace::slot(const program::Sharding& sharding) const {
  std::uint64_t h = sharding.unreduced;
  for (std::size_t i = 0; i < rank_; ++i) h = mixed(h, sharding.dims[i].bits());
  std::size_t at = h & (table_.size() - 1);
  while (table_[at] >= 0 && !(nodes_[index(table_[at])].sharding == sharding)) at = (at + 1) & (table_.size() - 1);
  return at;
}

int ShardingSpace::id(const program::Sharding& sharding) {
  const std::size_t at = slot(sharding);
  if (table_[at] >= 0) return table_[at];
  const int fresh = size();
  Node node{sharding, {}, sharding.split_axes(), -1, false};
  for (std::size_t d = 0; d < rank_; ++d) node.ways[d] = program::shard_count(mesh_, sharding.dims[d].set());
  nodes_.push_back(node);
  edges_.emplace_back();
  table_[at] = fresh;
  if (nodes_.size() * 2 > table_.size()) {
    table_.assign(table_.size() * 4, -1);
    for (std::size_t i = 0; i < nodes_.size(); ++i) table_[slot(nodes_[i].sharding)] = static_cast<int>(i);
  }
  return fresh;
}

void ShardingSpace::add(int from, const program::Sharding& to, MoveKind kind, program::AxisSet axes, std::size_t dim) {
  if (contains_ && !contains_(to)) return;
  const int target = id(to);
  edges_[index(from)].push_back({target, kind, static_cast<std::uint8_t>(dim), axes});
}

/// Inner axes leave some dimensions together (forwards), or free axes join them (backwards).
void ShardingSpace::expand_gathers(int from, std::size_t dim, program::Sharding at, program::AxisSet moved) {
  if (dim == rank_) {
    if (moved) add(from, at, program::Collective::all_gather, moved);
    return;
  }
  expand_gathers(from, dim + 1, at, moved);
  if (forward_) {
    while (!at.dims[dim].empty()) {
      moved |= program::axis_bit(at.dims[dim].last());
      at.dims[dim] = at.dims[dim].popped();
      expand_gathers(from, dim + 1, at, moved);
    }
  } else {
    for_each_axis(all_axes_ & ~at.used_axes(), [&](int axis) {
      program::Sharding more = at;
      more.dims[dim] = more.dims[dim].pushed(axis);
      // The dimension may take further axes; the next one starts from what is left.
      expand_gathers(from, dim, more, moved | program::axis_bit(axis));
    });
  }
}

/// Partial sums over several axes are scattered along one dimension (forwards), or inner axes become partial sums.
void ShardingSpace::expand_scatters(int from, std::size_t dim, program::Sharding at, program::AxisSet moved) {
  if (forward_) {
    for_each_axis(at.unreduced, [&](int axis) {
      program::Sharding less = at;
      less.unreduced &= ~program::axis_bit(axis);
      less.dims[dim] = less.dims[dim].pushed(axis);
      add(from, less, program::Collective::reduce_scatter, moved | program::axis_bit(axis));
      expand_scatters(from, dim, less, moved | program::axis_bit(axis));
    });
  } else {
    while (!at.dims[dim].empty()) {
      const program::AxisSet bit = program::axis_bit(at.dims[dim].last());
      at.unreduced |= bit;
      moved |= bit;
      at.dims[dim] = at.dims[dim].popped();
      add(from, at, program::Collective::reduce_scatter, moved);
    }
  }
}

void ShardingSpace::expand(int from) {
  nodes_[index(from)].expanded = true;
  const program::Sharding at = sharding(from);
  for (std::size_t d = 0; d < rank_; ++d) {
    if (forward_) {
      for_each_axis(all_axes_ & ~at.used_axes(), [&](int axis) {
        program::Sharding s = at;
        s.dims[d] = s.dims[d].pushed(axis);
        add(from, s, std::nullopt, program::axis_bit(axis), d);
      });
    } else if (!at.dims[d].empty()) {
      program::Sharding s = at;
      s.dims[d] = s.dims[d].popped();
      add(from, s, std::nullopt, program::axis_bit(at.dims[d].last()), d);
    }
    // Inner axes move together to the inner end of another dimension; undone by the same kind of step.
    program::AxisList rest = at.dims[d], moved;
    program::AxisSet axes = 0;
    while (!rest.empty()) {
      moved = appended(program::AxisList{}.pushed(rest.last()), moved);
      axes |= program::axis_bit(rest.last());
      rest = rest.popped();
      for (std::size_t e = 0; e < rank_; ++e) {
        if (e == d) continue;
        program::Sharding s = at;
        s.dims[d] = rest;
        s.dims[e] = appended(s.dims[e], moved);
        add(from, s, program::Collective::all_to_all, axes);
      }
    }
    expand_scatters(from, d, at, 0);
  }
  expand_gathers(from, 0, at, 0);
  // All-reduce any subset of the partial sums (forwards), or of the free axes (backwards).
  const program::AxisSet pool = forward_ ? at.unreduced : all_axes_ & ~at.used_axes();
  for (program::AxisSet subset = pool; subset != 0; subset = (subset - 1) & pool) {
    program::Sharding s = at;
    s.unreduced ^= subset;
    add(from, s, program::Collective::all_reduce, subset);
  }
}

/// Reorder the axes of a dimension, or exchange axes of equal size. Any composition of exchanges is one permutation.
const std::vector<int>& ShardingSpace::permutations(int id) {
  if (nodes_[index(id)].group >= 0) return groups_[index(nodes_[index(id)].group)];
  struct Place {
    std::size_t dim;
    int axis;
  };
  const int group = static_cast<int>(groups_.size());
  std::vector<int> members{id};
  nodes_[index(id)].group = group;
  const auto add_member = [&](const program::Sharding& s) {
    const int found = this->id(s);
    if (nodes_[index(found)].group == group) return;
    nodes_[index(found)].group = group;
    members.push_back(found);
  };
  for (std::size_t i = 0; i < members.size(); ++i) {
    const program::Sharding at = sharding(members[i]);
    Place places[program::max_mesh_axes];
    std::size_t count = 0;
    for (std::size_t d = 0; d < rank_; ++d)
      for (program::AxisList rest = at.dims[d]; !rest.empty(); rest = rest.popped()) places[count++] = {d, rest.last()};
    for (std::size_t a = 0; a < count; ++a) {
      const Place& x = places[a];
      for (std::size_t b = a + 1; b < count; ++b) {
        const Place& y = places[b];
        if (x.dim != y.dim && mesh_.size(x.axis) != mesh_.size(y.axis)) continue;
        program::Sharding s = at;
        for (const std::size_t d : {x.dim, y.dim}) s.dims[d] = exchanged(at.dims[d], x.axis, y.axis);
        add_member(s);
      }
      for_each_axis(all_axes_ & ~at.used_axes(), [&](int axis) {
        if (mesh_.size(axis) != mesh_.size(x.axis)) return;
        program::Sharding s = at;
        s.dims[x.dim] = exchanged(s.dims[x.dim], x.axis, axis);
        add_member(s);
      });
    }
  }
  groups_.push_back(std::move(members));
  return groups_.back();
}

}  // namespace assay::plan
