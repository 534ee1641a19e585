#include "assay/engine/collectives.h"

#include <span>

#include "assay/base/result.h"

namespace assay::engine {
namespace {

/// a modulo n, never negative.
std::size_t wrapped(std::int64_t a, std::int64_t n) { return static_cast<std::size_t>((a % n + n) % n); }

template <class T>
Array<T> joined_all(const Shards<T>& blocks, std::size_t dim) {
  return joined(std::span<const Array<T>>(blocks), dim);
}

}  // namespace

template <class T>
std::vector<Shards<T>> gather_blocks(VirtualDevices<T>& devices, const Shards<T>& shards, const std::vector<int>& axes,
                                     Dtype dtype) {
  std::vector<Shards<T>> held(shards.size());
  for (std::size_t d : devices.here()) held[d].push_back(shards[d]);
  for (std::size_t k = axes.size(); k-- > 0;) {
    const int axis = axes[k];
    const std::int64_t n = devices.mesh().size(axis);
    if (n == 1) continue;
    // by_place[device][c]: the blocks that started at position c of this axis.
    std::vector<std::vector<Shards<T>>> by_place(held.size(), std::vector<Shards<T>>(static_cast<std::size_t>(n)));
    const auto place = [&](std::size_t device) { return devices.at(device)[static_cast<std::size_t>(axis)]; };
    for (std::size_t d : devices.here()) by_place[d][static_cast<std::size_t>(place(d))] = std::move(held[d]);
    for (std::int64_t step = 0; step + 1 < n; ++step) {
      for (std::size_t d : devices.here())
        for (const Array<T>& block : by_place[d][wrapped(place(d) - step, n)])
          devices.send(d, devices.neighbour(d, axis, 1), block, dtype);
      for (std::size_t d : devices.here()) {
        const std::size_t count = by_place[d][static_cast<std::size_t>(place(d))].size();
        for (std::size_t i = 0; i < count; ++i)
          by_place[d][wrapped(place(d) - step - 1, n)].push_back(devices.receive(d, devices.neighbour(d, axis, -1)));
      }
    }
    for (std::size_t d : devices.here()) {
      held[d].clear();
      for (Shards<T>& blocks : by_place[d])
        for (Array<T>& block : blocks) held[d].push_back(std::move(block));
    }
  }
  return held;
}

template <class T>
Shards<T> scatter_sums(VirtualDevices<T>& devices, const Shards<T>& shards, int axis, std::size_t dim,
                       std::int64_t block, Dtype dtype) {
  const std::int64_t n = devices.mesh().size(axis);
  const auto place = [&](std::size_t device) { return devices.at(device)[static_cast<std::size_t>(axis)]; };
  const auto own = [&](std::size_t device, std::int64_t index) {
    const Chunk at = chunk(shards[device].shape[dim], block, static_cast<std::int64_t>(wrapped(index, n)));
    return part(shards[device], dim, at.start, at.count);
  };
  Shards<T> sums(shards.size());
  for (std::size_t d : devices.here()) sums[d] = own(d, place(d) - 1);
  for (std::int64_t step = 0; step + 1 < n; ++step) {
    for (std::size_t d : devices.here()) devices.send(d, devices.neighbour(d, axis, 1), std::move(sums[d]), dtype);
    for (std::size_t d : devices.here()) {
      sums[d] = devices.receive(d, devices.neighbour(d, axis, -1));
      add(sums[d], own(d, place(d) - step - 2));
    }
  }
  return sums;
}

template <class T>
std::vector<Shards<T>> exchange_blocks(VirtualDevices<T>& devices, std::vector<Shards<T>> parts,
                                       const std::vector<int>& axes, Dtype dtype) {
  const std::size_t count = devices.count();
  std::vector<std::vector<std::size_t>> groups;
  std::vector<std::size_t> mine;
  for (std::size_t d = 0; d < count; ++d) {
    groups.push_back(devices.group(d, axes));
    mine.push_back(static_cast<std::size_t>(shard_index(devices.mesh(), axes, devices.at(d))));
  }
  const std::size_t n = groups.front().size();
  std::vector<Shards<T>> got(count, Shards<T>(n));
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

template <class T>
Shards<T> all_gather(VirtualDevices<T>& devices, const Shards<T>& shards, const std::vector<int>& axes, std::size_t dim,
                     Dtype dtype) {
  Shards<T> out(shards.size());
  const std::vector<Shards<T>> blocks = gather_blocks(devices, shards, axes, dtype);
  for (std::size_t d : devices.here()) out[d] = joined_all(blocks[d], dim);
  return out;
}

template <class T>
Shards<T> reduce_scatter(VirtualDevices<T>& devices, const Shards<T>& shards, const std::vector<int>& axes,
                         std::size_t dim, Dtype dtype) {
  if (axes.empty()) return shards;
  Shards<T> sums;
  std::int64_t size = shards[devices.here().front()].shape[dim];
  for (std::size_t i = 0; i < axes.size(); ++i) {
    size = block_size(size, devices.mesh().size(axes[i]));
    sums = scatter_sums(devices, i == 0 ? shards : sums, axes[i], dim, size, dtype);
  }
  return sums;
}

template <class T>
Shards<T> all_reduce(VirtualDevices<T>& devices, const Shards<T>& shards, const std::vector<int>& axes, Dtype dtype) {
  Shards<T> flat = shards;
  for (Array<T>& shard : flat) shard.shape = {static_cast<std::int64_t>(shard.values.size())};
  Shards<T> out = all_gather(devices, reduce_scatter(devices, flat, axes, 0, dtype), axes, 0, dtype);
  for (std::size_t d : devices.here()) out[d].shape = shards[d].shape;
  return out;
}

template <class T>
Shards<T> all_to_all(VirtualDevices<T>& devices, const Shards<T>& shards, const std::vector<int>& axes,
                     std::size_t split_dim, std::size_t join_dim, Dtype dtype) {
  std::vector<Shards<T>> parts(shards.size());
  const auto n = static_cast<std::int64_t>(devices.group(0, axes).size());
  for (std::size_t d : devices.here()) {
    for (std::int64_t i = 0; i < n; ++i) {
      const Chunk at = chunk(shards[d].shape[split_dim], block_size(shards[d].shape[split_dim], n), i);
      parts[d].push_back(part(shards[d], split_dim, at.start, at.count));
    }
  }
  Shards<T> out(shards.size());
  const std::vector<Shards<T>> blocks = exchange_blocks(devices, std::move(parts), axes, dtype);
  for (std::size_t d : devices.here()) out[d] = joined_all(blocks[d], join_dim);
  return out;
}

template <class T>
Shards<T> permute(VirtualDevices<T>& devices, const Shards<T>& shards, int axis,
                  const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, Dtype dtype) {
  Shards<T> out;
  for (const Array<T>& shard : shards) out.push_back(zeros<T>(shard.shape));
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

#define ASSAY_INSTANTIATE(T)                                                                                           \
  template std::vector<Shards<T>> gather_blocks(VirtualDevices<T>&, const Shards<T>&, const std::vector<int>&, Dtype); \
  template Shards<T> scatter_sums(VirtualDevices<T>&, const Shards<T>&, int, std::size_t, std::int64_t, Dtype);        \
  template std::vector<Shards<T>> exchange_blocks(VirtualDevices<T>&, std::vector<Shards<T>>, const std::vector<int>&, \
                                                  Dtype);                                                              \
  template Shards<T> all_gather(VirtualDevices<T>&, const Shards<T>&, const std::vector<int>&, std::size_t, Dtype);    \
  template Shards<T> reduce_scatter(VirtualDevices<T>&, const Shards<T>&, const std::vector<int>&, std::size_t,        \
                                    Dtype);                                                                            \
  template Shards<T> all_reduce(VirtualDevices<T>&, const Shards<T>&, const std::vector<int>&, Dtype);                 \
  template Shards<T> all_to_all(VirtualDevices<T>&, const Shards<T>&, const std::vector<int>&, std::size_t,            \
                                std::size_t, Dtype);                                                                   \
  template Shards<T> permute(VirtualDevices<T>&, const Shards<T>&, int,                                                \
                             const std::vector<std::pair<std::int64_t, std::int64_t>>&, Dtype);
ASSAY_INSTANTIATE(double)
ASSAY_INSTANTIATE(float)
#undef ASSAY_INSTANTIATE

}  // namespace assay::engine
