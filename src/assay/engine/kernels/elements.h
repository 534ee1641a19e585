// Functions of elements with operands that may lack dimensions of the result, reductions, and parts of dimensions.
// `strides` are those of an operand along the dimensions of the result, 0 where it lacks one.
#pragma once
#include <vector>

#include "assay/engine/kernels/layer.h"
#include "assay/program/form/functions.h"

namespace assay::engine {

/// An operand of a function of elements.
struct SpreadOperand {
  const Array* values = nullptr;
  Shape strides;
};

Array mapped(program::Function function, const Shape& shape, const std::vector<SpreadOperand>& operands);
/// The gradient of one operand: summed over the dimensions that it lacks.
Array mapped_grad(program::Function function, const Array& dy, const std::vector<SpreadOperand>& operands,
                  std::size_t which);

/// Adds a smaller array to each of its copies in a larger one.
void add_spread(Array& x, const Array& bias, const Shape& strides);
/// The sum over the dimensions that the result, with `elements` and `strides`, lacks.
Array summed_up(const Array& x, std::int64_t elements, const Shape& strides);
/// Repeats an array along the dimensions that it lacks.
Array spread(const Shape& shape, const SpreadOperand& operand);
/// The largest elements over the dimensions that the result, with `elements` and `strides`, lacks.
Array largest_of(const Array& x, std::int64_t elements, const Shape& strides);
/// Elements as large as the largest share its gradient.
Array largest_grad(const Array& dy, const Array& x, const Shape& strides);

Array softmax(const Array& x, std::size_t dim);
Array softmax_grad(const Array& dy, const Array& x, std::size_t dim);

/// The chunk that the index names; outside of the dimension there are zeros.
Array chunk_of(const Array& x, std::size_t dim, std::int64_t size, std::int64_t index);
/// Zeros of that shape, with a chunk at its place.
Array put_into(const Shape& shape, const Array& chunk, std::size_t dim, std::int64_t index);

}  // namespace assay::engine
