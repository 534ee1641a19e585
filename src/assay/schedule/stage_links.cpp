#include "assay/schedule/stage_links.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay {

std::array<std::int64_t, 1 + roles> whole_mesh_sizes(const Parallelism& parallelism) {
  std::array<std::int64_t, 1 + roles> sizes{parallelism.pipeline};
  const auto stage = stage_axis_sizes(parallelism);
  std::copy(stage.begin(), stage.end(), sizes.begin() + 1);
  return sizes;
}

Mesh whole_mesh(const Parallelism& parallelism, const AxisLayout& layout) {
  const auto sizes = whole_mesh_sizes(parallelism);
  Mesh mesh;
  for (const std::size_t axis : layout.order)
    if (axis < sizes.size() && sizes[axis] > 1)
      mesh.axes.push_back({std::string(1, axis == 0 ? 'P' : stage_axis_names[axis - 1]), sizes[axis]});
  if (mesh.axes.empty()) mesh.axes.push_back({"X", 1});
  return mesh;
}

Result<Placement> whole_placement(const Parallelism& parallelism, const AxisLayout& layout, const Cluster& cluster) {
  return Placement::make(whole_mesh(parallelism, layout), cluster, "strategy", layout.turn);
}

namespace {

constexpr CollectiveKind line_kinds[4] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                          CollectiveKind::all_reduce, CollectiveKind::all_to_all};

/// The links that a set of mesh axes uses: torus axes, or levels of the tree that are really crossed.
std::uint32_t resources_of(const Placement& placement, const CollectiveGroup& group, AxisSet axes, std::size_t mesh) {
  std::uint32_t bits = 0;
  if (!group.axes.empty() || group.levels.empty())
    for (std::size_t i = 0; i < mesh; ++i)
      if (axes >> i & 1u)
        for (const AxisPart& part : placement.parts(static_cast<int>(i))) bits |= 1u << part.axis;
  for (std::size_t l = 0; l < group.levels.size(); ++l)
    if (group.levels[l].groups > 1.0) bits |= 1u << (16 + l);
  return bits;
}

/// collective_estimate() of a group is a constant, a part that grows with the bytes and one that grows with their
/// root; three sizes tell them.
CollectiveForm form_of(const CollectiveCalibration& fit, CollectiveKind kind, const CollectiveGroup& group,
                       Fabric fabric) {
  constexpr double one = 1e6, four = 4e6;
  const auto at = [&](double bytes) { return collective_estimate(fit, kind, Bytes(bytes), group, fabric).value(); };
  CollectiveForm form;
  form.floor = at(0.0);
  const double a = at(one) - form.floor, b = at(four) - form.floor;  // x + y and 4 x + 2 y
  form.rate = (b - 2.0 * a) / 2.0 / one;
  form.root = (4.0 * a - b) / 2.0 / std::sqrt(one);
  return form;
}

/// Two stages as far from one end of the pipeline as from the other, of a group of all stages. On a switched network
/// they lie on both sides of the highest level. On a torus the ways of all such pairs cross in the middle of an axis;
/// on a ring half of them go the other way round.
CollectiveGroup mirrored_pair(CollectiveGroup group) {
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
  CollectiveGroup::TreeLevel highest = group.levels[0];
  for (const auto& level : group.levels)
    if (level.groups > 1.0) highest = level;
  highest.groups = 2.0, highest.lanes = group.inner;
  group.axes = {}, group.levels = {};
  group.levels.push_back(highest);
  return group;
}

}  // namespace

double CollectiveForm::seconds(double bytes, double count) const {
  return count * floor + rate * bytes + (root > 0.0 ? root * std::sqrt(count * bytes) : 0.0);
}

std::array<double, roles> role_sizes(const Parallelism& parallelism) {
  std::array<double, roles> sizes{1, 1, 1, 1, 1};
  const auto axes = stage_axis_sizes(parallelism);
  for (std::size_t r = 0; r < roles; ++r) sizes[r] = static_cast<double>(axes[r]);
  return sizes;
}

Routing routing_of(const Transformer& model, Dispatch dispatch) {
  Routing routing;
  if (dispatch == Dispatch::per_expert) return routing;  // as if every copy were a token of its own
  for (const Layer& layer : model.decoder.kinds) {
    if (!layer.feed_forward) continue;
    const FeedForward& experts = *layer.feed_forward;
    if (static_cast<double>(experts.experts_per_token) > routing.copies)
      routing = {static_cast<double>(experts.experts_per_token), static_cast<double>(experts.experts),
                 static_cast<double>(experts.expert_groups), static_cast<double>(experts.groups_per_token)};
  }
  return routing;
}

