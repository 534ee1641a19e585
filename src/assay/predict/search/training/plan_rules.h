// What training software can express: the plans that a search may consider.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/predict/kernel/software/software.h"
#include "assay/predict/training/step.h"

namespace assay::search {

struct TrainingChoices;

/// The plan rules of one software. By default there are none: everything is allowed.
struct PlanRules {
  using Bits = std::uint16_t;
  static constexpr Bits all = 0xffff;
  /// A bit for each allowed schedule, residual scheme, ZeRO stage, context scheme, named policy or way to offload.
  Bits schedules = all, residuals = all, expert_residuals = all, zeros = all, stage_zeros = all, fsdp_zeros = all,
       contexts = all, policies = all, offloads = all;

  /// How layers may be split over stages: as many on each, with embedding and loss counted as layers, or written out
  /// by hand, which is searched only where the user fixes the stages or no usual number of them divides the layers.
  enum class Layers : std::uint8_t { even, ends, layout, any };
  Bits layers = all;
  /// Ways to split a model by tensor parallelism: not at all, by key heads, by copies of them, or any.
  enum class Tensor : std::uint8_t { none, key_heads, copies, any };
  Tensor tensor = Tensor::any;
  bool vocabulary_divides = false;  ///< tensor parallelism must divide the vocabulary
  bool fsdp = true, stage_fsdp = true;
  bool hybrid = true;  ///< replicas of fully sharded groups
  /// Axes that may split experts, and those that have to where they are longer than one device.
  bool experts = true;
  bool experts_are_sharded = false;  ///< experts are distributed over some of the chips that shard weights
  lower::ExpertAxes experts_over{true, true}, experts_over_whole{};
  /// Orders of mesh axes (whole_mesh_sizes()) on switched networks, outermost first; empty: any. Axes of a torus go
  /// where they fit.
  std::vector<std::array<std::uint8_t, 6>> orders;

  template <class T>
  static bool has(Bits bits, T value) {
    return bits >> static_cast<unsigned>(value) & 1u;
  }
  /// ZeRO stages of the replicas of a mesh.
  Bits zeros_of(const lower::Parallelism& p) const {
    return static_cast<Bits>((p.pipeline > 1 ? stage_zeros : zeros) & (p.fsdp > 1 ? fsdp_zeros : all));
  }
  bool limits_orders(const hardware::Cluster& cluster) const { return !orders.empty() && !cluster.torus; }
  /// Whether `stages` stages of `chunks` chunks each may hold the layers; `is_asked` means that the user fixed them.
  bool splits_layers(std::int64_t layer_count, std::int64_t stages, std::int64_t chunks, bool is_asked) const;
  /// Whether a mesh can be written; whether its layers can be split is another question.
  bool allows(const lower::Parallelism& p, const model::Transformer& model) const;
};

/// The rules that the properties of a software state; rules that it does not state allow everything.
Result<PlanRules> read_plan_rules(std::span<const kernel::SoftwareProperty> plan);

/// A choice of the user that the software cannot express.
struct PlanConflict {
  std::string rule;    ///< rule of the software: "schedules"
  std::string option;  ///< option of the request: "--schedule"
  std::string what;    ///< "zb-v is none of its pipeline schedules"
};
std::vector<PlanConflict> plan_conflicts(const PlanRules& rules, const TrainingChoices& choices,
                                         const model::Transformer& model, const hardware::Cluster& cluster);

}  // namespace assay::search
