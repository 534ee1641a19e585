// A strategy: how many ways each kind of parallelism splits the work, and what that means as sharding rules.
// Mesh axes have the names of their roles: dp replicas of data, fsdp data with sharded weights, ep data that splits
// experts too, cp context, tp tensor. Pipeline stages are not part of the mesh: each stage runs its own program.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "assay/base/result.h"
#include "assay/model/transformer.h"
#include "assay/program/lower/rules.h"

namespace assay::lower {

/// How context parallelism brings keys to queries.
enum class ContextScheme : std::uint8_t {
  gather,   ///< keys and values pass around all devices (ring attention)
  exchange  ///< heads are split instead of the sequence, by two all-to-alls (Ulysses)
};
/// What splits the activations between the blocks of a tensor-parallel group.
enum class ResidualScheme : std::uint8_t {
  replicated,  ///< nothing: partial sums end in an all-reduce
  sequence,    ///< the sequence (sequence parallelism): gather in, reduce-scatter out
  model        ///< d_model, as the textbook writes it: as many bytes as `sequence`
};

/// Axes other than data parallelism that split experts.
struct ExpertAxes {
  bool tensor = false;   ///< tensor-parallel devices hold different experts, not a part of each
  bool context = false;  ///< devices of one context hold different experts
  friend bool operator==(const ExpertAxes&, const ExpertAxes&) = default;
};

struct Parallelism {
  std::int64_t data = 1;  ///< replicas
  std::int64_t fsdp = 1;  ///< data-parallel devices that shard the weights
  std::int64_t tensor = 1, context = 1;
  std::int64_t expert = 1;  ///< ways to split experts: over a part of data x fsdp, and over other axes
  ExpertAxes expert_over{};
  std::int64_t pipeline = 1;
  int zero = 0;  ///< what the replicas shard: 1 optimizer states, 2 gradients too, 3 weights too
  ResidualScheme residual = ResidualScheme::replicated;
  ContextScheme context_scheme = ContextScheme::gather;

  std::int64_t devices() const { return data * fsdp * tensor * context * pipeline; }
  /// Devices other than the data-parallel ones that split experts.
  std::int64_t expert_others() const { return (expert_over.tensor ? tensor : 1) * (expert_over.context ? context : 1); }
  std::int64_t expert_data() const { return expert / expert_others(); }
  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

/// The axes that split experts, as --ep-over takes them: "fsdp", "tp,dp". Data-parallel devices are named by where they
/// come from.
std::string expert_axes_text(const Parallelism& parallelism);

/// Checks that do not depend on the cluster: heads, widths, experts and layers divide as the scheme requires.
Result<void> check_parallelism(const Parallelism& parallelism, const model::Transformer& model);

/// Devices along the axes of a stage, by role.
std::array<std::int64_t, 5> stage_axis_sizes(const Parallelism& parallelism);

/// The mesh of one pipeline stage. Axes of one device are left out.
program::Mesh stage_mesh(const Parallelism& parallelism);

/// Mesh and rules of one pipeline stage of one model.
struct StageRules {
  program::Mesh mesh;
  ShardingRules rules;
};
/// Like stage_mesh() and training_rules(). If the model has fewer key heads than the tensor axis has devices, that
/// axis is cut into parts tp(1), tp(2), ...: the leading parts split the key heads, the others hold copies of them.
StageRules training_stage(const Parallelism& parallelism, const model::Transformer& model);

/// The rules of training on stage_mesh().
ShardingRules training_rules(const Parallelism& parallelism);

/// Where the caches of keys and values are placed in serving.
enum class CacheScheme : std::uint8_t { heads, batch, sequence };
/// How weights are sharded in serving: by their outputs (1D), in two directions (2D), or gathered before use.
enum class WeightScheme : std::uint8_t { one_dimension, two_dimensions, gathered };
struct ServingScheme {
  CacheScheme cache = CacheScheme::heads;
  WeightScheme weights = WeightScheme::one_dimension;
  friend bool operator==(const ServingScheme&, const ServingScheme&) = default;
};
/// The rules of prefill and decode: replicas dp, the second direction of weights fsdp, experts ep, tensor tp. With a
/// context axis, tp splits caches by heads and cp by the scheme; both together are the tensor-parallel group.
ShardingRules serving_rules(const Parallelism& parallelism, const ServingScheme& scheme);
/// Mesh and rules as stage_mesh() and serving_rules() give them, with the tensor axis cut as in training.
StageRules serving_stage(const Parallelism& parallelism, const ServingScheme& scheme, const model::Transformer& model);

}  // namespace assay::lower
