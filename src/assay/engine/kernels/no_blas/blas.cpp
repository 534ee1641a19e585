// Where there is no OpenBLAS: plain loops.
#include "assay/engine/kernels/blas.h"

#include <algorithm>

namespace assay::engine {
namespace {

template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<T> a, Matrix<T> b, T* c) {
  std::fill(c, c + m * n, T(0));
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t inner = 0; inner < k; ++inner)
      for (std::int64_t column = 0; column < n; ++column)
        c[row * n + column] += a.values[a.transposed ? inner * m + row : row * k + inner] *
                               b.values[b.transposed ? column * k + inner : inner * n + column];
}

}  // namespace

Result<void> check_blas(const char*) { return {}; }

void multiply_matrices(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<float> a, Matrix<float> b, float* c) {
  multiply(m, n, k, a, b, c);
}

void multiply_matrices(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<double> a, Matrix<double> b, double* c) {
  multiply(m, n, k, a, b, c);
}

void use_blas_threads(int) {}

std::string blas_configuration() { return "plain loops"; }

}  // namespace assay::engine
