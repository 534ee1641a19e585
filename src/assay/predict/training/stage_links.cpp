#include "assay/predict/training/stage_links.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay::training {

std::array<std::int64_t, 1 + roles> whole_mesh_sizes(const lower::Parallelism& parallelism) {
  std::array<std::int64_t, 1 + roles> sizes{parallelism.pipeline};
  const auto stage = lower::stage_axis_sizes(parallelism);
  std::copy(stage.begin(), stage.end(), sizes.begin() + 1);
  return sizes;
}

program::Mesh whole_mesh(const lower::Parallelism& parallelism, const collective::AxisLayout& layout) {
  const auto sizes = whole_mesh_sizes(parallelism);
  program::Mesh mesh;
  for (const std::size_t axis : layout.order)
    if (axis < sizes.size() && sizes[axis] > 1)
      mesh.axes.push_back(program::axis_of(whole_mesh_roles[axis], sizes[axis]));
  if (mesh.axes.empty()) mesh.axes.push_back(program::axis_of(Role::data, 1));
  return mesh;
}

std::optional<std::uint8_t> whole_mesh_axis(std::string_view name) {
  for (std::size_t axis = 0; axis < whole_mesh_roles.size(); ++axis)
    if (program::name(whole_mesh_roles[axis]) == name) return static_cast<std::uint8_t>(axis);
  return std::nullopt;
}

std::string axis_order(const lower::Parallelism& parallelism, const collective::AxisLayout& layout) {
  std::vector<std::string> names;
  for (const program::MeshAxis& axis : whole_mesh(parallelism, layout).axes)
    if (axis.size > 1) names.push_back(axis.name);
  return join(names, ",");
}

Result<collective::Placement> whole_placement(const lower::Parallelism& parallelism,
                                              const collective::AxisLayout& layout, const hardware::Cluster& cluster) {
  return collective::Placement::make(whole_mesh(parallelism, layout), cluster, "strategy", layout.torus_order);
}

namespace {

/// The links that a set of mesh axes uses: torus axes, or levels of the tree that are really crossed.
std::uint32_t resources_of(const collective::Placement& placement, const collective::CollectiveGroup& group,
                           program::AxisSet axes) {
  std::uint32_t bits = 0;
  if (!group.axes.empty() || group.levels.empty())
    for (; axes != 0; axes &= axes - 1)
      for (const collective::AxisPart& part : placement.parts(std::countr_zero(axes))) bits |= 1u << part.axis;
  for (std::size_t l = 0; l < group.levels.size(); ++l)
    if (group.levels[l].groups > 1.0) bits |= 1u << (16 + l);
  return bits;
}

}  // namespace

collective::CollectiveGroup mirrored_pair(collective::CollectiveGroup group) {
  if (group.devices <= 2.0) return group;
  group.devices = 2.0;
  if (group.torus()) {
    double crossing = 1.0;
    for (const auto& axis : group.axes)
      crossing = std::max(crossing, axis.share * std::ceil(axis.size / (axis.ring && !group.one_way ? 4.0 : 2.0)));
    group.axes = {};
    group.axes.push_back({2.0, false, crossing});
    return group;
  }
  collective::CollectiveGroup::TreeLevel highest = group.levels[0];
  for (const auto& level : group.levels)
    if (level.groups > 1.0) highest = level;
  highest.groups = 2.0;
  highest.lanes = group.inner;
  group.axes = {}, group.levels = {};
  group.levels.push_back(highest);
  return group;
}

std::array<double, roles> role_sizes(const lower::Parallelism& parallelism) {
  std::array<double, roles> sizes{1, 1, 1, 1, 1};
  const auto axes = lower::stage_axis_sizes(parallelism);
  for (std::size_t r = 0; r < roles; ++r) sizes[r] = static_cast<double>(axes[r]);
  return sizes;
}

