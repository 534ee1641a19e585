#include "assay/hardware/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/hardware/cluster_names.h"

namespace assay::hardware {
namespace {

constexpr std::int64_t max_chips = 10'000'000;

struct Extent {
  Shape shape;  ///< one entry: a count
  bool twisted = false;
};

Result<Extent> parse_extent(std::string_view text, std::string_view where) {
  Extent extent;
  if (text.ends_with("_twisted")) {
    extent.twisted = true;
    text.remove_suffix(8);
  }
  for (const std::string& part : split(text, 'x')) {
    auto count = parse_count(part, where);
    if (!count)
      return fail(std::string(where), fmt::format("{} is not a size: {}", in_quotes(text), count.error().what),
                  "write a count (h100-sxm:1024) or a shape (tpu-v5p:16x20x28)");
    if (*count > max_chips)
      return fail(std::string(where), fmt::format("{} chips is too many", *count), "the limit is 10 million");
    extent.shape.push_back(*count);
    if (extent.shape.size() > 3) break;
  }
  if (extent.shape.size() > 3)
    return fail(std::string(where), fmt::format("{} has more than three axes", in_quotes(text)),
                "e.g. tpu-v5p:16x20x28");
  std::int64_t total = 1;
  for (std::int64_t n : extent.shape) {
    total *= n;  // two factors of at most 1e7 fit, three may not
    if (total > max_chips)
      return fail(std::string(where), fmt::format("{} chips is too many", shape_text(extent.shape)),
                  "the limit is 10 million");
  }
  return extent;
}

/// Splits `chips` evenly over as few groups of at most `size` as possible.
Result<std::int64_t> even_groups(std::int64_t chips, std::int64_t size, std::string_view group, const Chip& chip,
                                 std::string_view where) {
  const auto groups_of = [&](std::int64_t n) { return (n + size - 1) / size; };
  const std::int64_t groups = groups_of(chips);
  if (chips % groups == 0) return groups;
  std::int64_t fewer = chips - 1, more = chips + 1;  // always ends: at the latest with whole groups
  while (fewer % groups_of(fewer) != 0) --fewer;
  while (more % groups_of(more) != 0) ++more;
  return fail(
      std::string(where),
      fmt::format("{} of {} do not spread evenly over {} {}s of at most {}", chips, chip.id, groups, group, size),
      fmt::format("nearest counts: {}, {}", fewer, more));
}

/// Beyond the fabric sizes in the catalogue: the fewest switches of a full fat tree, with spines only while the ports
/// of one spine reach every leaf switch; beyond that, spines send half of their ports up to cores.
void size_fabric(Cluster& cluster, std::size_t leaf, const ScaleOut& out) {
  if (!out.switch_ports || cluster.levels.size() < leaf + 3) return;
  const std::int64_t leaves = cluster.levels[leaf].switches, half = (leaves + 1) / 2;
  if (leaves == 0) return;
  const bool spines_suffice = leaves <= out.switch_ports->value;
  cluster.levels[leaf + 1].switches = spines_suffice ? half : leaves;
  cluster.levels[leaf + 2].switches = spines_suffice ? 0 : half;
}

/// The link over which chips of a host without links of their own send to each other.
const Sourced<BytesPerSecond>& peer_link(const Host& host) { return host.peer ? *host.peer : host.pcie; }

/// The levels above nodes of a full size: the host, where it has several nodes of cards, and the fabric, which the
/// catalogue describes for nodes.
std::vector<FabricLevel> levels_above(const Chip& chip, std::int64_t full_node) {
  std::vector<FabricLevel> levels;
  const std::int64_t on_host = chip.host.peer ? std::max<std::int64_t>(1, chip.host.chips.value / full_node) : 1;
  if (on_host > 1) {
    FabricLevel host{"host", Count{on_host, chip.host.chips.source, "", {}}, std::nullopt, peer_link(chip.host)};
    host.bandwidth.value = static_cast<double>(full_node) * host.bandwidth.value;
    levels.push_back(std::move(host));
  }
  if (!chip.network.scale_out) return levels;
  const ScaleOut& out = *chip.network.scale_out;
  std::vector<FabricLevel> fabric = out.levels;
  if (fabric.empty()) {
    fabric.push_back({"fabric", std::nullopt, std::nullopt, out.bandwidth});
    fabric.front().bandwidth.value = static_cast<double>(full_node) * out.bandwidth.value;
  }
  FabricLevel& leaf = fabric.front();
  leaf.bandwidth.value = static_cast<double>(on_host) * leaf.bandwidth.value;
  if (leaf.degree) leaf.degree->value = (leaf.degree->value + on_host - 1) / on_host;
  levels.insert(levels.end(), fabric.begin(), fabric.end());
  return levels;
}

/// GPU-like clusters: nodes of the scale-up domain on the levels above it.
Result<void> build_levels(Cluster& cluster, std::int64_t chips, std::string_view where) {
  const Chip& chip = cluster.chip;
  const auto& up = chip.network.scale_up;
  const std::int64_t full_node = node_size(chip);
  ASSAY_TRY(nodes, even_groups(chips, full_node, "node", chip, where));
  const std::int64_t per_node = chips / nodes;
  cluster.chips_per_node = per_node;
  if (nodes > 1 && per_node < full_node)
    cluster.notes.push_back(fmt::format("each node uses {} of its {} chips", per_node, full_node));
  if (per_node > 1) {
    Level level{up ? "node" : "host", per_node, per_node, nodes, {}, {}, 0, false, {}};
    const Sourced<BytesPerSecond> egress = up ? *scale_up_egress(chip) : peer_link(chip.host);
    level.child_bandwidth = level.chip_bandwidth = egress.value;
    level.source = egress.source;
    if (up && up->switches) level.switches = nodes * up->switches->value;
    level.in_network_reduction = up && up->in_network_reduction && up->in_network_reduction->value;
    cluster.levels.push_back(level);
  }
  if (nodes == 1) return {};
  const std::vector<FabricLevel> above = levels_above(chip, full_node);
  const auto& out = chip.network.scale_out;
  const std::size_t hosts = above.size() - (out ? std::max<std::size_t>(1, out->levels.size()) : 0);
  std::int64_t children = nodes, below = per_node, full_below = full_node;
  std::string groups = "nodes";
  std::size_t first = 0;  // index of the fabric's first level
  for (std::size_t i = 0; i < above.size() && children > 1; ++i) {
    const FabricLevel& step = above[i];
    const std::int64_t most = step.degree ? step.degree->value : children;
    std::int64_t units = (children + most - 1) / most;
    std::int64_t degree = (children + units - 1) / units;
    // The bandwidth is for a full child; a child with fewer chips has fewer network ports.
    const double filled = std::min(1.0, static_cast<double>(below) / static_cast<double>(full_below));
    Level level{step.name, degree, degree * below, units, {}, {}, 0, false, step.bandwidth.source};
    level.child_bandwidth = filled * step.bandwidth.value;
    level.chip_bandwidth = level.child_bandwidth / static_cast<double>(below);
    if (step.switches) level.switches = units * step.switches->value;
    if (i == hosts) first = cluster.levels.size();
    level.in_network_reduction = i >= hosts && out->in_network_reduction && out->in_network_reduction->value;
    cluster.levels.push_back(level);
    if (children % units != 0)
      cluster.notes.push_back(fmt::format("{} {} do not divide evenly into {} {} groups; the largest has {}", children,
                                          groups, units, step.name, degree));
    groups = step.name + " groups";
    below *= degree;
    full_below *= most;
    children = units;
  }
  if (children > 1 && !out)
    return fail(std::string(where),
                fmt::format("{} has no scale-out network in the catalogue, so a cluster has at most {} chips", chip.id,
                            full_below),
                "add [network.scale_out] to the chip file");
  if (children > 1)
    return fail(std::string(where),
                fmt::format("{} chips exceed the fabric of {}, which ends at {}", chips, chip.id, below),
                "name fewer chips, or add a level to network.scale_out in the chip file");
  if (out && first > 0) size_fabric(cluster, first, *out);
  return {};
}

Result<void> build(Cluster& cluster, const std::optional<Extent>& extent, std::string_view where) {
  const Chip& chip = cluster.chip;
  const auto& up = chip.network.scale_up;
  const bool torus = up && up->kind == "torus";
  if (!torus) {
    if (extent && (extent->shape.size() != 1 || extent->twisted))
      return fail(std::string(where), fmt::format("{} is not a torus, so its size is a count", chip.id),
                  fmt::format("write {}:{}", chip.id,
                              std::accumulate(extent->shape.begin(), extent->shape.end(), std::int64_t{1},
                                              std::multiplies<>())));
    if (cluster.slices > 1)
      return fail(std::string(where), fmt::format("{} is not sold in slices, so S* does not apply", chip.id),
                  fmt::format("write {}:{}", chip.id, cluster.slices * (extent ? extent->shape[0] : 1)));
    cluster.chips_per_slice = extent ? extent->shape[0] : 1;
    cluster.text = fmt::format("{}:{}", chip.id, cluster.chips_per_slice);
    return build_levels(cluster, cluster.chips_per_slice, where);
  }
  Shape shape = extent ? extent->shape : Shape{1};
  if (shape.size() == 1) {
    ASSAY_TRY(chosen, default_shape(chip, shape[0], where));
    if (chosen != shape && shape[0] > 1)
      cluster.notes.push_back(fmt::format("{} chips are arranged as {}", shape[0], shape_text(chosen)));
    shape = chosen;
  }
  ASSAY_TRY(made, make_torus(chip, shape, extent && extent->twisted, where));
  cluster.torus = made;
  cluster.chips_per_slice = made.chips();
  cluster.chips_per_node = std::min(made.chips(), chip.host.chips.value);
  cluster.text = fmt::format("{}{}:{}{}", cluster.slices > 1 ? fmt::format("{}*", cluster.slices) : "", chip.id,
                             shape_text(shape), made.twisted ? "_twisted" : "");
  if (cluster.slices == 1) return {};
  if (!chip.network.scale_out)
    return fail(std::string(where), fmt::format("{} has no scale-out network in the catalogue to join slices", chip.id),
                "add [network.scale_out] to the chip file");
  const Sourced<BytesPerSecond>& dcn = chip.network.scale_out->bandwidth;
  cluster.levels.push_back({"dcn", cluster.slices, cluster.chips(), 1,
                            static_cast<double>(cluster.chips_per_slice) * dcn.value, dcn.value, 0, false, dcn.source});
  return {};
}

/// A cluster as written, S*NAME:SIZE.
struct Written {
  std::string name;
  std::optional<std::string> size;
  std::optional<std::int64_t> multiple;
};

/// Takes `key` out of a file's root, so that the rest is a chip file.
std::optional<Toml> taken(Toml& root, std::string_view key) {
  for (auto it = root.members.begin(); it != root.members.end(); ++it)
    if (it->first == key) {
      Toml value = std::move(it->second);
      root.members.erase(it);
      return value;
    }
  return std::nullopt;
}

/// `@file.toml`: a chip file, which may have a base and a size, or a cluster file with chip, size?, slices? and [set]
/// overrides.
Result<Chip> chip_from_file(Written& written, const Catalogue& catalogue, std::string_view where,
                            const std::vector<Override>& overrides) {
  const std::string path = written.name.substr(1);
  if (!catalogue.reads_files()) return catalogue.chip(written.name, where, overrides);
  ASSAY_TRY(text, read_file(path, where));
  ASSAY_TRY(root, parse_toml(text, path));
  std::string chip;
  std::vector<Override> own;
  std::optional<std::string> size;
  std::optional<std::int64_t> slices;
  const bool names_chip = root.find("chip") != nullptr;
  RecordFile shared{.name = path, .keys_hint = {}, .sourced_tables = false};
  Toml cluster;
  cluster.line = root.line;
  for (const char* key : {"size", "slices"})
    if (auto value = taken(root, key)) cluster.members.emplace_back(key, std::move(*value));
  RecordReader sizes(shared, cluster), reader(shared, root);
  sizes.text("size", size);
  sizes.count("slices", slices);
  if (slices && *slices > max_chips)
    sizes.fault("slices", fmt::format("{} slices is too many", *slices), "the limit is 10 million");
  if (names_chip) {
    for (const char* key : {"size", "slices"}) reader.find(key);  // read above
    reader.text("chip", chip);
    reader.each_key("set", [&](const std::string& key, RecordReader& set) {
      Override& change = own.emplace_back();
      change.path = key;
      set.text(key, change.value);
    });
    reader.finish();
  }
  ASSAY_CHECK(joined(std::move(shared.faults)));
  if (!written.size) written.size = size;
  if (!written.multiple) written.multiple = slices;
  if (!names_chip) return load_chip(std::move(root), path, true, catalogue, overrides);
  own.insert(own.end(), overrides.begin(), overrides.end());
  return catalogue.chip(chip, where, own);
}

/// The number of machines that "8xH100", ":8" and "8*" ask for.
Result<std::int64_t> machine_count(const Written& written, std::int64_t copies, std::string_view where) {
  std::int64_t machines = copies * written.multiple.value_or(1);
  if (written.size) {
    ASSAY_TRY(size, parse_count(*written.size, where));
    machines = machines > max_chips || size > max_chips ? max_chips + 1 : machines * size;
  }
  if (machines > max_chips) return fail(std::string(where), "too many machines", "the limit is 10 million chips");
  return machines;
}

/// What a name that is not a chip's id stands for: `written` becomes a chip's id and a size.
struct Understood {
  std::string note;  ///< up to the cluster's name in the grammar
  bool slice = false;
  std::vector<Override> changes;  ///< changes to the chip's file
};

Result<Understood> understand(Written& written, std::string_view text, const ClusterNames& names,
                              const Catalogue& catalogue, std::string_view where) {
  std::int64_t copies = 1;
  auto found = names.find(written.name);
  if (const std::size_t x = written.name.find_first_not_of("0123456789");
      !found && x != std::string::npos && x > 0 && x < 8 && (written.name[x] == 'x' || written.name[x] == 'X')) {
    found = names.find(trim(std::string_view(written.name).substr(x + 1)));
    copies = *parse_count(written.name.substr(0, x), where);
    if (found && found->chips == 0 && written.size)
      return fail(std::string(where), fmt::format("{} states its size twice", in_quotes(text)),
                  fmt::format("write {}:{}", found->chip, *written.size), Error::Kind::usage);
    if (found && found->chips == 0) written.size = std::to_string(copies);
  }
  // "GB200 NVL72" is the rack; with a size, chips are counted, as with the id gb200-nvl72.
  if (found && written.size && plain_name(found->chip) == plain_name(written.name))
    found = ClusterName{.chip = found->chip};
  if (!found) {
    const auto ids = catalogue.chip_ids();
    const auto near_ids = nearest(written.name, ids);
    const std::vector<std::string> all = names.all();
    return fail(std::string(where), fmt::format("unknown chip {}", in_quotes(written.name)),
                !near_ids.empty()                     ? suggestion(written.name, ids)
                : !nearest(written.name, all).empty() ? suggestion(written.name, all)
                                                      : "`assay chips` lists them",
                Error::Kind::missing);
  }
  Understood out;
  const std::string said(trim(text));
  written.name = found->chip;
  if (found->chips == 0) {
    out.note = fmt::format("{} is read as", said);
  } else if (found->slice) {
    if (written.size)
      return fail(std::string(where), fmt::format("{} states its size twice", in_quotes(said)),
                  "the name of a slice has its size", Error::Kind::usage);
    if (copies > 1) written.multiple = copies * written.multiple.value_or(1);
    written.size = std::to_string(found->chips);
    out.slice = true;
    const std::int64_t chips = written.multiple.value_or(1) * found->chips;
    out.note = found->counts.empty() ? fmt::format("{} is {} chips:", said, chips)
                                     : fmt::format("{} names {}: {} chips,", said, found->counts, chips);
  } else {
    ASSAY_TRY(machines, machine_count(written, copies, where));
    written.multiple.reset();
    written.size = std::to_string(machines * found->chips);
    out.note = fmt::format("{} is {} of {} with {} chips{}:", said,
                           machines == 1 ? std::string("a machine") : fmt::format("{} machines", machines),
                           found->provider, found->chips, machines == 1 ? "" : " each");
    if (found->network)
      out.changes.push_back({"network.scale_out.bandwidth",
                             exact_number(found->network->value() / static_cast<double>(found->chips)) + " B/s",
                             found->source});
  }
  return out;
}

}  // namespace

Result<Cluster> parse_cluster(std::string_view text, const Catalogue& catalogue, std::string_view where,
                              const std::vector<Override>& overrides) {
  std::string_view rest = trim(text);
  if (rest.empty())
    return fail(std::string(where), "no cluster is named", "e.g. tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024");
  if (rest.size() > 4096) return fail(std::string(where), "the cluster's name is longer than 4096 bytes", "");
  Cluster cluster;
  Written written;
  if (const std::size_t star = rest.find('*'); star != std::string_view::npos && rest.front() != '@') {
    auto slices = parse_count(rest.substr(0, star), where);
    if (!slices || *slices > max_chips)
      return fail(std::string(where), fmt::format("{} is not a number of slices", in_quotes(rest.substr(0, star))),
                  "write 4*tpu-v5p:16x20x28");
    written.multiple = *slices;
    rest = trim(rest.substr(star + 1));
  }
  const std::size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos) written.size = std::string(trim(rest.substr(colon + 1)));
  written.name = std::string(trim(rest.substr(0, colon)));
  std::optional<Understood> understood;
  std::vector<Override> changes;
  if (!written.name.starts_with("@") && written.name != "host" && !catalogue.has_chip(written.name)) {
    ASSAY_TRY(names, catalogue.kept<ClusterNames>("cluster names", [&] { return ClusterNames::read(catalogue); }));
    ASSAY_TRY(meaning, understand(written, text, *names, catalogue, where));
    understood = meaning;
    changes = meaning.changes;
  }
  changes.insert(changes.end(), overrides.begin(), overrides.end());
  auto chip = written.name.starts_with("@") ? chip_from_file(written, catalogue, where, changes)
                                            : catalogue.chip(written.name, where, changes);
  if (!chip) return tl::unexpected<Error>(chip.error());
  cluster.chip = std::move(*chip);
  if (auto& up = cluster.chip.network.scale_up; up && up->domain && up->domain->value == 1) up.reset();
  cluster.slices = written.multiple.value_or(1);
  std::optional<Extent> extent;
  if (written.size) {
    ASSAY_TRY(parsed, parse_extent(*written.size, where));
    extent = parsed;
  }
  ASSAY_CHECK(build(cluster, extent, where));
  if (cluster.chips() > max_chips)
    return fail(std::string(where), fmt::format("{} chips is too many", cluster.chips()), "the limit is 10 million");
  if (understood && understood->slice) cluster.notes.clear();  // how its chips are arranged: the next one says so
  if (understood)
    cluster.notes.insert(cluster.notes.begin(),
                         fmt::format("{} {} ({})", understood->note, cluster.text, cluster.chip.name));
  if (cluster.chip.family == "cpu" && cluster.chips() > 1)
    cluster.notes.push_back(
        fmt::format("{} ranks of one machine: collectives were measured between such ranks, but each rank counts the "
                    "whole machine's rates",
                    cluster.chips()));
  return cluster;
}

