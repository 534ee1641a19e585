#include "cuda/products.h"

#include <string>

namespace assay::cuda {
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Failure(std::string(call) + ": error " + std::to_string(static_cast<int>(status)) + " of cuBLASLt");
}

template <class T>
using Owned = std::unique_ptr<T, void (*)(T*)>;
using Layout = Owned<cublasLtMatrixLayoutOpaque_t>;

Layout layout(cudaDataType_t type, long long rows, long long columns, long long matrices) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                                   rows),
        "cublasLtMatrixLayoutCreate");
  const auto count = static_cast<std::int32_t>(matrices);
  const auto apart = static_cast<std::int64_t>(rows * columns);
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
        "cublasLtMatrixLayoutSetAttribute");
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart),
        "cublasLtMatrixLayoutSetAttribute");
  return {made, [](cublasLtMatrixLayout_t old) { cublasLtMatrixLayoutDestroy(old); }};
}

}  // namespace

/// The library's matrices are column-major: it computes the transposed product, B' x A'.
struct Products::Plan {
  Owned<cublasLtMatmulDescOpaque_t> description;
  Layout b, a, c;
  cublasLtMatmulAlgo_t algorithm{};
};

Products::Products() { check(cublasLtCreate(&handle_), "cublasLtCreate"); }
Products::~Products() { cublasLtDestroy(handle_); }

const Products::Plan& Products::plan(const ProductShape& s) {
  if (const auto known = plans_.find(s); known != plans_.end()) return *known->second;
  cublasLtMatmulDesc_t description = nullptr;
  check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  auto made = std::make_unique<Plan>(
      Plan{{description, [](cublasLtMatmulDesc_t old) { cublasLtMatmulDescDestroy(old); }},
           s.transposed_b ? layout(CUDA_R_16BF, s.k, s.n, s.matrices) : layout(CUDA_R_16BF, s.n, s.k, s.matrices),
           s.transposed_a ? layout(CUDA_R_16BF, s.m, s.k, s.matrices) : layout(CUDA_R_16BF, s.k, s.m, s.matrices),
           layout(s.is_wide ? CUDA_R_32F : CUDA_R_16BF, s.n, s.m, s.matrices),
           {}});
  const cublasOperation_t first = s.transposed_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = s.transposed_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
        "cublasLtMatmulDescSetAttribute");
  check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second),
        "cublasLtMatmulDescSetAttribute");
  if (s.has_bias) {  // rows of the transposed product are our columns
    const cublasLtEpilogue_t adds = CUBLASLT_EPILOGUE_BIAS;
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &adds, sizeof adds),
          "cublasLtMatmulDescSetAttribute");
  }
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const std::size_t limit = workspace_bytes;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, description, made->b.get(), made->a.get(), made->c.get(), made->c.get(), preference, 1, &best, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0)
    throw Failure("cuBLASLt has no kernel for a product of " + std::to_string(s.m) + " x " + std::to_string(s.n) +
                  " x " + std::to_string(s.k));
  made->algorithm = best.algo;
  return *(plans_[s] = std::move(made));
}

void Products::run(const ProductShape& shape, const Operands& on, cudaStream_t stream) {
  const Plan& with = plan(shape);
  if (shape.has_bias)
    check(cublasLtMatmulDescSetAttribute(with.description.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &on.bias,
                                         sizeof on.bias),
          "cublasLtMatmulDescSetAttribute");
  const float one = 1.0F, share = on.onto ? 1.0F : 0.0F;
  check(cublasLtMatmul(handle_, with.description.get(), &one, on.b, with.b.get(), on.a, with.a.get(), &share,
                       on.onto ? on.onto : on.c, with.c.get(), on.c, with.c.get(), &with.algorithm, workspace_.at(),
                       workspace_bytes, stream),
        "cublasLtMatmul");
}

}  // namespace assay::cuda
