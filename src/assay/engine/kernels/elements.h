// Functions of elements with operands that may lack dimensions of the result, reductions, and parts of dimensions.
// `strides` are those of an operand along the dimensions of the result, 0 where it lacks one.
#pragma once
#include <vector>

#include "assay/engine/kernels/layer.h"
#include "assay/program/form/functions.h"

namespace assay::engine {

/// An operand of a function of elements.
struct SpreadOperand {
  const Numbers* values = nullptr;
  Shape strides;
};

Numbers mapped(program::Function function, const Shape& shape, const std::vector<SpreadOperand>& operands);
/// The gradient of one operand: summed over the dimensions that it lacks.
Numbers mapped_grad(program::Function function, const Numbers& dy, const std::vector<SpreadOperand>& operands,
                    std::size_t which);

/// Repeats an array along the dimensions that it lacks.
Numbers spread(const Shape& shape, const SpreadOperand& operand);
/// The largest elements over the dimensions that the result, with `elements` and `strides`, lacks.
Numbers largest_of(const Numbers& x, std::int64_t elements, const Shape& strides);
/// Elements as large as the largest share its gradient.
Numbers largest_grad(const Numbers& dy, const Numbers& x, const Shape& strides);

Numbers softmax(const Numbers& x, std::size_t dim);
Numbers softmax_grad(const Numbers& dy, const Numbers& x, std::size_t dim);

/// The chunk that the index names; outside of the dimension there are zeros.
Numbers chunk_of(const Numbers& x, std::size_t dim, std::int64_t size, std::int64_t index);
/// Zeros of that shape, with a chunk at its place.
Numbers put_into(const Shape& shape, const Numbers& chunk, std::size_t dim, std::int64_t index);

}  // namespace assay::engine
