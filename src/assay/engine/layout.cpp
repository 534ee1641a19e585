#include "assay/engine/layout.h"

#include <algorithm>
#include <bit>

#include "assay/base/result.h"

namespace assay::engine {
namespace {

Shape starts_of(const std::vector<Extent>& extents) {
  Shape out;
  for (const Extent& e : extents) out.push_back(e.start);
  return out;
}
Shape counts_of(const std::vector<Extent>& extents) {
  Shape out;
  for (const Extent& e : extents) out.push_back(e.count);
  return out;
}
Shape sizes_of(const std::vector<Extent>& extents) {
  Shape out;
  for (const Extent& e : extents) out.push_back(e.size);
  return out;
}

/// Addend `index` of `count` of an array: random, except for the last one, which makes the sum right.
Array addend(const Array& global, std::int64_t index, std::int64_t count, std::uint64_t seed) {
  const auto random = [&](std::int64_t which, std::size_t element) {
    return small_integer(mixed(seed + static_cast<std::uint64_t>(which) + 1, element));
  };
  Array out = zeros(global.shape);
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    if (index + 1 < count) {
      out.values[i] = random(index, i);
    } else {
      double rest = global.values[i];
      for (std::int64_t k = 0; k + 1 < count; ++k) rest -= random(k, i);
      out.values[i] = rest;
    }
  }
  return out;
}

}  // namespace

Coordinates coordinates(const program::Mesh& mesh, std::int64_t device) {
  Coordinates at(mesh.axes.size());
  for (std::size_t i = at.size(); i-- > 0; device /= mesh.axes[i].size) at[i] = device % mesh.axes[i].size;
  return at;
}

std::int64_t device_at(const program::Mesh& mesh, const Coordinates& at) {
  std::int64_t device = 0;
  for (std::size_t i = 0; i < at.size(); ++i) device = device * mesh.axes[i].size + at[i];
  return device;
}

Extent extent_on(const program::Mesh& mesh, std::int64_t size, program::AxisList axes, const Coordinates& at) {
  Extent here{0, size, size};
  for (int axis : axes.axes()) {
    const std::int64_t block = block_size(here.size, mesh.size(axis));
    const std::int64_t offset = at[static_cast<std::size_t>(axis)] * block;
    here = {here.start + offset, std::clamp<std::int64_t>(here.count - offset, 0, block), block};
  }
  return here;
}

std::vector<Extent> extents_on(const program::Mesh& mesh, const program::Tensor& tensor, const Coordinates& at) {
  std::vector<Extent> out;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d)
    out.push_back(extent_on(mesh, tensor.dims[d].size, tensor.sharding.dims[d], at));
  return out;
}

std::vector<int> axes_of(program::AxisSet set) {
  std::vector<int> out;
  for (; set != 0; set &= set - 1) out.push_back(std::countr_zero(set));
  return out;
}

std::int64_t shard_index(const program::Mesh& mesh, const std::vector<int>& axes, const Coordinates& at) {
  std::int64_t index = 0;
  for (int axis : axes) index = index * mesh.size(axis) + at[static_cast<std::size_t>(axis)];
  return index;
}

Shape global_shape(const program::Tensor& tensor) {
  Shape shape;
  for (const program::Dimension& dim : tensor.dims) shape.push_back(dim.size);
  return shape;
}

Shards distribute(const Array& global, const program::Tensor& tensor, const program::Mesh& mesh, std::uint64_t seed) {
  if (global.shape != global_shape(tensor)) throw InternalError("an array does not have the shape of its tensor");
  const std::vector<int> partial = axes_of(tensor.sharding.unreduced);
  const auto addends = static_cast<std::int64_t>(program::shard_count(mesh, tensor.sharding.unreduced));
  Shards shards(static_cast<std::size_t>(mesh.devices()));
  for (std::int64_t index = 0; index < addends; ++index) {
    const Array source = addends == 1 ? global : addend(global, index, addends, seed);
    for (std::size_t device = 0; device < shards.size(); ++device) {
      const Coordinates at = coordinates(mesh, static_cast<std::int64_t>(device));
      if (shard_index(mesh, partial, at) != index) continue;
      const std::vector<Extent> extents = extents_on(mesh, tensor, at);
      shards[device] = zeros(sizes_of(extents));
      copy_block(source, starts_of(extents), counts_of(extents), shards[device], Shape(extents.size(), 0));
    }
  }
  return shards;
}

Collected collect(const Shards& shards, const program::Tensor& tensor, const program::Mesh& mesh) {
  const std::vector<int> partial = axes_of(tensor.sharding.unreduced), split = axes_of(tensor.sharding.split_axes());
  const auto blocks = static_cast<std::size_t>(program::shard_count(mesh, tensor.sharding.split_axes()));
  const auto addends = static_cast<std::size_t>(program::shard_count(mesh, tensor.sharding.unreduced));
  std::vector<const Array*> first(blocks * addends, nullptr);
  Collected out{zeros(global_shape(tensor)), 0.0};
  for (std::size_t device = 0; device < shards.size(); ++device) {
    const Coordinates at = coordinates(mesh, static_cast<std::int64_t>(device));
    const std::vector<Extent> extents = extents_on(mesh, tensor, at);
    const Array& shard = shards[device];
    if (shard.shape != sizes_of(extents)) throw InternalError("a shard does not have the shape of its sharding");
    const auto slot = static_cast<std::size_t>(shard_index(mesh, split, at)) * addends +
                      static_cast<std::size_t>(shard_index(mesh, partial, at));
    if (first[slot]) {
      out.disagreement = std::max(out.disagreement, largest_difference(shard, *first[slot]));
      continue;
    }
    first[slot] = &shard;
    const Shape zero(extents.size(), 0), starts = starts_of(extents), counts = counts_of(extents);
    Array cut = zeros(counts), before = zeros(counts), bare = zeros(shard.shape);
    copy_block(shard, zero, counts, cut, zero);
    copy_block(cut, zero, counts, bare, zero);
    out.disagreement = std::max(out.disagreement, largest_difference(bare, shard));
    if (element_count(counts) == 0) continue;
    copy_block(out.array, starts, counts, before, zero);
    add(before, cut);
    copy_block(before, zero, counts, out.array, starts);
  }
  return out;
}

}  // namespace assay::engine
