// How the dimensions of a product correspond, and what follows from it for the shardings of its tensors.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "assay/plan/notation.h"

namespace assay {

/// One row per dimension of a product: its place in each tensor, -1 where a tensor has it not.
struct Correspondence {
  struct Row {
    int left = -1, right = -1, result = -1;
    std::int64_t size = 1;

    bool shared() const { return left >= 0 && right >= 0; }
  };
  std::array<Row, 2 * max_tensor_rank> all;
  std::size_t count = 0;

  std::span<const Row> rows() const { return {all.data(), count}; }
};

/// The place of a dimension in a tensor, or -1.
int find_dim(const Tensor& tensor, std::string_view name);
Correspondence correspond(const ShardingExpression& e);

inline AxisList list_of(const Sharding& sharding, int dim) {
  return dim < 0 ? AxisList{} : sharding.dims[static_cast<std::size_t>(dim)];
}

/// The sharding of the product of two shards that lie together, or nothing if they do not match.
std::optional<Sharding> multiply(const Correspondence& c, const Sharding& a, const Sharding& b);
/// Of the product of two shards.
Flops local_flops(const Mesh& mesh, const Correspondence& c, const Sharding& a, const Sharding& b);

}  // namespace assay
