#include "assay/program/language/graph.h"

namespace assay::language {

int find_dim(const Dims& dims, int id) {
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i].id == id) return static_cast<int>(i);
  return -1;
}

double element_count(const Dims& dims) {
  double count = 1.0;
  for (const Dim& dim : dims) count *= static_cast<double>(dim.size);
  return count;
}

program::Tensor tensor_of(const Graph& graph, const Value& value, const program::Sharding& sharding) {
  program::Tensor tensor;
  tensor.name = value.name;
  tensor.dtype = graph.dtype;
  tensor.sharding = sharding;
  for (const Dim& dim : value.dims)
    tensor.dims.push_back({graph.dim_names[static_cast<std::size_t>(dim.id)], dim.size});
  return tensor;
}

}  // namespace assay::language
