// Collectives as message steps between virtual devices: rings along one axis at a time, exchanges within groups.
// Axis lists are major first. Blocks that do not divide stay short: only padding that the shards already hold is
// sent.
#pragma once
#include <utility>
#include <vector>

#include "assay/engine/devices.h"

namespace assay::engine {

/// Every device gets the blocks of its whole group, in order. Rings pass blocks on, the innermost axis first.
std::vector<Shards> gather_blocks(VirtualDevices& devices, const Shards& shards, const std::vector<int>& axes,
                                  Dtype dtype);

/// parts[device][member] goes to that member of the device's group; returns the received parts, in member order.
std::vector<Shards> exchange_blocks(VirtualDevices& devices, std::vector<Shards> parts, const std::vector<int>& axes,
                                    Dtype dtype);

/// Shards joined along `dim` in the order of the group.
Shards all_gather(VirtualDevices& devices, const Shards& shards, const std::vector<int>& axes, std::size_t dim,
                  Dtype dtype);

/// What a reduction does to what it has and what arrives: add() or take_larger().
using Combine = void (*)(Array& held, const Array& arriving);

/// Sums over the group; each device keeps its chunk along `dim`.
Shards reduce_scatter(VirtualDevices& devices, const Shards& shards, const std::vector<int>& axes, std::size_t dim,
                      Dtype dtype, Combine combine = &add);

/// Sums over the group on every device: scattered, then gathered.
Shards all_reduce(VirtualDevices& devices, const Shards& shards, const std::vector<int>& axes, Dtype dtype,
                  Combine combine = &add);

/// Sends from position `first` to position `second` of an axis for every pair; devices that receive nothing get zeros.
Shards permute(VirtualDevices& devices, const Shards& shards, int axis,
               const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, Dtype dtype);

}  // namespace assay::engine
