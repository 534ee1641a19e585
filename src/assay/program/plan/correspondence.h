// How the dimensions of a product correspond, and what this implies for the shardings of its tensors.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "assay/program/plan/notation.h"

namespace assay::plan {

/// One row per dimension of a product: its index in each tensor, -1 if a tensor lacks it.
struct Correspondence {
  struct Row {
    int left = -1, right = -1, result = -1;
    std::int64_t size = 1;

    bool shared() const { return left >= 0 && right >= 0; }
  };
  std::array<Row, 2 * program::max_tensor_rank> all;
  std::size_t count = 0;

  std::span<const Row> rows() const { return {all.data(), count}; }
};

/// The index of a dimension in a tensor, or -1.
int find_dim(const program::Tensor& tensor, std::string_view name);
Correspondence correspond(const ShardingExpression& e);

inline program::AxisList list_of(const program::Sharding& sharding, int dim) {
  return dim < 0 ? program::AxisList{} : sharding.dims[static_cast<std::size_t>(dim)];
}

/// The sharding of the local product of two shards, or nothing if they do not match.
std::optional<program::Sharding> multiply(const Correspondence& c, const program::Sharding& a,
                                          const program::Sharding& b);
/// FLOP of the local product of two shards.
Flops local_flops(const program::Mesh& mesh, const Correspondence& c, const program::Sharding& a,
                  const program::Sharding& b);

}  // namespace assay::plan
