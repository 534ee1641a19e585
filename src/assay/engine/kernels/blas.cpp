#include "assay/engine/kernels/blas.h"

#include <cblas.h>
#include <dlfcn.h>

#include "assay/base/result.h"

namespace assay::engine {
namespace {

constexpr const char* file = "libopenblas.so.0";

class Library {
 public:
  Library() : handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) throw InternalError(std::string(file) + " was not checked before use");
    find("cblas_sgemm", sgemm);
    find("cblas_dgemm", dgemm);
    find("openblas_set_num_threads", set_num_threads);
    find("openblas_get_config", get_config);
  }

  decltype(&cblas_sgemm) sgemm;
  decltype(&cblas_dgemm) dgemm;
  decltype(&openblas_set_num_threads) set_num_threads;
  decltype(&openblas_get_config) get_config;

 private:
  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (!function) throw InternalError(std::string(file) + " has no " + name);
  }

  void* handle_;  ///< never closed: its threads run until the program ends
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

struct ProductSizes {
  std::int64_t m, n, k;
};

template <class T, class Gemm>
void multiply_by(Gemm gemm, const ProductSizes& sizes, Matrix<T> a, Matrix<T> b, T* c) {
  const auto m = static_cast<blasint>(sizes.m), n = static_cast<blasint>(sizes.n), k = static_cast<blasint>(sizes.k);
  gemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans, m, n, k, T(1),
       a.values, a.transposed ? m : k, b.values, b.transposed ? k : n, T(0), c, n);
}

}  // namespace

Result<void> check_blas(const char* name) {
  if (!name) name = file;
  void* found = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (!found)
    return fail(name, "cannot be loaded, but matrix products need it",
                "install OpenBLAS (Debian: libopenblas0-pthread), or name its directory in LD_LIBRARY_PATH",
                Error::Kind::missing);
  if (name != file) dlclose(found);
  return {};
}

void multiply_matrices(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<float> a, Matrix<float> b, float* c) {
  multiply_by(library().sgemm, {m, n, k}, a, b, c);
}

void multiply_matrices(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<double> a, Matrix<double> b, double* c) {
  multiply_by(library().dgemm, {m, n, k}, a, b, c);
}

void use_blas_threads(int threads) { library().set_num_threads(threads); }

std::string blas_configuration() { return library().get_config(); }

}  // namespace assay::engine
