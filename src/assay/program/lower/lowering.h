// Lowers a model, a workload and sharding rules to the program that every device runs.
#pragma once
#include "assay/model/transformer.h"
#include "assay/program/lower/builder.h"
#include "assay/program/lower/layers/layers.h"
#include "assay/program/lower/strategy.h"

namespace assay::lower {

/// What the optimizer keeps for each weight in addition to the weight.
struct Optimizer {
  bool master = true;  ///< a copy of the weights in fp32
  /// Only the master copy is stored where weights are sharded; it is cast when they are gathered.
  bool cast_when_gathered = false;
  Dtype first_moment = Dtype::fp32, second_moment = Dtype::fp32;
  int moments = 2;  ///< 2 Adam, 1 momentum, 0 plain gradient descent

  /// Bytes of state per parameter, without the weight itself.
  Bytes state_bytes() const { return master_bytes() + moment_bytes(); }
  Bytes master_bytes() const;
  Bytes moment_bytes() const;
};

struct TrainingPlan {
  Workload work;  ///< work of one microbatch over all devices of a stage
  std::int64_t microbatches = 1;
  Formats formats;
  Recompute recompute;
  Optimizer optimizer;
};

/// An error that names the part of a model that has no program yet: it can be counted, but neither trained nor served.
/// `where` names the argument.
Result<void> check_lowers(const model::Transformer& model, std::string_view where);

/// One optimizer step of one pipeline stage that holds all layers: forward and backward of each kind of layer,
/// embedding, head and loss, and the update.
program::Program lower_training(const model::Transformer& model, const program::Mesh& mesh, const ShardingRules& rules,
                                const TrainingPlan& plan);

/// One serving step: prefill if work.queries > 1, otherwise decode of one token. The head only works on the last token
/// of each sequence.
program::Program lower_serving(const model::Transformer& model, const program::Mesh& mesh, const ShardingRules& rules,
                               const Workload& work, const Formats& formats);

/// The encoder's pass over work.source tokens of each sequence, before the first decoder step. Block kinds refer to
/// the encoder's layers.
program::Program lower_encoder(const model::Transformer& model, const program::Mesh& mesh, const ShardingRules& rules,
                               const Workload& work, const Formats& formats);

/// Bytes on one device kept from the forward to the backward pass of one layer of that kind, for one microbatch.
Bytes kept_bytes(const program::Program& program, const program::Block& forward);
/// The input of all layers that is kept in addition, once: the encoder's output or the embedding; below 0: none.
int kept_encoded(const program::Program& program, const program::Block& forward);
Bytes kept_encoded_bytes(const program::Program& program, const program::Block& forward);

}  // namespace assay::lower
