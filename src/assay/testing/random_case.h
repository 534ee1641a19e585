// Random meshes, shardings and expressions for the tests of this folder; rapidcheck draws the choices.
#pragma once
#include <algorithm>
#include <functional>

#include "assay/program/plan/notation.h"

namespace assay::testing {

/// A number from 0 to n - 1.
using Choose = std::function<std::int64_t(std::int64_t n)>;

/// One to three axes of up to four, and up to 24 devices, so that hundreds of cases run in seconds.
inline program::Mesh random_mesh(const Choose& choose) {
  program::Mesh mesh;
  const std::int64_t axes = 1 + choose(3);
  for (std::int64_t i = 0; i < axes; ++i)
    mesh.axes.push_back(
        {std::string(1, static_cast<char>('W' + i)), 1 + choose(std::min<std::int64_t>(4, 24 / mesh.devices()))});
  return mesh;
}

/// Every axis splits a dimension, marks partial sums, or is left out; those in `forbidden` mark no partial sums.
inline program::Sharding random_sharding(const Choose& choose, const program::Mesh& mesh, std::size_t rank,
                                         program::AxisSet forbidden = 0) {
  program::Sharding sharding;
  std::vector<int> order(mesh.axes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(choose(static_cast<std::int64_t>(i)))]);
  for (int axis : order) {
    const auto place = static_cast<std::size_t>(choose(static_cast<std::int64_t>(rank) + 2));
    if (place < rank)
      sharding.dims[place] = sharding.dims[place].pushed(axis);
    else if (place == rank && !(forbidden & program::axis_bit(axis)) && choose(2) == 0)
      sharding.unreduced |= program::axis_bit(axis);
  }
  return sharding;
}

/// How sizes of dimensions relate to the mesh.
enum class Sizes { divide, any };

inline std::int64_t random_size(const Choose& choose, const program::Mesh& mesh, Sizes sizes) {
  return sizes == Sizes::divide ? mesh.devices() * (mesh.devices() < 9 ? 1 + choose(2) : 1) : 1 + choose(9);
}

inline program::Tensor random_tensor(const Choose& choose, const program::Mesh& mesh, Sizes sizes) {
  program::Tensor tensor{"A", {}, choose(2) ? Dtype::bf16 : Dtype::fp32, {}};
  const std::int64_t rank = 1 + choose(3);
  for (std::int64_t i = 0; i < rank; ++i)
    tensor.dims.push_back({std::string(1, static_cast<char>('I' + i)), random_size(choose, mesh, sizes)});
  tensor.sharding = random_sharding(choose, mesh, tensor.dims.size());
  return tensor;
}

/// A product with one or two contracted dimensions, up to one batch dimension, and dimensions in any order.
inline plan::ShardingExpression random_product(const Choose& choose, const program::Mesh& mesh, Sizes sizes) {
  plan::ShardingExpression e;
  e.left.name = "A";
  e.right = program::Tensor{"B", {}, Dtype::bf16, {}};
  e.result = program::Tensor{"C", {}, Dtype::bf16, {}};
  const auto insert = [&](program::Tensor& tensor, const program::Dimension& dim) {
    const auto at = static_cast<std::ptrdiff_t>(choose(static_cast<std::int64_t>(tensor.dims.size()) + 1));
    tensor.dims.insert(tensor.dims.begin() + at, dim);
  };
  const auto dimension = [&](const char* name) { return program::Dimension{name, random_size(choose, mesh, sizes)}; };
  const program::Dimension i = dimension("I"), j = dimension("J"), k = dimension("K");
  insert(e.left, i);
  insert(*e.result, i);
  insert(e.left, j);
  insert(*e.right, j);
  insert(*e.right, k);
  insert(*e.result, k);
  if (choose(3) == 0) {
    const program::Dimension batch = dimension("B");
    insert(e.left, batch);
    insert(*e.right, batch);
    insert(*e.result, batch);
  } else if (choose(3) == 0) {
    const program::Dimension second = dimension("L");
    insert(e.left, second);
    insert(*e.right, second);
  }
  e.left.sharding = random_sharding(choose, mesh, e.left.dims.size());
  e.right->sharding = random_sharding(choose, mesh, e.right->dims.size(), e.left.sharding.unreduced);
  e.result->sharding = random_sharding(choose, mesh, e.result->dims.size(), choose(3) == 0 ? 0 : ~program::AxisSet{0});
  return e;
}

}  // namespace assay::testing
