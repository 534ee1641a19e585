// Graphs of cuDNN operations: add tensors and operations, then plan one kernel for all of them.
#pragma once
#include <cudnn_graph.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "assay/lab/measure/cuda/device.h"

namespace assay::measure::cuda {

void check(cudnnStatus_t status, const char* call);

/// One of the library's descriptors.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values, std::int64_t count) {
    check(cudnnBackendSetAttribute(handle_.get(), name, type, count, values), "cudnnBackendSetAttribute");
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, &value, 1);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.get());
  }
  void finish() { check(cudnnBackendFinalize(get()), "cudnnBackendFinalize"); }
  cudnnBackendDescriptor_t get() const { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(void* handle) const { cudnnBackendDestroyDescriptor(handle); }
  };
  std::unique_ptr<void, Destroy> handle_;
};

class Cudnn {
 public:
  Cudnn() { check(cudnnCreate(&handle), "cudnnCreate"); }
  ~Cudnn() { cudnnDestroy(handle); }
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;
  cudnnHandle_t handle = nullptr;
};

using Sizes = std::array<std::int64_t, 4>;  ///< batch, heads, rows, columns

/// Dense strides of sizes.
Sizes dense(const Sizes& sizes);
/// The same elements with rows and columns exchanged.
Sizes transposed(Sizes sizes);

class Graph {
 public:
  using Tensor = std::size_t;  ///< its number
  using Binding = std::pair<Tensor, void*>;

  explicit Graph(const Cudnn& library) : library_(library) {}

  Tensor tensor(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
    return add(type, sizes, strides, {});
  }
  Tensor scalar(float value);

  Tensor product(Tensor a, Tensor b, cudnnDataType_t type);  ///< a value inside the graph
  void product(Tensor a, Tensor b, Tensor result);
  Tensor map(cudnnPointwiseMode_t mode, Tensor a);
  Tensor map(cudnnPointwiseMode_t mode, Tensor a, Tensor b, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  void map(cudnnPointwiseMode_t mode, Tensor a, Tensor b, Tensor result);
  /// Selects from a where `mask` is true, otherwise from b.
  Tensor select(Tensor a, Tensor b, Tensor mask);
  Tensor index(Tensor like, std::int64_t axis);
  Tensor reduce(cudnnReduceTensorOp_t mode, Tensor a);  ///< over columns
  Tensor transpose(Tensor a, cudnnDataType_t type);

  /// Finds a kernel for the whole graph, with its own workspace.
  void plan();
  void run(const std::vector<Binding>& data, cudaStream_t stream) const;

 private:
  struct Entry {
    cudnnDataType_t type;
    Sizes sizes, strides;
    std::optional<float> value;
    Descriptor descriptor;
  };
  Tensor add(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides, std::optional<float> value,
             bool inside = false);
  Tensor inside(cudnnDataType_t type, const Sizes& sizes) { return add(type, sizes, dense(sizes), {}, true); }
  void pointwise(cudnnPointwiseMode_t mode, Tensor a, std::optional<Tensor> b, std::optional<Tensor> mask,
                 Tensor result, std::optional<std::int64_t> axis = {});
  Sizes broadcast(Tensor a, Tensor b) const;

  const Cudnn& library_;
  std::vector<std::unique_ptr<Entry>> tensors_;
  std::vector<Descriptor> parts_, operations_;
  std::optional<Descriptor> plan_;
  std::unique_ptr<Buffer> workspace_;
};

}  // namespace assay::measure::cuda
