// The links of a strategy's axes: a mesh laid on a cluster, and what collectives over every set of its axes cost.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>

#include "assay/estimate/collective_models.h"
#include "assay/network/placement.h"
#include "assay/training/layer_cost.h"

namespace assay {

/// The estimate of collectives: floor + rate bytes + root sqrt(bytes), all in seconds and bytes.
struct CollectiveForm {
  double floor = 0, rate = 0, root = 0;
  friend bool operator==(const CollectiveForm&, const CollectiveForm&) = default;
  /// `count` collectives of `bytes` altogether.
  double seconds(double bytes, double count) const;
};

/// Straight-line costs of collectives over every set of roles of a placed mesh.
struct StageLinks {
  std::array<double, roles> size{1, 1, 1, 1, 1};
  std::array<std::array<CollectiveLine, 4>, 32> lines{};  ///< by set of roles, then gather, scatter, reduce, exchange
  std::array<std::array<CollectiveForm, 4>, 32> forms{};  ///< the same as estimates
  std::array<std::uint32_t, 32> resources{};              ///< links that a set of roles uses, a bit each
  RoleSets filled = 0;                                    ///< all others are free
  CollectiveLine between_stages;                          ///< per byte handed from a stage to the next
  CollectiveLine copies;       ///< sums over a stage and the one as far from the other end of the pipeline
  CollectiveForm copies_form;  ///< the same as an estimate
  double network_share = 1.0;  ///< of ideal bandwidth that good collectives reach

  /// The place of a kind in `lines`.
  static constexpr std::size_t line_of(CollectiveKind kind) {
    return kind == CollectiveKind::all_gather       ? 0
           : kind == CollectiveKind::reduce_scatter ? 1
           : kind == CollectiveKind::all_reduce     ? 2
                                                    : 3;
  }
  double ways(RoleSet set) const {
    double n = 1.0;
    for (std::size_t i = 0; i < roles; ++i)
      if (set >> i & 1u) n *= size[i];
    return n;
  }
};

/// What collectives over a group of devices cost.
struct GroupCosts {
  std::array<CollectiveLine, 4> lines;
  std::array<CollectiveForm, 4> forms;
  std::uint32_t resources = 0;
  std::uint32_t like = 0;  ///< a number from 1 on, the same of groups with the same estimates
};
/// From a stage to the next, and between both ends of the pipeline.
struct StageCosts {
  CollectiveLine between, copies;
  CollectiveForm copies_form;
};
/// Links in short, as long as the linker lives that laid them.
struct LaidLinks {
  std::array<const GroupCosts*, 32> groups{};  ///< by set of roles; none where no axis of more than one device is
  RoleSets sets = 0;                           ///< those that were asked for
  const StageCosts* stages = nullptr;
};

/// What tells the links of axes apart: that of pipeline stages, then by role; 0 where there is none.
using AxisNumbers = std::array<std::uint32_t, 1 + roles>;

/// Devices along pipeline stages and the axes of stage_mesh(), in this order.
std::array<std::int64_t, 1 + roles> whole_mesh_sizes(const Parallelism& parallelism);
/// The whole mesh in the order of a layout of these: P for pipeline stages. Axes of one device are left out.
Mesh whole_mesh(const Parallelism& parallelism, const AxisLayout& layout = {});
/// That mesh on a cluster.
Result<Placement> whole_placement(const Parallelism& parallelism, const AxisLayout& layout, const Cluster& cluster);

/// Devices along each role's axis.
std::array<double, roles> role_sizes(const Parallelism& parallelism);

/// Lays strategies on one cluster. What collectives over a group of devices cost is kept: few groups differ.
class StageLinker {
 public:
  /// Without a calibration the estimates are the straight lines at the share of the bandwidth that the chip's file
  /// gives. Refers to the cluster and the calibration.
  StageLinker(const Cluster& cluster, const CollectiveCalibration* calibration, const Routing& routing);

  /// The links of a strategy's axes; an error where they do not fit.
  Result<StageLinks> links(const Parallelism& parallelism, const AxisLayout& layout);
  /// The same in short, of some sets of roles.
  Result<LaidLinks> lay(const Parallelism& parallelism, const AxisLayout& layout, RoleSets sets = every_role_set);
  void fill(const Parallelism& parallelism, const LaidLinks& laid, StageLinks& links) const;
  /// Of one linker: those of two strategies are the same where their axes lie alike.
  Result<AxisNumbers> axis_numbers(const Parallelism& parallelism, const AxisLayout& layout);

  /// What no layout of a strategy's axes undercuts: each collective as if its devices had the best places, and none on
  /// the links of another. Only estimates are filled.
  StageLinks least_links(const Parallelism& parallelism, RoleSets sets = every_role_set);

 private:
  /// Lays a strategy's axes; gives their places in the mesh, as AxisNumbers are ordered, below 0: none.
  Result<std::array<int, 1 + roles>> place(const Parallelism& parallelism, const AxisLayout& layout);
  AxisNumbers numbers_of(const std::array<int, 1 + roles>& axes);
  /// Whether tokens are sent to experts in a group, and the numbers of its axes.
  using Key = std::array<std::uint32_t, 1 + roles>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
    std::size_t operator()(const AxisParts& parts) const;
  };
  /// The number, from 1 on, of the parts on which an axis lies; on a switched network the same where its devices lie in
  /// as many units of every level.
  std::uint32_t number_of(const AxisParts& parts);
  /// The estimate of a collective whose ideal is `line`.
  CollectiveForm form(CollectiveKind kind, const CollectiveGroup& group, const CollectiveLine& line) const;
  /// Of a group over some axes of the mesh that was placed, which have these numbers.
  const GroupCosts& costs(AxisSet axes, std::span<const std::uint32_t> numbers, bool is_routed);
  const StageCosts& stage_costs(int pipeline, std::uint32_t number);
  struct LeastCosts {
    std::array<CollectiveForm, 4> forms;
    CollectiveLine permute;
  };
  const LeastCosts& least_costs(std::int64_t devices, bool is_routed);

  const Cluster& cluster_;
  const CollectiveCalibration* calibration_;
  Routing routing_;
  Fabric fabric_;
  double network_share_;
  Seconds latency_;
  std::optional<Placement> placement_;  ///< of the last strategy
  std::unordered_map<Key, GroupCosts, KeyHash> known_;
  std::unordered_map<std::uint32_t, StageCosts> stages_;
  std::unordered_map<AxisParts, std::uint32_t, KeyHash> numbers_;
  std::unordered_multimap<std::uint64_t, const GroupCosts*> by_forms_;
  std::map<std::pair<std::int64_t, bool>, LeastCosts> least_;
};

/// The links of one strategy.
Result<StageLinks> stage_links(const Parallelism& parallelism, const AxisLayout& layout, const Cluster& cluster,
                               const CollectiveCalibration* calibration = nullptr, const Routing& routing = {});

/// Of the layers that send tokens to the most experts.
Routing routing_of(const Transformer& model, Dispatch dispatch = Dispatch::per_node);

}  // namespace assay
