#include "assay/lab/measure/cuda/product.h"

namespace assay::measure::cuda {
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Failure(std::string(call) + ": cuBLASLt status " + std::to_string(static_cast<int>(status)));
}

template <class T>
void set(cublasLtMatmulDescOpaque_t& to, cublasLtMatmulDescAttributes_t attribute, T value) {
  check(cublasLtMatmulDescSetAttribute(&to, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}

}  // namespace

Library::Library() {
  check(cublasLtCreate(&handle), "cublasLtCreate");
  const float one = 1;
  cuda::check(cudaMemcpy(scale.at(), &one, sizeof one, cudaMemcpyHostToDevice), "cudaMemcpy");
}
Library::~Library() { cublasLtDestroy(handle); }

Product::Layout Product::layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                                   rows),
        "cublasLtMatrixLayoutCreate");
  Layout owned(made, [](cublasLtMatrixLayoutOpaque_t* x) { cublasLtMatrixLayoutDestroy(x); });
  const auto count = static_cast<std::int32_t>(batch);
  const std::int64_t stride = rows * columns;
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
        "cublasLtMatrixLayoutSetAttribute");
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
        "cublasLtMatrixLayoutSetAttribute");
  return owned;
}

// The library is column-major: our C[m,n] is its n x m result, and B its left operand, transposed.
Product::Product(const Library& library, const ProductShape& shape, Format format)
    : library_(library),
      description_(nullptr, [](cublasLtMatmulDescOpaque_t* x) { cublasLtMatmulDescDestroy(x); }),
      a_(layout(format == Format::fp8 ? CUDA_R_8F_E4M3 : CUDA_R_16BF, shape.k, shape.m, shape.batch)),
      b_(layout(format == Format::fp8 ? CUDA_R_8F_E4M3 : CUDA_R_16BF, shape.k, shape.n, shape.batch)),
      c_(layout(CUDA_R_16BF, shape.n, shape.m, shape.batch)) {
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  description_.reset(made);
  set(*made, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(*made, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (format == Format::fp8) {
    const void* one = library.scale.at();
    set(*made, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, one);
    set(*made, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, one);
    set(*made, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  }
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const std::size_t workspace = Library::workspace_bytes;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                       sizeof workspace);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(library.handle, made, b_.get(), a_.get(), c_.get(),
                                                               c_.get(), preference, 1, &best, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0) throw Failure("the library has no algorithm for this shape");
  algorithm_ = best.algo;
}

void Product::run(const void* a, const void* b, void* c, cudaStream_t stream) const {
  const float alpha = 1, beta = 0;
  check(cublasLtMatmul(library_.handle, description_.get(), &alpha, b, b_.get(), a, a_.get(), &beta, c, c_.get(), c,
                       c_.get(), &algorithm_, library_.workspace.at(), Library::workspace_bytes, stream),
        "cublasLtMatmul");
}

}  // namespace assay::measure::cuda
