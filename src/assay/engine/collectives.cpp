#include "assay/engine/collectives.h"

#include "assay/base/result.h"

namespace assay::engine {
namespace {

/// a modulo n, never negative.
std::size_t wrapped(std::int64_t a, std::int64_t n) { return static_cast<std::size_t>((a % n + n) % n); }

/// Sums over the group of one axis, or what else `combine` makes of two arrays, cut along `dim` into blocks; each
/// device keeps its own. A ring combines while passing blocks on.
Shards scatter_sums(VirtualDevices& devices, const Shards& shards, int axis, std::size_t dim, std::int64_t block,
                    Dtype dtype, Combine combine) {
  const std::int64_t n = devices.mesh().size(axis);
  const auto place = [&](std::size_t device) { return devices.at(device)[static_cast<std::size_t>(axis)]; };
  const auto own = [&](std::size_t device, std::int64_t index) {
    const Chunk at = chunk(shards[device].shape[dim], block, static_cast<std::int64_t>(wrapped(index, n)));
    return part(shards[device], dim, at.start, at.count);
  };
  Shards sums(shards.size());
  for (std::size_t d : devices.here()) sums[d] = own(d, place(d) - 1);
  for (std::int64_t step = 0; step + 1 < n; ++step) {
    for (std::size_t d : devices.here()) devices.send(d, devices.neighbour(d, axis, 1), std::move(sums[d]), dtype);
    for (std::size_t d : devices.here()) {
      sums[d] = devices.receive(d, devices.neighbour(d, axis, -1));
      combine(sums[d], own(d, place(d) - step - 2));
    }
  }
  return sums;
}

}  // namespace

std::vector<Shards> gather_blocks(VirtualDevices& devices, const Shards& shards, const std::vector<int>& axes,
                                  Dtype dtype) {
  std::vector<Shards> held(shards.size());
  for (std::size_t d : devices.here()) held[d].push_back(shards[d]);
  for (std::size_t k = axes.size(); k-- > 0;) {
    const int axis = axes[k];
    const std::int64_t n = devices.mesh().size(axis);
    if (n == 1) continue;
    // by_place[device][c]: the blocks that started at position c of this axis.
    std::vector<std::vector<Shards>> by_place(held.size(), std::vector<Shards>(static_cast<std::size_t>(n)));
    const auto place = [&](std::size_t device) { return devices.at(device)[static_cast<std::size_t>(axis)]; };
    for (std::size_t d : devices.here()) by_place[d][static_cast<std::size_t>(place(d))] = std::move(held[d]);
    for (std::int64_t step = 0; step + 1 < n; ++step) {
      for (std::size_t d : devices.here())
        for (const Array& block : by_place[d][wrapped(place(d) - step, n)])
          devices.send(d, devices.neighbour(d, axis, 1), block, dtype);
      for (std::size_t d : devices.here()) {
        const std::size_t count = by_place[d][static_cast<std::size_t>(place(d))].size();
        for (std::size_t i = 0; i < count; ++i)
          by_place[d][wrapped(place(d) - step - 1, n)].push_back(devices.receive(d, devices.neighbour(d, axis, -1)));
      }
    }
    for (std::size_t d : devices.here()) {
      held[d].clear();
      for (Shards& blocks : by_place[d])
        for (Array& block : blocks) held[d].push_back(std::move(block));
    }
  }
  return held;
}

std::vector<Shards> exchange_blocks(VirtualDevices& devices, std::vector<Shards> parts, const std::vector<int>& axes,
                                    Dtype dtype) {
  const std::size_t count = devices.count();
  std::vector<std::vector<std::size_t>> groups;
  std::vector<std::size_t> mine;
  for (std::size_t d = 0; d < count; ++d) {
    groups.push_back(devices.group(d, axes));
    mine.push_back(static_cast<std::size_t>(shard_index(devices.mesh(), axes, devices.at(d))));
  }
  const std::size_t n = groups.front().size();
  std::vector<Shards> got(count, Shards(n));
  for (std::size_t d : devices.here()) got[d][mine[d]] = std::move(parts[d][mine[d]]);
  for (std::size_t step = 1; step < n; ++step) {
    for (std::size_t d : devices.here()) {
      const std::size_t to = (mine[d] + step) % n;
      devices.send(d, groups[d][to], std::move(parts[d][to]), dtype);
    }
    for (std::size_t d : devices.here()) {
      const std::size_t from = (mine[d] + n - step) % n;
      got[d][from] = devices.receive(d, groups[d][from]);
    }
  }
  return got;
}

Shards all_gather(VirtualDevices& devices, const Shards& shards, const std::vector<int>& axes, std::size_t dim,
                  Dtype dtype) {
  Shards out(shards.size());
  const std::vector<Shards> blocks = gather_blocks(devices, shards, axes, dtype);
  for (std::size_t d : devices.here()) out[d] = joined(blocks[d], dim);
  return out;
}

Shards reduce_scatter(VirtualDevices& devices, const Shards& shards, const std::vector<int>& axes, std::size_t dim,
                      Dtype dtype, Combine combine) {
  if (axes.empty()) return shards;
  Shards sums;
  std::int64_t size = shards[devices.here().front()].shape[dim];
  for (std::size_t i = 0; i < axes.size(); ++i) {
    size = block_size(size, devices.mesh().size(axes[i]));
    sums = scatter_sums(devices, i == 0 ? shards : sums, axes[i], dim, size, dtype, combine);
  }
  return sums;
}

Shards all_reduce(VirtualDevices& devices, const Shards& shards, const std::vector<int>& axes, Dtype dtype,
                  Combine combine) {
  Shards flat = shards;
  for (Array& shard : flat) shard.shape = {static_cast<std::int64_t>(shard.values.size())};
  Shards out = all_gather(devices, reduce_scatter(devices, flat, axes, 0, dtype, combine), axes, 0, dtype);
  for (std::size_t d : devices.here()) out[d].shape = shards[d].shape;
  return out;
}

Shards permute(VirtualDevices& devices, const Shards& shards, int axis,
               const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, Dtype dtype) {
  Shards out;
  for (const Array& shard : shards) out.push_back(zeros(shard.shape));
  for (const auto& [from, to] : pairs) {
    for (std::size_t d : devices.here()) {
      if (devices.at(d)[static_cast<std::size_t>(axis)] != from) continue;
      const std::size_t target = devices.neighbour(d, axis, to - from);
      if (target == d)
        out[d] = shards[d];
      else
        devices.send(d, target, shards[d], dtype);
    }
  }
  for (const auto& [from, to] : pairs)
    for (std::size_t d : devices.here())
      if (from != to && devices.at(d)[static_cast<std::size_t>(axis)] == to)
        out[d] = devices.receive(d, devices.neighbour(d, axis, from - to));
  return out;
}

}  // namespace assay::engine