StageLinker::StageLinker(const Cluster& cluster, const CollectiveCalibration* calibration, const Routing& routing)
    : cluster_(cluster),
      calibration_(calibration),
      routing_(routing),
      fabric_(fabric_of(cluster.chip.network.scale_out && cluster.chip.network.scale_out->technology
                            ? *cluster.chip.network.scale_out->technology
                            : "")),
      network_share_(network_efficiency(cluster.chip)),
      latency_(collective_latency(cluster.chip)) {}

void StageLinker::Key::add(std::size_t number) {
  if (size == parts.size()) throw InternalError("a group of devices lies on more parts than it can have");
  parts[size++] = static_cast<std::uint32_t>(number);
}

std::size_t StageLinker::KeyHash::operator()(const Key& key) const {
  std::uint64_t h = 1469598103934665603ull;
  for (std::size_t i = 0; i < key.size; ++i) h = (h ^ key.parts[i]) * 1099511628211ull;
  return static_cast<std::size_t>(h);
}

CollectiveForm StageLinker::form(CollectiveKind kind, const CollectiveGroup& group, const CollectiveLine& line) const {
  return calibration_ ? form_of(*calibration_, kind, group, fabric_)
                      : CollectiveForm{(line.floor + latency_).value(), line.rate.value() / network_share_, 0};
}

void StageLinker::Key::add(const AxisParts& lie_on) {
  for (const AxisPart& part : lie_on)
    for (const std::size_t number :
         {part.axis, static_cast<std::size_t>(part.size), static_cast<std::size_t>(part.stride)})
      add(number);
}

const StageCosts& StageLinker::stage_costs(const Placement& placement, int pipeline) {
  Key key;
  key.add(placement.parts(pipeline));
  const auto [known, is_new] = stages_.try_emplace(key);
  StageCosts& costs = known->second;
  if (!is_new) return costs;
  const CollectiveGroup stages = placement.group(axis_bit(pipeline)), pair = mirrored_pair(stages);
  costs.between = collective_line(CollectiveKind::permute, stages);
  costs.copies = collective_line(CollectiveKind::all_reduce, pair);
  costs.copies_form = form(CollectiveKind::all_reduce, pair, costs.copies);
  return costs;
}

const GroupCosts& StageLinker::costs(const Placement& placement, AxisSet axes, std::size_t mesh_axes, bool is_routed) {
  Key key;
  key.add(is_routed);
  for (std::size_t i = 0; i < mesh_axes; ++i)
    if (axes >> i & 1u) key.add(placement.parts(static_cast<int>(i)));
  const auto [known, is_new] = known_.try_emplace(key);
  GroupCosts& costs = known->second;
  if (!is_new) return costs;
  CollectiveGroup group = placement.group(axes);
  if (is_routed) group.routing = routing_;
  for (std::size_t k = 0; k < 4; ++k) {
    const CollectiveLine line = costs.lines[k] = collective_line(line_kinds[k], group);
    costs.forms[k] = form(line_kinds[k], group, line);
  }
  costs.resources = resources_of(placement, group, axes, mesh_axes);
  std::uint64_t hash = 0;
  for (const CollectiveForm& form : costs.forms)
    for (const double number : {form.floor, form.rate, form.root})
      hash = (hash ^ std::bit_cast<std::uint64_t>(number)) * 1099511628211ull;
  costs.like = static_cast<std::uint32_t>(known_.size());
  const auto [first, last] = by_forms_.equal_range(hash);
  for (auto other = first; other != last; ++other)
    if (other->second->forms == costs.forms) costs.like = other->second->like;
  by_forms_.emplace(hash, &costs);
  return costs;
}

Result<StageLinks> StageLinker::links(const Parallelism& parallelism, const AxisLayout& layout) {
  ASSAY_TRY(laid, lay(parallelism, layout));
  StageLinks links;
  fill(parallelism, laid, links);
  return links;
}

void StageLinker::fill(const Parallelism& parallelism, const LaidLinks& laid, StageLinks& links) const {
  links.network_share = network_share_;
  links.size = role_sizes(parallelism);
  for (std::size_t set = 0; set < laid.groups.size(); ++set) {
    static constexpr GroupCosts none{};
    const GroupCosts& costs = laid.groups[set] ? *laid.groups[set] : none;
    links.lines[set] = costs.lines, links.forms[set] = costs.forms, links.resources[set] = costs.resources;
  }
  const StageCosts stages = laid.stages ? *laid.stages : StageCosts{};
  links.between_stages = stages.between, links.copies = stages.copies, links.copies_form = stages.copies_form;
}

