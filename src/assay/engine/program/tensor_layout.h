// Which part of each tensor of a program every virtual device holds.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/layout.h"
#include "assay/program/form/program.h"

namespace assay::engine {

/// An error that names a tensor which the mesh does not divide evenly.
Result<void> check_divides(const program::Program& program);

class TensorLayout {
 public:
  /// The program must outlive it. Throws where a tensor would be padded.
  explicit TensorLayout(const program::Program& program);

  const program::Program& program() const { return program_; }
  const program::Tensor& tensor(int id) const { return tensors_[static_cast<std::size_t>(id)]; }
  Shape local_shape(int tensor) const { return program::local_shape(program_.mesh, this->tensor(tensor)); }
  /// By dimension.
  const std::vector<Extent>& extents(int tensor, std::size_t device) const {
    return extents_[static_cast<std::size_t>(tensor)][device];
  }
  const Extent& extent(int tensor, model::LogicalDim dim, std::size_t device) const;
  /// Of the last dimension.
  std::int64_t row_width(int tensor, std::size_t device) const { return extents(tensor, device).back().size; }
  /// The position in the sequence of the first token that the program computes.
  std::int64_t first_position() const;
  /// The position of the first token of a tensor on a device.
  std::int64_t first_position(int tensor, std::size_t device) const;
  /// Which part of a sequence a device has, counted from 0.
  std::int64_t sequence_part(int tensor, std::size_t device) const;
  /// Whether a device is the first holder of partial sums of one part: the one that adds a bias.
  bool is_first_of(int tensor, std::size_t device) const;
  /// Of the devices with the same part of a tensor, whether this is the first.
  bool is_first_holder(int tensor, std::size_t device) const;
  /// The strides of a tensor along the dimensions of another one that has all of its dimensions.
  Shape strides_in(int small, int large, std::size_t device) const;

 private:
  bool is_first_along(program::AxisSet axes, std::size_t device) const;

  const program::Program& program_;
  std::vector<Coordinates> devices_;
  std::vector<program::Tensor> tensors_;
  std::vector<std::vector<std::vector<Extent>>> extents_;  ///< by tensor, device and dimension
};

}  // namespace assay::engine
