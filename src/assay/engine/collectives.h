// Collectives as message steps between virtual devices: rings along one axis at a time, exchanges within groups.
// Axis lists are major first. Blocks that do not divide stay short: only padding that the shards already hold is
// sent.
#pragma once
#include <utility>
#include <vector>

#include "assay/engine/devices.h"

namespace assay::engine {

/// Every device gets the blocks of its whole group, in order. Rings pass blocks on, the innermost axis first.
template <class T>
std::vector<Shards<T>> gather_blocks(VirtualDevices<T>& devices, const Shards<T>& shards, const std::vector<int>& axes,
                                     Dtype dtype);

/// Sums over the group of one axis, cut along `dim` into blocks; each device keeps its own. A ring adds up
/// while passing blocks on.
template <class T>
Shards<T> scatter_sums(VirtualDevices<T>& devices, const Shards<T>& shards, int axis, std::size_t dim,
                       std::int64_t block, Dtype dtype);

/// parts[device][member] goes to that member of the device's group; returns the received parts, in member order.
template <class T>
std::vector<Shards<T>> exchange_blocks(VirtualDevices<T>& devices, std::vector<Shards<T>> parts,
                                       const std::vector<int>& axes, Dtype dtype);

/// Shards joined along `dim` in the order of the group.
template <class T>
Shards<T> all_gather(VirtualDevices<T>& devices, const Shards<T>& shards, const std::vector<int>& axes, std::size_t dim,
                     Dtype dtype);

/// Sums over the group; each device keeps its chunk along `dim`.
template <class T>
Shards<T> reduce_scatter(VirtualDevices<T>& devices, const Shards<T>& shards, const std::vector<int>& axes,
                         std::size_t dim, Dtype dtype);

/// Sums over the group on every device: scattered, then gathered.
template <class T>
Shards<T> all_reduce(VirtualDevices<T>& devices, const Shards<T>& shards, const std::vector<int>& axes, Dtype dtype);

/// Splits along one dimension, sends chunk i to member i, joins the received chunks along the other dimension.
template <class T>
Shards<T> all_to_all(VirtualDevices<T>& devices, const Shards<T>& shards, const std::vector<int>& axes,
                     std::size_t split_dim, std::size_t join_dim, Dtype dtype);

/// Sends from position `first` to position `second` of an axis for every pair; devices that receive nothing get zeros.
template <class T>
Shards<T> permute(VirtualDevices<T>& devices, const Shards<T>& shards, int axis,
                  const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, Dtype dtype);

}  // namespace assay::engine
