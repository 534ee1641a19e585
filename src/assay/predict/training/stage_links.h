// The links of a strategy's axes: a mesh placed on a cluster, and what collectives over every set of its axes cost.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>

#include "assay/predict/collective/collective_models.h"
#include "assay/predict/collective/placement.h"
#include "assay/predict/training/layer_cost.h"

namespace assay::training {

using CollectiveForm = collective::CollectiveForm<Plain>;

/// Straight-line costs of collectives over every set of roles of a placed mesh.
struct StageLinks {
  std::array<double, roles> size{1, 1, 1, 1, 1};
  static constexpr std::size_t kinds = 4;  ///< of collectives in lowered programs: the first ones
  std::array<std::array<collective::CollectiveLine, kinds>, 32> lines{};  ///< by set of roles, then kind
  std::array<std::array<CollectiveForm, kinds>, 32> forms{};              ///< the same as estimates
  std::array<std::uint32_t, 32> resources{};  ///< links that a set of roles uses, a bit each
  RoleSets filled = 0;                        ///< sets that are filled; all others are free
  collective::CollectiveLine between_stages;  ///< per byte handed from a stage to the next
  collective::CollectiveLine copies;  ///< sums over a stage and its mirror image at the other end of the pipeline
  CollectiveForm copies_form;         ///< the same as an estimate
  double network_share = 1.0;         ///< of ideal bandwidth that good collectives reach

  /// The place of a kind in `lines`; the steps of a program have no other kinds.
  static constexpr std::size_t line_of(program::Collective kind) {
    const auto line = static_cast<std::size_t>(kind);
    if (line >= kinds) throw InternalError("no costs are kept for this kind of collective");
    return line;
  }
  const CollectiveForm& form(RoleSet over, program::Collective kind) const { return forms[over][line_of(kind)]; }
  /// At the full bandwidth.
  SecondsPerByte ideal_per_byte(RoleSet over, program::Collective kind) const {
    return lines[over][line_of(kind)].rate;
  }
  std::uint32_t resources_of(RoleSet over) const { return resources[over]; }
  /// Sends between stages at the full bandwidth, and what they take at the share of it that is reached.
  CollectiveForm between_stages_form() const { return CollectiveForm({between_stages.floor, between_stages.rate, {}}); }
  Seconds reached(Seconds ideal) const { return ideal / network_share; }
  double ways(RoleSet set) const {
    double n = 1.0;
    for (std::size_t i = 0; i < roles; ++i)
      if (set >> i & 1u) n *= size[i];
    return n;
  }
};

/// What collectives over a group of devices cost.
struct GroupCosts {
  std::array<collective::CollectiveLine, StageLinks::kinds> lines;
  std::array<CollectiveForm, StageLinks::kinds> forms;
  std::uint32_t resources = 0;
  std::uint32_t like = 0;  ///< a number from 1 on, equal for groups with the same estimates
};
/// From a stage to the next, and between both ends of the pipeline.
struct StageCosts {
  collective::CollectiveLine between, copies;
  CollectiveForm copies_form;
};
/// Links by reference, valid as long as the linker that placed them.
struct PlacedLinks {
  std::array<const GroupCosts*, 32> groups{};  ///< by set of roles; null where all axes have one device
  RoleSets sets = 0;                           ///< those that were requested
  const StageCosts* stages = nullptr;
};

/// Numbers that identify the links of axes: of pipeline stages, then by role; 0 for none.
using AxisNumbers = std::array<std::uint32_t, 1 + roles>;

/// The axes of a whole mesh in the usual order, outermost first; layouts number them so.
inline constexpr std::array<Role, 1 + roles> whole_mesh_roles{Role::pipeline, Role::data,    Role::fsdp,
                                                              Role::expert,   Role::context, Role::tensor};
/// The number of the axis with that name.
std::optional<std::uint8_t> whole_mesh_axis(std::string_view name);
/// Devices along each of them.
std::array<std::int64_t, 1 + roles> whole_mesh_sizes(const lower::Parallelism& parallelism);
/// The whole mesh in the order of a layout. Axes of one device are left out.
program::Mesh whole_mesh(const lower::Parallelism& parallelism, const collective::AxisLayout& layout = {});
/// The names of its axes as --order takes them: "pp,dp,tp"; empty on one device.
std::string axis_order(const lower::Parallelism& parallelism, const collective::AxisLayout& layout);
/// That mesh on a cluster.
Result<collective::Placement> whole_placement(const lower::Parallelism& parallelism,
                                              const collective::AxisLayout& layout, const hardware::Cluster& cluster);

/// Devices along each role's axis.
std::array<double, roles> role_sizes(const lower::Parallelism& parallelism);

/// Places strategies on one cluster. Costs of collectives are cached by group of devices: few groups differ.
class StageLinker {
 public:
  /// Without a calibration the estimates are the straight lines at the share of the bandwidth that the chip's file
  /// gives. Refers to the cluster and the calibration.
  StageLinker(const hardware::Cluster& cluster, const hardware::CollectiveCalibration* calibration,
              const collective::Routing& routing);