Result<LaidLinks> StageLinker::lay(const Parallelism& parallelism, const AxisLayout& layout, RoleSet among) {
  LaidLinks links;
  const auto sizes = whole_mesh_sizes(parallelism);
  FixedList<std::int64_t, 1 + roles> laid;
  std::array<int, 1 + roles> axis_of;
  axis_of.fill(-1);
  for (const std::size_t axis : layout.order)
    if (axis < sizes.size() && sizes[axis] > 1) {
      axis_of[axis] = static_cast<int>(laid.size());
      laid.push_back(sizes[axis]);
    }
  if (laid.empty() && cluster_.chips() == 1) return links;
  if (!placement_ || cluster_.torus || parallelism.devices() != cluster_.chips()) {
    ASSAY_TRY(placement, whole_placement(parallelism, layout, cluster_));
    placement_ = placement;
  } else {
    placement_->stretch({laid.begin(), laid.size()});
  }
  const Placement& placement = *placement_;
  for (std::size_t set = 1; set <= among; ++set) {
    if (set & ~std::size_t{among}) continue;
    AxisSet axes = 0;
    std::size_t rest = 0;  // without axes of one device
    for (std::size_t r = 0; r < roles; ++r)
      if (set >> r & 1u && axis_of[1 + r] >= 0) axes |= axis_bit(axis_of[1 + r]), rest |= std::size_t{1} << r;
    const bool routed = set & role_bit(Role::expert) && parallelism.expert_others() > 1;
    if (rest != set && !routed) {  // they add nothing; of no axis there is nothing
      links.groups[set] = links.groups[rest];
      continue;
    }
    if (axes != 0) links.groups[set] = &costs(placement, axes, laid.size(), set & role_bit(Role::expert));
  }
  if (axis_of[0] >= 0 && among == every_role) links.stages = &stage_costs(placement, axis_of[0]);
  return links;
}

const StageLinker::LeastCosts& StageLinker::least_costs(std::int64_t devices, bool is_routed) {
  const auto [known, is_new] = least_.try_emplace({devices, is_routed});
  LeastCosts& least = known->second;
  const auto groups = is_new ? densest_groups(cluster_, devices, "strategy") : std::vector<CollectiveGroup>();
  if (!groups || groups->empty()) return least;
  const auto lower = [](auto& of, const auto& other) { of = std::min(of, other); };
  bool is_first = true;
  for (CollectiveGroup group : *groups) {
    if (is_routed) group.routing = routing_;
    const CollectiveLine permute = collective_line(CollectiveKind::permute, group);
    if (is_first) least.permute = permute;
    lower(least.permute.rate, permute.rate), lower(least.permute.floor, permute.floor);
    for (std::size_t k = 0; k < 4; ++k) {
      const CollectiveForm made = form(line_kinds[k], group, collective_line(line_kinds[k], group));
      CollectiveForm& fewest = least.forms[k];
      if (is_first) fewest = made;
      lower(fewest.floor, made.floor), lower(fewest.rate, made.rate), lower(fewest.root, made.root);
    }
    is_first = false;
  }
  return least;
}

StageLinks StageLinker::least_links(const Parallelism& parallelism) {
  StageLinks links;
  links.network_share = network_share_;
  links.size = role_sizes(parallelism);
  const auto axes = stage_axis_sizes(parallelism);
  for (std::size_t set = 1; set <= every_role; ++set) {
    std::int64_t devices = 1;
    std::size_t rest = 0;  // without axes of one device
    for (std::size_t r = 0; r < roles; ++r)
      if (set >> r & 1u && axes[r] > 1) devices *= axes[r], rest |= std::size_t{1} << r;
    if (devices == 1) continue;
    const bool is_routed = set & role_bit(Role::expert) && parallelism.expert > 1;
    links.forms[set] = rest != set && !is_routed ? links.forms[rest] : least_costs(devices, is_routed).forms;
  }
  if (parallelism.pipeline > 1) links.between_stages = least_costs(parallelism.pipeline, false).permute;
  return links;
}

Result<StageLinks> stage_links(const Parallelism& parallelism, const AxisLayout& layout, const Cluster& cluster,
                               const CollectiveCalibration* calibration, const Routing& routing) {
  return StageLinker(cluster, calibration, routing).links(parallelism, layout);
}

}  // namespace assay