std::vector<std::int64_t> cluster_sizes(const Chip& chip, std::int64_t fewest, std::int64_t most, std::size_t enough) {
  const bool torus = chip.network.scale_up && chip.network.scale_up->kind == "torus";
  const std::int64_t node = node_size(chip);
  std::vector<std::int64_t> out;
  for (std::int64_t n = fewest; n <= most && out.size() < enough; ++n) {
    if (!torus && n > node) n = (n + node - 1) / node * node;
    if (n > most) break;
    if (!torus || default_shape(chip, n, "")) out.push_back(n);
  }
  return out;
}

std::int64_t chips_per_host(const Cluster& cluster) {
  const std::int64_t most = cluster.chip.host.chips.value;
  if (cluster.torus) return std::min(cluster.chips_per_slice, most);
  const std::int64_t nodes = cluster.chips() / cluster.chips_per_node;
  const std::int64_t nodes_on_one = std::max<std::int64_t>(1, most / node_size(cluster.chip));
  return std::min(std::min(nodes, nodes_on_one) * cluster.chips_per_node, most);
}

std::int64_t host_count(const Cluster& cluster) {
  const std::int64_t on_one = chips_per_host(cluster);
  const std::int64_t group = cluster.torus ? cluster.chips_per_slice : std::max(cluster.chips_per_node, on_one);
  const auto over = [](std::int64_t chips, std::int64_t size) { return (chips + size - 1) / size; };
  return over(cluster.chips(), group) * over(group, on_one);
}