collective::Routing routing_of(const model::Transformer& model, Dispatch dispatch) {
  collective::Routing routing;
  if (dispatch == Dispatch::per_expert) return routing;  // as if every copy were a token of its own
  for (const model::Layer& layer : model.decoder.kinds) {
    if (!layer.feed_forward) continue;
    const model::FeedForward& experts = *layer.feed_forward;
    if (static_cast<double>(experts.experts_per_token) > routing.copies)
      routing = {static_cast<double>(experts.experts_per_token), static_cast<double>(experts.experts),
                 static_cast<double>(experts.expert_groups), static_cast<double>(experts.groups_per_token)};
  }
  return routing;
}

StageLinker::StageLinker(const hardware::Cluster& cluster, const hardware::CollectiveCalibration* calibration,
                         const collective::Routing& routing)
    : cluster_(cluster),
      calibration_(calibration),
      routing_(routing),
      fabric_(hardware::fabric_of(cluster.chip.network.scale_out && cluster.chip.network.scale_out->technology
                                      ? *cluster.chip.network.scale_out->technology
                                      : "")),
      network_share_(hardware::network_efficiency(cluster.chip)) {}

std::size_t StageLinker::KeyHash::operator()(const Key& key) const {
  std::uint64_t h = 1469598103934665603ull;
  for (const std::uint32_t part : key) h = (h ^ part) * 1099511628211ull;
  return static_cast<std::size_t>(h);
}

std::size_t StageLinker::KeyHash::operator()(const collective::AxisParts& parts) const {
  std::uint64_t h = 1469598103934665603ull;
  for (const collective::AxisPart& part : parts)
    for (const std::uint64_t number :
         {std::uint64_t{part.axis}, static_cast<std::uint64_t>(part.size), static_cast<std::uint64_t>(part.stride)})
      h = (h ^ number) * 1099511628211ull;
  return static_cast<std::size_t>(h);
}

std::uint32_t StageLinker::number_of(const collective::AxisParts& parts) {
  const auto [known, is_new] = numbers_.try_emplace(parts, static_cast<std::uint32_t>(numbers_.size() + 1));
  if (!is_new || cluster_.torus) return known->second;
  const auto is_alike = [&](const collective::AxisPart& part) {
    return part.size == parts[0].size &&
           std::all_of(cluster_.levels.begin(), cluster_.levels.end(), [&](const hardware::Level& level) {
             return collective::devices_within(part, level.chips) == collective::devices_within(parts[0], level.chips);
           });
  };
  for (const auto& [other, number] : numbers_)
    if (number < known->second && is_alike(other[0])) return known->second = number;
  return known->second;
}

const StageCosts& StageLinker::stage_costs(int pipeline, std::uint32_t number) {
  const auto [known, is_new] = stages_.try_emplace(number);
  StageCosts& costs = known->second;
  if (!is_new) return costs;
  const collective::CollectiveGroup stages = placement_->group(program::axis_bit(pipeline)),
                                    pair = mirrored_pair(stages);
  costs.between = collective::collective_line(program::Collective::permute, stages);
  costs.copies = collective::collective_line(program::Collective::all_reduce, pair);
  costs.copies_form = form(Plain{}, program::Collective::all_reduce, pair);
  return costs;
}

const GroupCosts& StageLinker::costs(program::AxisSet axes, std::span<const std::uint32_t> numbers, bool is_routed) {
  Key key{is_routed};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::size_t at = i + 1;
    for (; !cluster_.torus && at > 1 && key[at - 1] > numbers[i]; --at) key[at] = key[at - 1];  // order does not matter
    key[at] = numbers[i];
  }
  const auto [known, is_new] = known_.try_emplace(key);
  GroupCosts& costs = known->second;
  if (!is_new) return costs;
  const collective::CollectiveGroup group = this->group(axes, is_routed);
  for (std::size_t k = 0; k < StageLinks::kinds; ++k) {
    const auto kind = static_cast<program::Collective>(k);
    costs.lines[k] = collective::collective_line(kind, group);
    costs.forms[k] = form(Plain{}, kind, group);
  }
  costs.resources = resources_of(*placement_, group, axes);
  std::uint64_t hash = 0;
  for (const CollectiveForm& form : costs.forms)
    for (const double number : {form.latency.value(), form.per_byte.value(), form.fill.value(), form.pipeline.value()})
      hash = (hash ^ std::hash<double>{}(number)) * 1099511628211ull;
  costs.like = static_cast<std::uint32_t>(known_.size());
  const auto [first, last] = by_forms_.equal_range(hash);
  for (auto other = first; other != last; ++other)
    if (other->second->forms == costs.forms) costs.like = other->second->like;
  by_forms_.emplace(hash, &costs);
  return costs;
}