  /// The links of a strategy's axes; an error where they do not fit.
  Result<StageLinks> links(const lower::Parallelism& parallelism, const collective::AxisLayout& layout);
  /// The same by reference, for some sets of roles.
  Result<PlacedLinks> place_links(const lower::Parallelism& parallelism, const collective::AxisLayout& layout,
                                  RoleSets sets = every_role_set);
  void fill(const lower::Parallelism& parallelism, const PlacedLinks& placed, StageLinks& links) const;
  /// Equal for two strategies of one linker if their axes are placed alike.
  Result<AxisNumbers> axis_numbers(const lower::Parallelism& parallelism, const collective::AxisLayout& layout);

  /// The devices of a set of roles of a strategy, and of its stages.
  Result<collective::CollectiveGroup> group_of(const lower::Parallelism& parallelism,
                                               const collective::AxisLayout& layout, RoleSet over);
  Result<collective::CollectiveGroup> stages_of(const lower::Parallelism& parallelism,
                                                const collective::AxisLayout& layout);
  /// The estimate of a collective; labels and sources are for explanations.
  template <class N>
  collective::CollectiveForm<N> form(const N& num, program::Collective kind, const collective::CollectiveGroup& group,
                                     const collective::CollectiveLabels* labels = nullptr,
                                     const SourceTable* sources = nullptr) const {
    return calibration_
               ? collective::collective_form(num, *calibration_, kind, group,
                                             {fabric_, collective::CollectiveAlgorithm::automatic, sources, labels})
               : collective::uncalibrated_form(num, cluster_.chip, kind, group, labels);
  }

  /// A lower bound over all layouts of a strategy's axes: each collective as if its devices had the best places and
  /// links of their own. Only estimates are filled; `links` are new or were filled by this before.
  void least_links(const lower::Parallelism& parallelism, RoleSets sets, StageLinks& links);

 private:
  /// Places a strategy's axes; returns their positions in the mesh in the order of AxisNumbers, negative for none.
  Result<std::array<int, 1 + roles>> place(const lower::Parallelism& parallelism, const collective::AxisLayout& layout);
  AxisNumbers numbers_of(const std::array<int, 1 + roles>& axes);
  /// Whether a group sends tokens to experts, and the numbers of its axes.
  using Key = std::array<std::uint32_t, 1 + roles>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
    std::size_t operator()(const collective::AxisParts& parts) const;
  };
  /// The number, from 1, of the parts that an axis is placed on; on a switched network, equal if its devices are in
  /// the same number of units at every level.
  std::uint32_t number_of(const collective::AxisParts& parts);
  /// The axes of a set of roles, without those of one device, and whether tokens are routed over them.
  struct PlacedRoles {
    program::AxisSet axes = 0;
    RoleSet rest = 0;
    bool is_routed = false;
  };
  static PlacedRoles placed_roles(const lower::Parallelism& parallelism, const std::array<int, 1 + roles>& places,
                                  RoleSet set);
  collective::CollectiveGroup group(program::AxisSet axes, bool is_routed) const;
  /// Of a group over some axes of the placed mesh, which have these numbers.
  const GroupCosts& costs(program::AxisSet axes, std::span<const std::uint32_t> numbers, bool is_routed);
  const StageCosts& stage_costs(int pipeline, std::uint32_t number);
  struct LeastCosts {
    std::array<CollectiveForm, StageLinks::kinds> forms;
    collective::CollectiveLine permute;
  };
  const LeastCosts& least_costs(std::int64_t devices, bool is_routed);

  const hardware::Cluster& cluster_;
  const hardware::CollectiveCalibration* calibration_;
  collective::Routing routing_;
  hardware::Fabric fabric_;
  double network_share_;
  std::optional<collective::Placement> placement_;  ///< of the last strategy
  std::unordered_map<Key, GroupCosts, KeyHash> known_;
  std::unordered_map<std::uint32_t, StageCosts> stages_;
  std::unordered_map<collective::AxisParts, std::uint32_t, KeyHash> numbers_;
  std::unordered_multimap<std::uint64_t, const GroupCosts*> by_forms_;
  std::map<std::pair<std::int64_t, bool>, LeastCosts> least_;
};

/// Two stages at the same distance from opposite ends of the pipeline, in a group of all stages. On a switched network
/// they are on opposite sides of the highest level. On a torus the paths of all such pairs cross in the middle of an
/// axis; on a ring half of them take the other direction.
collective::CollectiveGroup mirrored_pair(collective::CollectiveGroup group);

/// The links of one strategy.
Result<StageLinks> stage_links(const lower::Parallelism& parallelism, const collective::AxisLayout& layout,
                               const hardware::Cluster& cluster,
                               const hardware::CollectiveCalibration* calibration = nullptr,
                               const collective::Routing& routing = {});

/// The routing of the layers that send tokens to the most experts.
collective::Routing routing_of(const model::Transformer& model, Dispatch dispatch = Dispatch::per_node);

}  // namespace assay::training
