#include "assay/lab/measure/cudnn/graph.h"

#include <algorithm>

namespace assay::measure::cuda {

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> why{};
  cudnnGetLastErrorString(why.data(), why.size());
  throw Failure(std::string(call) + ": " + cudnnGetErrorString(status) +
                (why[0] ? std::string(", ") + why.data() : ""));
}

static cudnnBackendDescriptor_t created(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t handle = nullptr;
  check(cudnnBackendCreateDescriptor(type, &handle), "cudnnBackendCreateDescriptor");
  return handle;
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) : handle_(created(type)) {}

Sizes dense(const Sizes& s) { return {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}; }

Sizes transposed(Sizes sizes) {
  std::swap(sizes[2], sizes[3]);
  return sizes;
}

Graph::Tensor Graph::add(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides, std::optional<float> value,
                         bool inside) {
  tensors_.push_back(
      std::make_unique<Entry>(Entry{type, sizes, strides, value, Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR)}));
  Descriptor& made = tensors_.back()->descriptor;
  const auto id = static_cast<std::int64_t>(tensors_.size());
  constexpr std::int64_t alignment = 16;
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes.data(), 4);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.data(), 4);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
  if (inside) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  if (value) made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  made.finish();
  return tensors_.size() - 1;
}

Graph::Tensor Graph::scalar(float value) { return add(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, value); }

Sizes Graph::broadcast(Tensor a, Tensor b) const {
  Sizes sizes = tensors_[a]->sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::max(sizes[i], tensors_[b]->sizes[i]);
  return sizes;
}

void Graph::product(Tensor a, Tensor b, Tensor result) {
  Descriptor& kind = parts_.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  kind.finish();
  Descriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensors_[a]->descriptor);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors_[b]->descriptor);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensors_[result]->descriptor);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
  operation.finish();
}

Graph::Tensor Graph::product(Tensor a, Tensor b, cudnnDataType_t type) {
  Sizes sizes = tensors_[a]->sizes;
  sizes[3] = tensors_[b]->sizes[3];
  const Tensor result = inside(type, sizes);
  product(a, b, result);
  return result;
}

void Graph::pointwise(cudnnPointwiseMode_t mode, Tensor a, std::optional<Tensor> b, std::optional<Tensor> mask,
                      Tensor result, std::optional<std::int64_t> axis) {
  Descriptor& kind = parts_.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
           mode == CUDNN_POINTWISE_CMP_GE ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT);
  if (axis) kind.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, *axis);
  kind.finish();
  Descriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[a]->descriptor);
  if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[*b]->descriptor);
  if (mask) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensors_[*mask]->descriptor);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[result]->descriptor);
  operation.finish();
}

Graph::Tensor Graph::map(cudnnPointwiseMode_t mode, Tensor a) {
  const Tensor result = inside(CUDNN_DATA_FLOAT, tensors_[a]->sizes);
  pointwise(mode, a, {}, {}, result);
  return result;
}

Graph::Tensor Graph::map(cudnnPointwiseMode_t mode, Tensor a, Tensor b, cudnnDataType_t type) {
  const Tensor result = inside(type, broadcast(a, b));
  pointwise(mode, a, b, {}, result);
  return result;
}

void Graph::map(cudnnPointwiseMode_t mode, Tensor a, Tensor b, Tensor result) { pointwise(mode, a, b, {}, result); }

Graph::Tensor Graph::select(Tensor a, Tensor b, Tensor mask) {
  const Tensor result = inside(CUDNN_DATA_FLOAT, tensors_[a]->sizes);
  pointwise(CUDNN_POINTWISE_BINARY_SELECT, a, b, mask, result);
  return result;
}

Graph::Tensor Graph::index(Tensor like, std::int64_t axis) {
  const Tensor result = inside(CUDNN_DATA_INT32, tensors_[like]->sizes);
  pointwise(CUDNN_POINTWISE_GEN_INDEX, like, {}, {}, result, axis);
  return result;
}

Graph::Tensor Graph::reduce(cudnnReduceTensorOp_t mode, Tensor a) {
  Sizes sizes = tensors_[a]->sizes;
  sizes[3] = 1;
  const Tensor result = inside(CUDNN_DATA_FLOAT, sizes);
  Descriptor& kind = parts_.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode);
  kind.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  kind.finish();
  Descriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensors_[a]->descriptor);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensors_[result]->descriptor);
  operation.finish();
  return result;
}

Graph::Tensor Graph::transpose(Tensor a, cudnnDataType_t type) {
  const Tensor result = add(type, transposed(tensors_[a]->sizes), transposed(tensors_[a]->strides), {}, true);
  Descriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensors_[a]->descriptor);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensors_[result]->descriptor);
  operation.finish();
  return result;
}

void Graph::plan() {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> all;
  for (const Descriptor& operation : operations_) all.push_back(operation.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, library_.handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, all.data(),
            static_cast<std::int64_t>(all.size()));
  graph.finish();
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  heuristic.finish();
  std::int64_t found = 0;
  check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                 &found, nullptr),
        "cudnnBackendGetAttribute");
  std::vector<Descriptor> kernels;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < found; ++i)
    handles.push_back(kernels.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  if (found > 0)
    check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, found,
                                   &found, handles.data()),
          "cudnnBackendGetAttribute");
  // The first one that the heuristic returns and that can be built.
  std::string why = "no kernel is named";
  for (const Descriptor& kernel : kernels) {
    try {
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, library_.handle);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kernel);
      plan.finish();
      std::int64_t bytes = 0, count = 0;
      check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                     &bytes),
            "cudnnBackendGetAttribute");
      workspace_ = std::make_unique<Buffer>(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
      plan_ = std::move(plan);
      return;
    } catch (const Failure& failure) {
      why = failure.what();
    }
  }
  throw Failure("cuDNN has no kernel: " + why);
}

void Graph::run(const std::vector<Binding>& data, cudaStream_t stream) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [tensor, pointer] : data) {
    ids.push_back(static_cast<std::int64_t>(tensor) + 1);
    pointers.push_back(pointer);
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i]->value) {
      ids.push_back(static_cast<std::int64_t>(i) + 1);
      pointers.push_back(&*tensors_[i]->value);
    }
  void* workspace = workspace_->at();
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(ids.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), count);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), count);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finish();
  check(cudnnSetStream(library_.handle, stream), "cudnnSetStream");
  check(cudnnBackendExecute(library_.handle, plan_->get(), pack.get()), "cudnnBackendExecute");
}

}  // namespace assay::measure::cuda
