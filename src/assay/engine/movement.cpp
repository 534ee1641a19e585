#include "assay/engine/movement.h"

#include <algorithm>
#include <optional>

#include "assay/base/result.h"
#include "assay/engine/collectives.h"

namespace assay::engine {
namespace {

std::size_t index_of(int axis) { return static_cast<std::size_t>(axis); }

/// The extents of one tensor on every device.
std::vector<std::vector<Extent>> all_extents(const program::Mesh& mesh, const program::Tensor& tensor) {
  std::vector<std::vector<Extent>> out;
  for (std::int64_t d = 0; d < mesh.devices(); ++d) out.push_back(extents_on(mesh, tensor, coordinates(mesh, d)));
  return out;
}

/// Copies the overlap of two shards. Both are described by their extents in the global array.
void copy_common(const Array& from, const std::vector<Extent>& from_at, Array& to, const std::vector<Extent>& to_at) {
  Shape from_start, to_start, extent;
  for (std::size_t d = 0; d < from_at.size(); ++d) {
    const std::int64_t begin = std::max(from_at[d].start, to_at[d].start);
    const std::int64_t end = std::min(from_at[d].start + from_at[d].count, to_at[d].start + to_at[d].count);
    if (begin >= end) return;
    from_start.push_back(begin - from_at[d].start);
    to_start.push_back(begin - to_at[d].start);
    extent.push_back(end - begin);
  }
  copy_block(from, from_start, extent, to, to_start);
}

/// The axes that `longer` has beyond its prefix `shorter`.
std::vector<int> suffix(program::AxisList longer, program::AxisList shorter) {
  const std::vector<int> all = longer.axes(), head = shorter.axes();
  if (head.size() > all.size() || !std::equal(head.begin(), head.end(), all.begin()))
    throw InternalError("a step changes outer axes of a dimension");
  return {all.begin() + static_cast<std::ptrdiff_t>(head.size()), all.end()};
}

Shards empty_shards(const VirtualDevices& devices, const program::Tensor& tensor) {
  Shards out(devices.count());
  for (std::size_t d : devices.here()) out[d] = zeros(program::local_shape(devices.mesh(), tensor));
  return out;
}

/// A tensor's way from one sharding to another over some axes.
struct Move {
  const program::Tensor& before;
  const program::Tensor& after;
  program::AxisSet axes;
};

Shards run_all_gather(VirtualDevices& devices, const Move& move, const Shards& shards) {
  const program::Mesh& mesh = devices.mesh();
  const auto before = all_extents(mesh, move.before), after = all_extents(mesh, move.after);
  const std::vector<int> axes = axes_of(move.axes);
  const std::vector<Shards> blocks = gather_blocks(devices, shards, axes, move.before.dtype);
  Shards out = empty_shards(devices, move.after);
  for (std::size_t d : devices.here()) {
    const std::vector<std::size_t> group = devices.group(d, axes);
    for (std::size_t m = 0; m < group.size(); ++m) copy_common(blocks[d][m], before[group[m]], out[d], after[d]);
  }
  return out;
}

Shards run_reduce_scatter(VirtualDevices& devices, const Move& move, const Shards& shards) {
  Shards sums;
  for (std::size_t dim = 0; dim < move.before.dims.size(); ++dim)
    if (const auto axes = suffix(move.after.sharding.dims[dim], move.before.sharding.dims[dim]); !axes.empty())
      sums = reduce_scatter(devices, sums.empty() ? shards : sums, axes, dim, move.before.dtype);
  if (!program::is_padded(devices.mesh(), move.after)) return sums;
  Shards out = empty_shards(devices, move.after);
  for (std::size_t d : devices.here()) {
    const Shape zero(sums[d].shape.size(), 0);
    copy_block(sums[d], zero, sums[d].shape, out[d], zero);
  }
  return out;
}

Shards run_all_to_all(VirtualDevices& devices, const Move& move, const Shards& shards) {
  const program::Mesh& mesh = devices.mesh();
  const auto before = all_extents(mesh, move.before), after = all_extents(mesh, move.after);
  std::optional<std::size_t> split;
  for (std::size_t dim = 0; dim < move.before.dims.size(); ++dim)
    if (move.after.sharding.dims[dim].set() & ~move.before.sharding.dims[dim].set()) split = dim;
  if (!split) throw InternalError("an all-to-all moves no axis");
  const std::vector<int> axes = suffix(move.after.sharding.dims[*split], move.before.sharding.dims[*split]);
  program::AxisList moved;
  for (int axis : axes) moved = moved.pushed(axis);
  std::vector<Shards> parts(shards.size());
  for (std::size_t d : devices.here()) {
    for (std::size_t member : devices.group(d, axes)) {
      // Padding that this shard already has is sent too, but no more.
      const Extent at = extent_on(mesh, shards[d].shape[*split], moved, devices.at(member));
      parts[d].push_back(part(shards[d], *split, std::min(at.start, shards[d].shape[*split]), at.count));
    }
  }
  const std::vector<Shards> got = exchange_blocks(devices, std::move(parts), axes, move.before.dtype);
  Shards out = empty_shards(devices, move.after);
  for (std::size_t d : devices.here()) {
    const std::vector<std::size_t> group = devices.group(d, axes);
    for (std::size_t m = 0; m < group.size(); ++m) {
      std::vector<Extent> at = before[group[m]];
      at[*split] = after[d][*split];
      copy_common(got[d][m], at, out[d], after[d]);
    }
  }
  return out;
}

/// Where a device finds the block at some positions of the axes that split the tensor before a permute. Copies of a
/// block differ on the axes that do not split it; different devices read different copies if there are enough.
std::size_t holder(const program::Mesh& mesh, const program::Sharding& before, const program::Sharding& after,
                   const Coordinates& block, const Coordinates& asking) {
  const program::AxisSet split = before.split_axes();
  Coordinates at = asking;
  bool own = true;
  for (int axis : axes_of(split)) {
    own = own && asking[index_of(axis)] == block[index_of(axis)];
    at[index_of(axis)] = block[index_of(axis)];
  }
  if (own) return static_cast<std::size_t>(device_at(mesh, asking));
  const std::vector<int> leaving = axes_of(split & ~after.split_axes());
  const std::vector<int> entering = axes_of(after.split_axes() & ~split);
  std::int64_t rest = shard_index(mesh, leaving, asking);
  for (std::size_t i = entering.size(); i-- > 0; rest /= mesh.size(entering[i]))
    at[index_of(entering[i])] = rest % mesh.size(entering[i]);
  return static_cast<std::size_t>(device_at(mesh, at));
}

Shards run_permute(VirtualDevices& devices, const Move& move, const Shards& shards) {
  const program::Mesh& mesh = devices.mesh();
  const auto before = all_extents(mesh, move.before), after = all_extents(mesh, move.after);
  const std::vector<int> split = axes_of(move.before.sharding.split_axes());
  Shards out = empty_shards(devices, move.after);
  // Each device finds the blocks that overlap its own; with even division only one does.
  struct Block {
    std::size_t from, to;
    std::vector<Extent> at;
  };
  std::vector<Block> blocks;
  for (std::size_t d = 0; d < out.size(); ++d) {
    for (std::size_t member : devices.group(d, split)) {
      std::vector<Extent> common = before[member];
      bool overlaps = true;
      for (std::size_t i = 0; i < common.size(); ++i) {
        const std::int64_t begin = std::max(common[i].start, after[d][i].start);
        const std::int64_t end = std::min(common[i].start + common[i].count, after[d][i].start + after[d][i].count);
        overlaps = overlaps && begin < end;
        common[i] = {begin, end - begin, end - begin};
      }
      if (!overlaps) continue;
      const std::size_t from =
          holder(mesh, move.before.sharding, move.after.sharding, devices.at(member), devices.at(d));
      if (from == d && devices.is_here(d))
        copy_common(shards[d], before[d], out[d], after[d]);
      else if (from != d)
        blocks.push_back({from, d, std::move(common)});
    }
  }
  const auto shape_of = [](const std::vector<Extent>& at) {
    Shape shape;
    for (const Extent& e : at) shape.push_back(e.size);
    return shape;
  };
  for (const Block& block : blocks) {
    if (!devices.is_here(block.from)) continue;
    Array values = zeros(shape_of(block.at));
    copy_common(shards[block.from], before[block.from], values, block.at);
    devices.send(block.from, block.to, std::move(values), move.before.dtype);
  }
  for (const Block& block : blocks)
    if (devices.is_here(block.to))
      copy_common(devices.receive(block.to, block.from), block.at, out[block.to], after[block.to]);
  return out;
}

Shards run_collective(VirtualDevices& devices, const program::Step& step, const Move& move, const Shards& shards) {
  switch (step.collective) {
    case program::Collective::all_gather:
      return run_all_gather(devices, move, shards);
    case program::Collective::all_to_all:
      return run_all_to_all(devices, move, shards);
    case program::Collective::permute:
      return run_permute(devices, move, shards);
    case program::Collective::reduce_scatter:
      return run_reduce_scatter(devices, move, shards);
    case program::Collective::all_reduce:
      return all_reduce(devices, shards, axes_of(move.axes), move.before.dtype,
                        step.takes_largest() ? &take_larger : &add);
    default:
      throw InternalError("this collective does not reshard");
  }
}

}  // namespace

Shards sliced(const VirtualDevices& devices, const program::Tensor& before, const program::Tensor& after,
              const Shards& shards) {
  const auto from = all_extents(devices.mesh(), before), to = all_extents(devices.mesh(), after);
  Shards out = empty_shards(devices, after);
  for (std::size_t d : devices.here()) copy_common(shards[d], from[d], out[d], to[d]);
  return out;
}

RaggedMove run_ragged(VirtualDevices& devices, const program::Step& step, const Shards& shards,
                      const Shards& own_targets, const program::Tensor& after) {
  const std::vector<int> axes = axes_of(step.axes);
  const bool back = step.detail == 1;
  const std::vector<Bytes> earlier = devices.received();
  const Shards to = devices.gathered(own_targets);  // receivers know which rows come
  RaggedMove run;
  run.moved.shards = empty_shards(devices, after);
  const std::size_t first = devices.here().front(), targets = to[first].values.size();
  const std::size_t width = (back ? run.moved.shards : shards)[first].values.size() / std::max<std::size_t>(1, targets);
  // Rows of a sender for a receiver, by their places on both.
  struct Row {
    std::size_t sent, received;
  };
  const auto row_at = [&](auto& array, std::size_t row) {
    return array.values.begin() + static_cast<std::ptrdiff_t>(row * width);
  };
  double arriving = 0.0;  // rows from other devices, at the devices of this process
  const auto carry = [&](std::size_t from, std::size_t into, const std::vector<Row>& rows) {
    Array block;
    if (devices.is_here(from)) {
      block = zeros({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(width)});
      for (std::size_t i = 0; i < rows.size(); ++i)
        std::copy_n(row_at(shards[from], back ? rows[i].received : rows[i].sent), width, row_at(block, i));
      if (from != into) devices.send(from, into, std::move(block), after.dtype);
    }
    if (!devices.is_here(into)) return;
    if (from != into) {
      block = devices.receive(into, from);
      arriving += static_cast<double>(rows.size());
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::copy_n(row_at(block, i), width, row_at(run.moved.shards[into], back ? rows[i].sent : rows[i].received));
  };
  for (std::size_t d = 0; d < shards.size(); ++d) {
    const auto own = static_cast<double>(shard_index(devices.mesh(), axes, devices.at(d)));
    std::size_t place = 0;
    for (const std::size_t sender : devices.group(d, axes)) {
      std::vector<Row> rows;
      for (std::size_t i = 0; i < to[sender].values.size(); ++i)
        if (static_cast<double>(to[sender].values[i]) == own) rows.push_back({i, place++});
      if (!rows.empty()) back ? carry(d, sender, rows) : carry(sender, d, rows);
    }
  }
  const auto count = static_cast<double>(devices.here().size());
  for (const std::size_t d : devices.here()) {
    const Bytes got = devices.received()[d] - earlier[d];
    run.moved.received += got / count;
    run.moved.busiest = std::max(run.moved.busiest, got);
  }
  run.routed = storage(after.dtype, arriving * static_cast<double>(width)) / count;
  return run;
}

Moved run_movement(VirtualDevices& devices, const program::Step& step, const program::Tensor& before,
                   const program::Tensor& after, const Shards& shards, const program::Permutation* permutation) {
  const std::vector<Bytes> earlier = devices.received();
  Moved moved;
  moved.shards = step.op == program::Op::slice ? sliced(devices, before, after, shards)
                 : permutation ? permute(devices, shards, axes_of(step.axes).front(), permutation->pairs, before.dtype)
                               : run_collective(devices, step, {before, after, step.axes}, shards);
  if (!devices.idle()) throw InternalError("a message was not received");
  for (std::size_t d : devices.here()) {
    const Bytes got = devices.received()[d] - earlier[d];
    moved.received += got;
    moved.busiest = std::max(moved.busiest, got);
  }
  moved.received = moved.received / static_cast<double>(devices.here().size());
  return moved;
}

}  // namespace assay::engine