Result<StageLinks> StageLinker::links(const lower::Parallelism& parallelism, const collective::AxisLayout& layout) {
  ASSAY_TRY(placed, place_links(parallelism, layout));
  StageLinks links;
  fill(parallelism, placed, links);
  return links;
}

void StageLinker::fill(const lower::Parallelism& parallelism, const PlacedLinks& placed, StageLinks& links) const {
  links.network_share = network_share_;
  links.size = role_sizes(parallelism);
  for (RoleSets rest = links.filled | placed.sets; rest != 0; rest &= rest - 1) {
    static constexpr GroupCosts none{};
    const auto set = static_cast<std::size_t>(std::countr_zero(rest));
    const GroupCosts& costs = placed.groups[set] ? *placed.groups[set] : none;
    links.lines[set] = costs.lines;
    links.forms[set] = costs.forms;
    links.resources[set] = costs.resources;
  }
  links.filled = placed.sets;
  const StageCosts stages = placed.stages ? *placed.stages : StageCosts{};
  links.between_stages = stages.between;
  links.copies = stages.copies;
  links.copies_form = stages.copies_form;
}

Result<std::array<int, 1 + roles>> StageLinker::place(const lower::Parallelism& parallelism,
                                                      const collective::AxisLayout& layout) {
  const auto sizes = whole_mesh_sizes(parallelism);
  collective::FixedList<std::int64_t, 1 + roles> placed;
  std::array<int, 1 + roles> axes;
  axes.fill(-1);
  for (const std::size_t axis : layout.order)
    if (axis < sizes.size() && sizes[axis] > 1) {
      axes[axis] = static_cast<int>(placed.size());
      placed.push_back(sizes[axis]);
    }
  if (placed.empty() && cluster_.chips() == 1) return axes;
  if (!placement_ || cluster_.torus || parallelism.devices() != cluster_.chips()) {
    ASSAY_TRY(placement, whole_placement(parallelism, layout, cluster_));
    placement_ = placement;
  } else {
    placement_->stretch({placed.begin(), placed.size()});
  }
  return axes;
}

AxisNumbers StageLinker::numbers_of(const std::array<int, 1 + roles>& axes) {
  AxisNumbers numbers{};
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] >= 0) numbers[i] = number_of(placement_->parts(axes[i]));
  return numbers;
}

Result<AxisNumbers> StageLinker::axis_numbers(const lower::Parallelism& parallelism,
                                              const collective::AxisLayout& layout) {
  ASSAY_TRY(axes, place(parallelism, layout));
  return numbers_of(axes);
}

StageLinker::PlacedRoles StageLinker::placed_roles(const lower::Parallelism& parallelism,
                                                   const std::array<int, 1 + roles>& places, RoleSet set) {
  PlacedRoles out;
  for (std::size_t r = 0; r < roles; ++r)
    if (set >> r & 1u && places[1 + r] >= 0) {
      out.axes |= program::axis_bit(places[1 + r]);
      out.rest |= static_cast<RoleSet>(1u << r);
    }
  out.is_routed = set & role_bit(Role::expert) && parallelism.expert_others() > 1;
  return out;
}

collective::CollectiveGroup StageLinker::group(program::AxisSet axes, bool is_routed) const {
  collective::CollectiveGroup group = placement_->group(axes);
  if (is_routed) group.routing = routing_;
  return group;
}

Result<collective::CollectiveGroup> StageLinker::group_of(const lower::Parallelism& parallelism,
                                                          const collective::AxisLayout& layout, RoleSet over) {
  ASSAY_TRY(places, place(parallelism, layout));
  const PlacedRoles placed = placed_roles(parallelism, places, over);
  if (placed.axes == 0) return collective::CollectiveGroup();
  return group(placed.axes, placed.is_routed || placed.rest & role_bit(Role::expert));
}

