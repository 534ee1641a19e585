// Matrix products by OpenBLAS, which is loaded on first use: it starts a thread on every core
// that polls for work for a while, and most requests have none.
#pragma once
#include <cstdint>
#include <string>

#include "assay/base/result.h"

namespace assay::engine {

/// Whether the library, or another one of that name, can be loaded; call this before the first product.
Result<void> check_blas(const char* name = nullptr);

/// An operand of a product, row-major; transposed: its columns lie where rows would.
template <class T>
struct Matrix {
  const T* values;
  bool transposed = false;
};
/// c[m, n] = a[m, k] b[k, n].
void multiply_matrices(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<float> a, Matrix<float> b, float* c);
void multiply_matrices(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<double> a, Matrix<double> b, double* c);

/// Applies to all products from now on.
void use_blas_threads(int threads);

/// The library's version and build target.
std::string blas_configuration();

}  // namespace assay::engine
