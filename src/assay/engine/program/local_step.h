// One step of a program on one device: picks the operation's kernel and locates its operands in the whole tensors.
#pragma once
#include <vector>

#include "assay/engine/kernels/attention.h"
#include "assay/engine/kernels/layer.h"
#include "assay/engine/kernels/recurrence.h"
#include "assay/engine/program/tensor_layout.h"
#include "assay/model/transformer.h"

namespace assay::engine {

/// The values of a program's tensors in one pass, by tensor and device; empty if not computed yet.
using ProgramMemory = std::vector<Shards<double>>;

/// The context that a step runs in.
struct LocalContext {
  const TensorLayout& layout;
  const model::Layer* layer = nullptr;  ///< nullptr: embedding and head
  const ProgramMemory& memory;
  std::size_t device = 0;
  Numbers* state = nullptr;  ///< of a recurrent step, from earlier tokens
  double tokens = 1;         ///< the loss is averaged over these
};

class LocalStep {
 public:
  using Results = std::vector<Numbers>;

  LocalStep(const program::Step& step, const LocalContext& context)
      : step_(step), context_(context), layout_(context.layout), program_(context.layout.program()) {}

  /// The results of the step, without absent ones.
  Results run() const;

 private:
  struct Kernels;

  // --- a kernel for each operation
  Results product() const;
  Results embed() const;
  Results embed_grad() const;
  Results place() const;
  Results place_grad() const;
  Results bias_grad() const;
  Results norm() const;
  Results norm_grad() const;
  Results rotate() const;
  Results attention() const;
  Results attention_grad() const;
  Results pick() const;
  Results activate() const;
  Results activate_grad() const;
  Results gate() const;
  Results gate_grad() const;
  Results add() const;
  Results split() const;
  Results split_grad() const;
  Results route() const;
  Results route_grad() const;
  Results dispatch() const;
  Results dispatch_grad() const;
  Results combine() const;
  Results combine_grad() const;
  Results scan() const;
  Results scan_grad() const;
  Results convolve() const;
  Results convolve_grad() const;
  Results edge() const;
  Results edge_grad() const;
  Results shift() const;
  Results shift_grad() const;
  Results mix() const;
  Results mix_grad() const;
  Results cast() const;
  Results loss_sums() const;
  Results loss() const;
  Results loss_grad() const;
  Results sample() const;
  // These are in element_steps.cpp.
  Results map() const;
  Results map_grad() const;
  Results sum_grad() const;
  Results largest() const;
  Results largest_grad() const;
  Results softmax() const;
  Results softmax_grad() const;
  Results view() const;
  Results chunk() const;
  Results chunk_grad() const;
  Results put() const;
  Results put_grad() const;

  // --- operands
  /// nullptr where the step has no such input.
  const Numbers* maybe(std::size_t i) const;
  const Numbers& in(std::size_t i) const;
  std::vector<const Numbers*> all_inputs() const;
  struct InputGroups {
    std::vector<const Numbers*> first, others;
  };
  InputGroups inputs_cut_at(std::size_t first) const;
  /// Widths of the rows of all results.
  std::vector<std::int64_t> widths() const;

  // --- positions of operands
  Extent extent(int tensor, model::LogicalDim dim) const { return layout_.extent(tensor, dim, context_.device); }
  Extent vocabulary(int tensor) const { return extent(tensor, model::LogicalDim::vocabulary); }
  Extent experts(int tensor) const { return extent(tensor, model::LogicalDim::experts); }
  std::int64_t width(int tensor) const { return layout_.row_width(tensor, context_.device); }
  std::int64_t first_position(int tensor) const { return layout_.first_position(tensor, context_.device); }
  std::int64_t experts_per_token() const { return context_.layer->feed_forward->experts_per_token; }
  /// New keys and values written to their place in the cache.
  Numbers written_cache() const;
  /// Whether a norm computes the sums of rows instead of the rows.
  bool is_sums_of(int made, int x) const;
  NormShape norm_shape(int x, int scale) const;
  /// If each device holds whole groups, they are separate rows, each with its part of the scale.
  void cut_into_groups(NormShape& shape) const;
  const model::Attention& attention_of_layer() const;
  /// Positions for an attention step or its gradient, from the tensors of queries, keys and result.
  AttentionPlace attention_place(int q, int k, int out, const Numbers* picks) const;
  RecurrencePlace recurrence_place(int values, int keys) const;

  const program::Step& step_;
  const LocalContext& context_;
  const TensorLayout& layout_;
  const program::Program& program_;
};

}  // namespace assay::engine
