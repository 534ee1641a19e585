#include "assay/engine/program/tensor_layout.h"

#include <fmt/format.h>

#include "assay/base/result.h"

namespace assay::engine {

Result<void> check_divides(const program::Program& program) {
  for (const program::ProgramTensor& tensor : program.tensors) {
    program::Tensor checked = program::to_tensor(program, tensor);
    // Attention ignores the padding of a cache.
    if (const int along = tensor.find(model::LogicalDim::context); along >= 0)
      checked.sharding.dims[static_cast<std::size_t>(along)] = {};
    if (program::is_padded(program.mesh, checked))
      return fail("run",
                  fmt::format("{} does not divide evenly, and padding is not executed",
                              program::tensor_text(program.mesh, checked)),
                  "choose sizes that the mesh divides: heads, widths, the batch, --seq, --vocabulary");
  }
  return {};
}

TensorLayout::TensorLayout(const program::Program& program) : program_(program) {
  if (const auto divides = check_divides(program); !divides) throw InternalError(divides.error().what);
  const std::int64_t count = program.mesh.devices();
  for (std::int64_t d = 0; d < count; ++d) devices_.push_back(coordinates(program.mesh, d));
  for (const program::ProgramTensor& tensor : program.tensors) {
    tensors_.push_back(program::to_tensor(program, tensor));
    auto& here = extents_.emplace_back();
    for (const Coordinates& device : devices_) here.push_back(extents_on(program.mesh, tensors_.back(), device));
  }
}

const Extent& TensorLayout::extent(int tensor, model::LogicalDim dim, std::size_t device) const {
  return extents(tensor, device)[static_cast<std::size_t>(program_.tensor(tensor).find(dim))];
}

std::int64_t TensorLayout::first_position() const {
  if (program_.attentions.empty()) return 0;
  return program_.attentions.front().keys - program_.attentions.front().queries;
}

std::int64_t TensorLayout::first_position(int tensor, std::size_t device) const {
  return first_position() + extent(tensor, model::LogicalDim::sequence, device).start;
}

std::int64_t TensorLayout::sequence_part(int tensor, std::size_t device) const {
  const Extent& here = extent(tensor, model::LogicalDim::sequence, device);
  return here.start / here.size;
}

bool TensorLayout::is_first_along(program::AxisSet axes, std::size_t device) const {
  const Coordinates& place = devices_[device];
  for (std::size_t axis = 0; axis < place.size(); ++axis)
    if ((axes & program::axis_bit(static_cast<int>(axis))) != 0 && place[axis] != 0) return false;
  return true;
}

bool TensorLayout::is_first_of(int tensor, std::size_t device) const {
  return is_first_along(program_.tensor(tensor).sharding.unreduced, device);
}

bool TensorLayout::is_first_holder(int tensor, std::size_t device) const {
  return is_first_along(~program_.tensor(tensor).sharding.split_axes(), device);
}

Shape TensorLayout::strides_in(int small, int large, std::size_t device) const {
  const program::ProgramTensor &part = program_.tensor(small), &whole = program_.tensor(large);
  Shape strides(whole.rank, 0);
  std::int64_t stride = 1;
  for (int i = part.rank; i-- > 0;) {
    const auto dim = static_cast<std::size_t>(i);
    strides[static_cast<std::size_t>(whole.find(part.dims[dim].dim))] = stride;
    stride *= extents(small, device)[dim].size;
  }
  return strides;
}

}  // namespace assay::engine
