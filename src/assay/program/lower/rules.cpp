#include "assay/program/lower/rules.h"

#include <cmath>
#include <limits>

namespace assay::lower {

namespace {

/// Splits dimensions by further axes, outermost first.
void place(program::AxisList axes, const program::Program& program, const program::TensorDims& dims, std::size_t rank,
           program::Sharding& sharding) {
  if (axes.empty()) return;
  place(axes.popped(), program, dims, rank, sharding);
  const double ways = program.ways(program::axis_bit(axes.last()));
  const auto divides = [&](std::size_t i) {
    return dims[i].size % static_cast<std::int64_t>(ways * program.ways(sharding.dims[i])) == 0;
  };
  std::size_t found = rank;
  for (std::size_t i = 0; i < rank && found == rank; ++i)
    if (dims[i].dim == model::LogicalDim::d_model && divides(i)) found = i;
  for (std::size_t i = 0; i < rank && found == rank; ++i)
    if (divides(i)) found = i;
  // Where nothing divides, pad the dimension that wastes least; tiny tensors stay whole.
  double least = std::numeric_limits<double>::infinity();
  if (found == rank)
    for (std::size_t i = 0; i < rank; ++i) {
      const auto size = static_cast<double>(dims[i].size);
      const double shards = ways * program.ways(sharding.dims[i]);
      const double waste = std::ceil(size / shards) * shards / size;
      if (size >= shards && waste < least) {
        found = i;
        least = waste;
      }
    }
  if (found < rank) sharding.dims[found] = sharding.dims[found].pushed(axes.last());
}

}  // namespace

program::Sharding rule_sharding(const ShardingRules& rules, const program::Program& program,
                                program::TensorClass tensor_class, const program::TensorDims& dims, std::size_t rank) {
  program::Sharding sharding;
  program::AxisSet spent = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    program::AxisList wanted = rules.at(tensor_class, dims[i].dim);
    if (wanted.empty()) continue;
    wanted = remaining(wanted, spent);
    if (dims[i].dim == model::LogicalDim::kv_heads)
      while (!wanted.empty() && dims[i].size % static_cast<std::int64_t>(program.ways(wanted)) != 0)
        wanted = wanted.popped();
    sharding.dims[i] = wanted;
    spent |= wanted.set();
  }
  const program::AxisList spread = rules.spread[static_cast<std::size_t>(tensor_class)];
  if (!spread.empty()) place(remaining(spread, spent), program, dims, rank, sharding);
  return sharding;
}

std::array<model::Weight::Size, 4> ruled_dims(const model::Weight& weight) {
  std::array<model::Weight::Size, 4> dims = weight.dims;
  if (weight.part == model::Part::router)
    for (model::Weight::Size& dim : dims)
      if (dim.dim == model::LogicalDim::experts) dim.dim = model::LogicalDim::other;
  return dims;
}

template <class N>
NumberOf<N, double> local_elements(const N& num, const ShardingRules& rules, const program::Program& program,
                                   program::TensorClass tensor_class, const model::Weight& weight) {
  program::ProgramTensor tensor;
  tensor.rank = weight.rank;
  tensor.dims = program::TensorDims(ruled_dims(weight));
  tensor.sharding = rule_sharding(rules, program, tensor_class, tensor.dims, tensor.rank);
  return program::local_elements(num, program, tensor);
}
template double local_elements(const Plain&, const ShardingRules&, const program::Program&, program::TensorClass,
                               const model::Weight&);
template NumberOf<Traced, double> local_elements(const Traced&, const ShardingRules&, const program::Program&,
                                                 program::TensorClass, const model::Weight&);

}  // namespace assay::lower
