// A product of cuBLASLt: C[m,n] = A[m,k] x B[n,k]^T, row-major, batches contiguous.
#pragma once
#include <cublasLt.h>

#include <cstdint>
#include <memory>

#include "assay/lab/measure/cuda/device.h"
#include "assay/lab/measure/grid.h"

namespace assay::measure::cuda {

enum class Format { bf16, fp8 };  ///< of the operands: fp8 is e4m3; the result is bf16 and sums are fp32

class Library {
 public:
  Library();
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  static constexpr std::size_t workspace_bytes = std::size_t{64} << 20;
  cublasLtHandle_t handle = nullptr;
  Buffer workspace{workspace_bytes};
  Buffer scale{16};  ///< one float, 1: the scale of every 8-bit operand
};

class Product {
 public:
  /// The algorithm is the first one the library's heuristic returns.
  Product(const Library& library, const ProductShape& shape, Format format);
  void run(const void* a, const void* b, void* c, cudaStream_t stream) const;

 private:
  template <class T>
  using Owned = std::unique_ptr<T, void (*)(T*)>;
  using Layout = Owned<cublasLtMatrixLayoutOpaque_t>;
  static Layout layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t batch);

  const Library& library_;
  Owned<cublasLtMatmulDescOpaque_t> description_;
  Layout a_, b_, c_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace assay::measure::cuda