std::int64_t core_count(const Cluster& cluster) { return cluster.chips() * cluster.chip.cores.count.value; }

std::int64_t switch_count(const Cluster& cluster) {
  std::int64_t switches = 0;
  for (const Level& level : cluster.levels) switches += level.switches;
  return switches;
}

std::int64_t scale_up_links(const Cluster& cluster) {
  if (cluster.torus) return cluster.slices * link_count(*cluster.torus);
  const auto& up = cluster.chip.network.scale_up;
  if (!up || cluster.levels.empty() || cluster.levels.front().name != "node") return 0;
  return cluster.chips() * up->links.value;
}

std::int64_t diameter(const Cluster& cluster) {
  if (cluster.torus) return diameter(*cluster.torus) + (cluster.slices > 1 ? 1 : 0);
  return cluster.levels.empty() ? 0 : 2 * static_cast<std::int64_t>(cluster.levels.size()) - 1;
}

double mean_distance(const Cluster& cluster) {
  if (cluster.chips() == 1) return 0.0;
  const auto slices = static_cast<double>(cluster.slices), chips = static_cast<double>(cluster.chips_per_slice);
  const double in_slice = mean_distance(*cluster.torus) * (chips - 1.0);
  return (slices * in_slice + (slices - 1.0) * chips) / (slices * chips - 1.0);
}

