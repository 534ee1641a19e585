// The measured shapes. Standard library only, see rows.h.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace assay::measure {

/// batch x A[m,k] x B[n,k]^T
struct ProductShape {
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
  friend bool operator==(const ProductShape&, const ProductShape&) = default;
  std::int64_t flops() const { return 2 * batch * m * n * k; }
};

/// How much to measure: `quick` takes seconds, `check` has shapes that no fit uses.
enum class Extent { quick, full, check };

/// Products for a CPU: square, thin, small k, ragged.
std::vector<ProductShape> cpu_products(Extent extent);

/// Products for a GPU: weights of language models times few to many rows. n and k must be multiples of `aligned`
/// (16 in 8 bits).
std::vector<ProductShape> gpu_products(Extent extent, std::int64_t aligned);

/// Sizes from `least` to `most`, each `factor` times the previous one.
std::vector<std::int64_t> sizes(std::int64_t least, std::int64_t most, std::int64_t factor);

}  // namespace assay::measure
