// Matrix products of cuBLASLt, planned once for each shape.
#pragma once
#include <cublasLt.h>

#include <map>
#include <memory>
#include <tuple>

#include "assay/lab/measure/cuda/device.h"

namespace assay::cuda {

using measure::cuda::Buffer;
using measure::cuda::check;
using measure::cuda::Failure;

/// C[m, n] = A x B, row-major, of bf16 with sums in fp32; the operands are [m, k] and [k, n], or transposed.
struct ProductShape {
  long long m = 1, n = 1, k = 1;
  long long matrices = 1;  ///< number of matrices in each operand, one after the other
  bool transposed_a = false, transposed_b = false;
  bool is_wide = false;   ///< C is fp32, else bf16
  bool has_bias = false;  ///< one bf16 for each column
  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

class Products {
 public:
  Products();
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  struct Operands {
    const void *a, *b;
    const void* onto;  ///< added to the result; null: nothing
    const void* bias;  ///< read where the shape has one
    void* c;
  };
  void run(const ProductShape& shape, const Operands& on, cudaStream_t stream);

 private:
  struct Plan;
  const Plan& plan(const ProductShape& shape);

  static constexpr std::size_t workspace_bytes = std::size_t{64} << 20;
  cublasLtHandle_t handle_ = nullptr;
  Buffer workspace_{workspace_bytes};
  std::map<ProductShape, std::unique_ptr<Plan>> plans_;
};

}  // namespace assay::cuda