std::optional<BytesPerSecond> switch_capacity(const Cluster& cluster, std::size_t level) {
  const Networks& network = cluster.chip.network;
  if (cluster.torus || cluster.levels[level].switches == 0) return std::nullopt;
  if (cluster.levels[level].chips <= cluster.chips_per_node) {
    if (!network.scale_up || !network.scale_up->switch_ports) return std::nullopt;
    return static_cast<double>(network.scale_up->switch_ports->value) * network.scale_up->link_bandwidth.value;
  }
  if (!network.scale_out || !network.scale_out->switch_ports || !network.scale_out->nic_bandwidth) return std::nullopt;
  return static_cast<double>(network.scale_out->switch_ports->value) * network.scale_out->nic_bandwidth->value;
}

std::optional<std::int64_t> links_per_switch_pair(const Cluster& cluster, std::size_t level) {
  const auto& out = cluster.chip.network.scale_out;
  if (cluster.torus || !out || !out->switch_ports || level == 0 || cluster.levels[level].switches == 0)
    return std::nullopt;
  const Level& below = cluster.levels[level - 1];
  const bool fabric_below = below.chips > cluster.chips_per_node && below.switches > 0;
  const bool top = level + 1 == cluster.levels.size() || cluster.levels[level + 1].switches == 0;
  const std::int64_t links = out->switch_ports->value / 2 / cluster.levels[level].switches;
  if (!fabric_below || !top || links == 0) return std::nullopt;
  return links;
}

