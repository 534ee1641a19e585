#include "assay/predict/collective/collective_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/assign.h"
#include "assay/base/text.h"

namespace assay::collective {
namespace {

/// The probability that none of `drawn` out of `all` items, drawn without replacement, is among the `marked` ones.
double none_drawn(double all, double marked, double drawn) {
  double chance = 1.0;
  for (double i = 0.0; i < drawn; ++i) chance *= std::max(0.0, all - marked - i) / std::max(1.0, all - i);
  return chance;
}

double choose(double n, double k) {
  double ways = 1.0;
  for (double i = 0.0; i < k; ++i) ways *= (n - i) / (k - i);
  return n < k ? 0.0 : ways;
}

}  // namespace

double Routing::sent_share(double children) const {
  if (copies <= 1.0) return 1.0;
  const double open = experts * picked / groups;  // experts in the selected groups
  double touched = 0.0;                           // the probability that a child holds one of a token's experts
  if (children >= groups) {
    touched = picked / groups * (1.0 - none_drawn(open, experts / children, copies));
  } else {  // a child holds several groups; count how many of them are selected
    const double own = groups / children;
    for (double j = 1.0; j <= std::min(own, picked); ++j)
      touched += choose(own, j) * choose(groups - own, picked - j) / choose(groups, picked) *
                 (1.0 - none_drawn(open, j * experts / groups, copies));
  }
  return children * touched / copies;
}

namespace {

/// "X", "X=4" or "X=4:2" on a torus.
Result<AxisPart> parse_part(const hardware::Cluster& cluster, std::string_view text, std::string_view where) {
  const std::size_t equals = text.find('='), colon = text.find(':');
  const std::string name(trim(text.substr(0, equals)));
  std::vector<std::string> known;
  for (const hardware::Axis& axis : cluster.torus->axes) known.push_back(axis.name);
  AxisPart part;
  part.axis = static_cast<std::size_t>(std::find(known.begin(), known.end(), name) - known.begin());
  const bool missing = part.axis == known.size();
  if (cluster.slices > 1) known.emplace_back("slices");
  if (missing)
    return fail(std::string(where), fmt::format("{} has no axis {}", cluster.text, in_quotes(name)),
                "its axes are " + join(known, ", "), Error::Kind::usage);
  const hardware::Axis& axis = cluster.torus->axes[part.axis];
  part.size = axis.size;
  if (equals == std::string_view::npos) return part;
  ASSAY_SET(part.size,
            parse_count(text.substr(equals + 1, colon == std::string_view::npos ? colon : colon - equals - 1), where));
  if (colon != std::string_view::npos) ASSAY_SET(part.stride, parse_count(text.substr(colon + 1), where));
  if (part.size > axis.size || part.stride > axis.size || axis.size % (part.size * part.stride) != 0)
    return fail(std::string(where),
                fmt::format("{} chips {} apart do not divide axis {} of {}", part.size, part.stride, name, axis.size),
                "a part is SIZE neighbours, X=4, or chips STRIDE apart, X=4:2; SIZE x STRIDE divides the axis",
                Error::Kind::usage);
  return part;
}

}  // namespace

CollectiveLabels collective_labels(const hardware::Cluster& cluster) {
  CollectiveLabels labels;
  if (const auto& up = cluster.chip.network.scale_up) {
    labels.link = up->link_bandwidth.source;
    if (up->hop_latency) labels.hop_latency = up->hop_latency->source;
  }
  for (const hardware::Level& level : cluster.levels) labels.levels.push_back({level.name, level.source});
  if (labels.levels.empty()) labels.levels.push_back({"chip", "unused"});
  return labels;
}

void add_axis_parts(CollectiveGroup& group, std::int64_t axis_size, bool ring, const AxisPart* parts,
                    std::size_t count) {
  std::int64_t size = 1, span = 1;
  for (std::size_t i = 0; i < count; ++i) {
    size *= parts[i].size;
    if (parts[i].size > 1) span = std::max(span, parts[i].size * parts[i].stride);
  }
  if (size == 1) return;
  const auto chips = static_cast<double>(size);
  group.axes.push_back({chips, ring && span == axis_size, static_cast<double>(span) / chips});
  group.devices *= chips;
}

Result<CollectiveGroup> bare_group(const hardware::Cluster& cluster, std::string_view where) {
  CollectiveGroup group;
  if (const auto& up = cluster.chip.network.scale_up) {
    if (up->hop_latency) group.hop_latency = up->hop_latency->value;
    if (cluster.torus) group.link = up->link_bandwidth.value;
  }
  if (cluster.levels.size() > max_tree_levels || (cluster.torus && cluster.torus->axes.size() > max_torus_axes))
    return fail(std::string(where),
                fmt::format("collectives are costed on up to {} levels and {} axes", max_tree_levels, max_torus_axes),
                "");
  return group;
}

Result<CollectiveGroup> make_group(const hardware::Cluster& cluster, const std::vector<std::string>& axes, double inner,
                                   std::string_view where) {
  ASSAY_TRY(group, bare_group(cluster, where));
  if (cluster.torus) {
    std::vector<std::string> wanted = axes;
    if (wanted.empty())
      for (const hardware::Axis& axis : cluster.torus->axes) wanted.push_back(axis.name);
    bool slices = false;
    std::vector<AxisPart> parts;
    for (const std::string& text : wanted) {
      const bool between = trim(text) == "slices" && cluster.slices > 1;
      AxisPart part;
      if (!between) ASSAY_SET(part, parse_part(cluster, text, where));
      const bool again = between ? slices : std::any_of(parts.begin(), parts.end(), [&](const AxisPart& other) {
        return other.axis == part.axis;
      });
      if (again)
        return fail(std::string(where), fmt::format("axis {} is named twice", text.substr(0, text.find('='))), "",
                    Error::Kind::usage);
      if (between)
        slices = true;
      else
        parts.push_back(part);
    }
    for (const AxisPart& part : parts)
      add_axis_parts(group, cluster.torus->axes[part.axis].size, cluster.torus->axes[part.axis].ring, &part, 1);
    if (slices) {
      // Without torus axes, links of all devices with other shards serve one copy; with them, each group is separate.
      const bool alone = group.axes.empty();
      if (alone) group.inner = std::max(inner, 1.0);
      group.levels.push_back({static_cast<double>(cluster.slices), alone ? group.inner : group.devices,
                              cluster.levels.front().chip_bandwidth, false, 0});
      group.devices *= static_cast<double>(cluster.slices);
      if (alone) group.hop_latency = Seconds(0);  // the catalogue has no latency for the data-centre network
    }
    return group;
  }
  if (!axes.empty())
    return fail(std::string(where), fmt::format("{} is not a torus, so it has no axes", cluster.text),
                "leave --axes out: the collective runs over all chips, or over those that --sharded-by leaves",
                Error::Kind::usage);
  const double chips = static_cast<double>(cluster.chips());
  if (inner > chips || std::fmod(chips, inner) != 0.0)
    return fail("--sharded-by", fmt::format("{} chips do not divide by {}", cluster.chips(), inner), "",
                Error::Kind::usage);
  group.devices = chips / inner;
  group.inner = inner;
  double below = 1.0;
  for (const hardware::Level& level : cluster.levels) {
    const double unit = static_cast<double>(level.chips), lanes = std::max(inner, below);
    group.levels.push_back({std::max(1.0, unit / lanes), lanes, level.chip_bandwidth, level.in_network_reduction,
                            static_cast<std::uint8_t>(group.levels.size())});
    below = unit;
  }
  if (group.levels.empty()) group.levels.push_back({1.0, 1.0, BytesPerSecond(1.0), false, 0});
  return group;
}

IdleAxes idle_axes(const hardware::Cluster& cluster, const std::vector<std::string>& axes, const CollectiveGroup& group,
                   const program::Mesh& sharded_by) {
  IdleAxes idle{{}, group};
  const auto takes_part = [&](const std::string& axis) {  // X, or a part of it, X=4
    return axes.empty() || std::any_of(axes.begin(), axes.end(), [&](const std::string& text) {
             return trim(text.substr(0, text.find('='))) == axis;
           });
  };
  for (const hardware::Axis& axis : cluster.torus->axes) {
    if (takes_part(axis.name) || sharded_by.find(axis.name) || axis.size == 1) continue;
    const AxisPart whole{0, axis.size, 1};
    idle.names.push_back(axis.name);
    add_axis_parts(idle.wider, axis.size, axis.ring, &whole, 1);
  }
  return idle;
}

}  // namespace assay::collective
