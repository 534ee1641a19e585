// One step of a program, executed on virtual devices with real numbers.
#pragma once
#include <vector>

#include "assay/execute/devices.h"
#include "assay/execute/kernels/layer.h"
#include "assay/execute/kernels/recurrence.h"
#include "assay/model/transformer.h"
#include "assay/program/program.h"

namespace assay::execute {

/// The values of a program's tensors in one pass, by tensor and device; empty where nothing was made yet.
using ProgramMemory = std::vector<Shards<double>>;

/// How much of a gradient the updates of executed programs take off: plain gradient descent.
inline constexpr double descent_rate = 0.1;

class StepRunner {
 public:
  /// The program must outlive it. `tokens`: over which the loss is averaged.
  StepRunner(const program::Program& program, double tokens);

  /// Runs a step of a block of `layer` (nullptr: embedding and head).
  void run(const program::Step& step, const model::Layer* layer, ProgramMemory& memory);
  /// From now on recurrent steps go on from these states, one after the other, and leave new ones; nullptr: from none.
  void carry(std::vector<Shards<double>>* states) { states_ = states, next_state_ = 0; }

  Shards<double> distributed(const Array<double>& global, int tensor) const;
  /// The global array; notes how far devices that should hold the same disagree.
  Array<double> collected(int tensor, const ProgramMemory& memory);

  /// The largest difference so far between devices that should hold the same.
  double disagreement() const { return disagreement_; }
  /// The largest difference so far between the bytes a collective moved and those it says, as a share.
  double byte_error() const { return byte_error_; }
  Bytes moved() const { return moved_; }  ///< by the mean device

 private:
  struct Operands;

  Shards<double> run_collective(const program::Step& step, const Shards<double>& from);
  std::vector<Array<double>> run_local(const program::Step& step, const model::Layer* layer,
                                       const Operands& operands) const;
  std::vector<Array<double>> run_attention(const program::Step& step, const model::Attention& a,
                                           const Operands& operands) const;
  Array<double> multiplied(const program::Step& step, const Operands& operands) const;
  Array<double> added(const program::Step& step, const Operands& operands) const;
  /// Whether a device is the first of those that hold partial sums of one part: the one that adds what comes once.
  bool is_first_of(int tensor, std::size_t device) const;
  Shape spread(int small, int large, std::size_t device) const;
  Array<double> written_cache(const program::Step& step, const Operands& operands) const;
  /// Whether a norm makes the sums of rows, not the rows.
  bool is_sums_of(int made, int x) const;
  NormShape norm_shape(int x, int scale, const Operands& operands) const;
  void cut_into_groups(const program::Step& step, NormShape& shape) const;
  RecurrencePlace recurrence_place(int values, int keys, const model::StateSpace& s, const Operands& operands) const;
  const Extent& extent(int tensor, model::LogicalDim dim, std::size_t device) const;
  std::int64_t first_position() const;
  /// Which part of a sequence a device has, counted from 0.
  std::int64_t sequence_part(int tensor, std::size_t device) const;
  void check_layouts(const program::Step& step) const;

  const program::Program& program_;
  double tokens_;
  VirtualDevices<double> devices_;
  std::vector<program::Tensor> tensors_;
  std::vector<std::vector<std::vector<Extent>>> extents_;  ///< by tensor, device and dimension
  std::vector<Shards<double>>* states_ = nullptr;
  std::size_t next_state_ = 0;
  double disagreement_ = 0, byte_error_ = 0;
  Bytes moved_;
};

}  // namespace assay::execute