std::optional<BytesPerSecond> bisection_bandwidth(const Cluster& cluster) {
  if (cluster.chips() == 1) return std::nullopt;
  if (cluster.torus && cluster.slices == 1)
    return static_cast<double>(bisection_links(*cluster.torus)) * cluster.chip.network.scale_up->link_bandwidth.value;
  const Level& top = cluster.levels.back();
  // Half of the units on one side. The last unit may not be full, so the half with fewer ports counts.
  const std::int64_t unit = top.chips / top.degree, half = top.degree / 2 * unit;
  const std::int64_t fewer = std::min(half, cluster.chips() - half);
  return static_cast<double>(fewer) / static_cast<double>(unit) * top.child_bandwidth;
}

FlopsPerSecond total_rate(const Cluster& cluster, Dtype dtype) {
  const auto& peak = cluster.chip.peak[static_cast<std::size_t>(dtype)];
  return peak ? static_cast<double>(cluster.chips()) * peak->value : FlopsPerSecond(0.0);
}

Bytes total_memory(const Cluster& cluster) {
  return static_cast<double>(cluster.chips()) * cluster.chip.hbm().capacity.value;
}

BytesPerSecond total_memory_bandwidth(const Cluster& cluster) {
  return static_cast<double>(cluster.chips()) * cluster.chip.hbm().bandwidth->value;
}

}  // namespace assay::hardware
