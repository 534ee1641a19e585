// Products of matrices by OpenBLAS, which is loaded when the first one is asked for: it starts a thread on every core
// that looks for work for a while, and most requests have none.
#pragma once
#include <cstdint>
#include <string>

#include "assay/base/result.h"

namespace assay::execute {

/// Whether the library can be loaded, or another one of that name; ask before the first product.
Result<void> check_blas(const char* name = nullptr);

/// c[m, n] = a[m, k] b[k, n], rows one after the other.
void multiply_matrices(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* c);
void multiply_matrices(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double* c);

/// Of all products from now on.
void use_blas_threads(int threads);

/// The library's version and what it was built for.
std::string blas_configuration();

}  // namespace assay::execute