Result<collective::CollectiveGroup> StageLinker::stages_of(const lower::Parallelism& parallelism,
                                                           const collective::AxisLayout& layout) {
  ASSAY_TRY(places, place(parallelism, layout));
  return placement_->group(program::axis_bit(places[0]));
}

Result<PlacedLinks> StageLinker::place_links(const lower::Parallelism& parallelism,
                                             const collective::AxisLayout& layout, RoleSets sets) {
  ASSAY_TRY(places, place(parallelism, layout));
  const AxisNumbers numbers = numbers_of(places);
  PlacedLinks links;
  links.sets = sets;
  for (; sets != 0; sets &= sets - 1) {
    const auto set = static_cast<RoleSet>(std::countr_zero(sets));
    const PlacedRoles placed = placed_roles(parallelism, places, set);
    if (placed.axes == 0) continue;
    if (placed.rest != set && !placed.is_routed && links.groups[placed.rest]) {  // they add nothing
      links.groups[set] = links.groups[placed.rest];
      continue;
    }
    collective::FixedList<std::uint32_t, roles> of_axes;
    for (std::size_t r = 0; r < roles; ++r)
      if (placed.rest >> r & 1u) of_axes.push_back(numbers[1 + r]);
    links.groups[set] = &costs(placed.axes, {of_axes.begin(), of_axes.size()},
                               placed.is_routed || placed.rest & role_bit(Role::expert));
  }
  if (places[0] >= 0) links.stages = &stage_costs(places[0], numbers[0]);
  return links;
}

const StageLinker::LeastCosts& StageLinker::least_costs(std::int64_t devices, bool is_routed) {
  const auto [known, is_new] = least_.try_emplace({devices, is_routed});
  LeastCosts& least = known->second;
  const auto groups =
      is_new ? collective::densest_groups(cluster_, devices, "strategy") : std::vector<collective::CollectiveGroup>();
  if (!groups || groups->empty()) return least;
  const auto lower = [](auto& of, const auto& other) { of = std::min(of, other); };
  bool is_first = true;
  for (collective::CollectiveGroup group : *groups) {
    if (is_routed) group.routing = routing_;
    const collective::CollectiveLine permute = collective::collective_line(program::Collective::permute, group);
    if (is_first) least.permute = permute;
    lower(least.permute.rate, permute.rate);
    lower(least.permute.floor, permute.floor);
    for (std::size_t k = 0; k < StageLinks::kinds; ++k) {
      const auto kind = static_cast<program::Collective>(k);
      const CollectiveForm made = form(Plain{}, kind, group);
      if (is_first) least.forms[k] = made;
      collective::lower_to(least.forms[k], made);
    }
    is_first = false;
  }
  return least;
}

void StageLinker::least_links(const lower::Parallelism& parallelism, RoleSets sets, StageLinks& links) {
  for (RoleSets rest = links.filled; rest != 0; rest &= rest - 1)
    links.forms[static_cast<std::size_t>(std::countr_zero(rest))] = {};
  links.filled = sets;
  links.network_share = network_share_;
  links.size = role_sizes(parallelism);
  links.between_stages = {};
  const auto axes = lower::stage_axis_sizes(parallelism);
  for (; sets != 0; sets &= sets - 1) {
    const auto set = static_cast<std::size_t>(std::countr_zero(sets));
    std::int64_t devices = 1;
    for (std::size_t r = 0; r < roles; ++r)
      if (set >> r & 1u) devices *= axes[r];
    if (devices == 1) continue;
    const bool is_routed = set & role_bit(Role::expert) && parallelism.expert > 1;
    links.forms[set] = least_costs(devices, is_routed).forms;
  }
  if (parallelism.pipeline > 1) links.between_stages = least_costs(parallelism.pipeline, false).permute;
}

Result<StageLinks> stage_links(const lower::Parallelism& parallelism, const collective::AxisLayout& layout,
                               const hardware::Cluster& cluster, const hardware::CollectiveCalibration* calibration,
                               const collective::Routing& routing) {
  return StageLinker(cluster, calibration, routing).links(parallelism, layout);
}

}  // namespace assay::training
