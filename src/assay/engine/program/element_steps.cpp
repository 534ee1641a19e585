// Steps that work on elements and their dimensions.
#include <algorithm>
#include <cmath>

#include "assay/engine/kernels/elements.h"
#include "assay/engine/program/local_step.h"

namespace assay::engine {
namespace {

std::int64_t whole_number(const Numbers& x) {
  const double value = x.values.empty() ? 0.0 : std::floor(x.values.front() + 0.5);
  return std::abs(value) < 1e15 ? static_cast<std::int64_t>(value) : -1;
}

}  // namespace

LocalStep::Results LocalStep::map() const {
  std::vector<SpreadOperand> operands;
  for (std::size_t i = 0; i < step_.in.size() && maybe(i); ++i)
    operands.push_back({maybe(i), layout_.strides_in(step_.in[i], step_.out[0], context_.device)});
  return {mapped(static_cast<program::Function>(step_.detail), layout_.local_shape(step_.out[0]), operands)};
}

LocalStep::Results LocalStep::map_grad() const {
  std::vector<SpreadOperand> operands;
  for (std::size_t i = 1; i < step_.in.size() && maybe(i); ++i)
    operands.push_back({maybe(i), layout_.strides_in(step_.in[i], step_.in[0], context_.device)});
  Results made;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (step_.out[k] >= 0)
      made.push_back(mapped_grad(static_cast<program::Function>(step_.detail), in(0), operands, k));
  return made;
}

LocalStep::Results LocalStep::sum_grad() const {
  return {spread(layout_.local_shape(step_.out[0]),
                 {&in(0), layout_.strides_in(step_.in[0], step_.out[0], context_.device)})};
}

LocalStep::Results LocalStep::largest() const {
  return {largest_of(in(0), element_count(layout_.local_shape(step_.out[0])),
                     layout_.strides_in(step_.out[0], step_.in[0], context_.device))};
}

LocalStep::Results LocalStep::largest_grad() const {
  return {engine::largest_grad(in(0), in(1), layout_.strides_in(step_.in[0], step_.in[1], context_.device))};
}

LocalStep::Results LocalStep::softmax() const {
  return {engine::softmax(in(0), static_cast<std::size_t>(step_.detail))};
}

LocalStep::Results LocalStep::softmax_grad() const {
  return {engine::softmax_grad(in(0), in(1), static_cast<std::size_t>(step_.detail))};
}

LocalStep::Results LocalStep::view() const { return {in(0)}; }

LocalStep::Results LocalStep::chunk() const {
  const auto dim = static_cast<std::size_t>(step_.detail);
  return {chunk_of(in(0), dim, layout_.local_shape(step_.out[0])[dim], whole_number(in(1)))};
}

LocalStep::Results LocalStep::chunk_grad() const {
  if (step_.out[0] < 0) return {};
  return {
      put_into(layout_.local_shape(step_.out[0]), in(0), static_cast<std::size_t>(step_.detail), whole_number(in(2)))};
}

LocalStep::Results LocalStep::put() const {
  return {
      put_into(layout_.local_shape(step_.out[0]), in(0), static_cast<std::size_t>(step_.detail), whole_number(in(1)))};
}

LocalStep::Results LocalStep::put_grad() const {
  if (step_.out[0] < 0) return {};
  const auto dim = static_cast<std::size_t>(step_.detail);
  return {chunk_of(in(0), dim, layout_.local_shape(step_.out[0])[dim], whole_number(in(2)))};
}

}  // namespace assay::engine
