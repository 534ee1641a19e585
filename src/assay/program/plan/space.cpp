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

}  // namespace

ShardingSpace::ShardingSpace(const program::Mesh& mesh, std::size_t rank, bool forward,
                             std::function<bool(const program::Sharding&)> contains)
    : mesh_(mesh), contains_(std::move(contains)), rank_(rank), forward_(forward) {
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (mesh.axes[i].size > 1) all_axes_ |= program::axis_bit(static_cast<int>(i));
}

/// The sharding as a number of its own: its partial sums, the axes of each dimension, and their order. No axis occurs
/// twice, so that three bits for each of eight axes are enough.
std::uint64_t ShardingSpace::key(const program::Sharding& sharding) const {
  static_assert(program::max_mesh_axes <= 8 && program::max_tensor_rank <= 8);
  std::uint64_t counts = 0, order = 0;
  for (std::size_t d = 0; d < rank_; ++d) {
    const program::AxisList list = sharding.dims[d];
    const int count = std::popcount(list.set());
    counts = counts << 4 | static_cast<unsigned>(count);
    order = order << 3 * count | list.bits() >> 8;
  }
  return order << 40 | counts << 8 | sharding.unreduced;
}

/// The slot of a sharding in the table, or the free slot where it would go.
std::size_t ShardingSpace::slot(std::uint64_t key) const {
  std::size_t at = mixed(key, 0) & (table_.size() - 1);
  while (table_[at].id >= 0 && table_[at].key != key) at = (at + 1) & (table_.size() - 1);
  return at;
}

int ShardingSpace::id(const program::Sharding& sharding) {
  const std::uint64_t wanted = key(sharding);
  Slot& free = table_[slot(wanted)];
  if (free.id >= 0) return free.id;
  const int fresh = size();
  free = {wanted, fresh};
  Node node{sharding, {}, sharding.split_axes(), -1, false};
  for (std::size_t d = 0; d < rank_; ++d) node.ways[d] = program::shard_count(mesh_, sharding.dims[d].set());
  nodes_.push_back(node);
  edges_.emplace_back();
  if (nodes_.size() * 2 > table_.size()) {
    const std::vector<Slot> before = std::exchange(table_, std::vector<Slot>(table_.size() * 4));
    for (const Slot& each : before)
      if (each.id >= 0) table_[slot(each.key)] = each;
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
  constexpr unsigned width =
      3;  // of an axis: members are numbers with one digit a place, so that most are met twice in
  constexpr unsigned digit = (1U << width) - 1;  // a small table and not in that of the whole space
  const program::Sharding first = sharding(id);
  const program::AxisSet usable = all_axes_ & ~first.unreduced;
  unsigned dim_of[program::max_mesh_axes], count = 0;
  std::uint32_t start = 0;
  for (unsigned d = 0; d < rank_; ++d)
    for (program::AxisList rest = first.dims[d]; !rest.empty(); rest = rest.popped()) {
      start |= static_cast<std::uint32_t>(rest.last()) << width * count;
      dim_of[count++] = d;
    }
  std::vector<std::uint32_t> codes{start};
  std::vector<bool> seen(std::size_t{1} << width * count);
  seen[start] = true;
  const auto add_code = [&](std::uint32_t code) {
    if (seen[code]) return;
    seen[code] = true;
    codes.push_back(code);
  };
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint32_t code = codes[i];
    const auto axis_at = [&](unsigned place) { return code >> width * place & digit; };
    program::AxisSet free = usable;
    for (unsigned a = 0; a < count; ++a) free &= ~program::axis_bit(static_cast<int>(axis_at(a)));
    for (unsigned a = 0; a < count; ++a) {
      const std::uint32_t x = axis_at(a);
      const std::int64_t size = mesh_.size(static_cast<int>(x));
      for (unsigned b = a + 1; b < count; ++b) {
        const std::uint32_t y = axis_at(b);
        if (dim_of[a] == dim_of[b] || size == mesh_.size(static_cast<int>(y)))
          add_code(code ^ (x ^ y) << width * a ^ (x ^ y) << width * b);
      }
      for_each_axis(free, [&](int axis) {
        if (mesh_.size(axis) == size) add_code(code ^ (x ^ static_cast<std::uint32_t>(axis)) << width * a);
      });
    }
  }
  const int group = static_cast<int>(groups_.size());
  std::vector<int> members;
  members.reserve(codes.size());
  for (const std::uint32_t code : codes) {
    program::Sharding s;
    s.unreduced = first.unreduced;
    for (unsigned place = count; place-- > 0;)
      s.dims[dim_of[place]] = s.dims[dim_of[place]].pushed(static_cast<int>(code >> width * place & digit));
    members.push_back(this->id(s));
    nodes_[index(members.back())].group = group;
  }
  groups_.push_back(std::move(members));
  return groups_.back();
}

}  // namespace assay::plan
