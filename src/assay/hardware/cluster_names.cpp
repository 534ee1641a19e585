#include "assay/hardware/cluster_names.h"

#include <fmt/format.h>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"

namespace assay::hardware {
namespace {

/// One [[instance]] or [[slice]] of a file.
struct NameEntry {
  std::string name, chip, counts, origin;
  std::int64_t chips = 1;
  std::optional<std::vector<std::string>> aliases;
  std::optional<BytesPerSecond> network;
};

void read_instance(NameEntry& entry, RecordReader& reader) {
  reader.text("name", entry.name);
  reader.texts("aliases", entry.aliases);
  reader.text("chip", entry.chip);
  reader.count("chips", entry.chips);
  if (reader.has("network")) reader.number("network", entry.network.emplace());
  entry.origin = reader.origin();
}

void read_accelerator(NameEntry& entry, RecordReader& reader) {
  std::optional<std::vector<std::string>> names;
  reader.texts("names", names);
  entry.aliases = std::move(names);
  reader.text("chip", entry.chip);
  entry.origin = reader.origin();
}

void read_slice(NameEntry& entry, RecordReader& reader) {
  reader.text("prefix", entry.name);
  reader.text("chip", entry.chip);
  reader.text("counts", entry.counts);
  if (entry.counts != "chips" && entry.counts != "cores" && !entry.counts.empty())
    reader.fault("counts", fmt::format("unknown unit {}", in_quotes(entry.counts)), "\"chips\" or \"cores\"");
  entry.origin = reader.origin();
}

}  // namespace

Result<void> ClusterNames::read_instances(const Catalogue& catalogue, const std::string& path, std::string_view text) {
  std::string id, provider;
  std::vector<NameEntry> instances, slices, accelerators;
  RecordFile file{.name = path, .keys_hint = "docs/catalogue.md lists the keys"};
  ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) {
    reader.sources();
    reader.text("id", id);
    reader.text("name", provider);
    reader.items("instance", instances, read_instance);
    reader.items("slice", slices, read_slice);
    reader.items("accelerator", accelerators, read_accelerator);
    reader.check_id(id);
  }));
  for (const NameEntry& one : instances) {
    ASSAY_CHECK(catalogue.chip(one.chip, path));
    const ClusterName meaning{one.chip, one.chips, false, one.network, provider, one.origin};
    std::vector<std::string> spelled = one.aliases.value_or(std::vector<std::string>{});
    spelled.push_back(one.name);
    for (const std::string& name : spelled) names_.insert_or_assign(plain_name(name), meaning);
    spelled_.push_back(one.name);
  }
  for (const NameEntry& one : slices) {
    ASSAY_TRY(chip, catalogue.chip(one.chip, path));
    const bool cores = one.counts == "cores";
    series_.push_back({one.name, one.chip, provider, one.origin, cores ? chip.cores.kind + "s" : "",
                       cores ? chip.cores.count.value : 1});
  }
  for (const NameEntry& one : accelerators) {
    ASSAY_CHECK(catalogue.chip(one.chip, path));
    for (const std::string& name : one.aliases.value_or(std::vector<std::string>{}))
      listed_.insert_or_assign(plain_name(name), one.chip);
  }
  return {};
}

Result<ClusterNames> ClusterNames::read(const Catalogue& catalogue) {
  ClusterNames names;
  for (const auto& [path, text] : catalogue.files("instances/"))
    ASSAY_CHECK(names.read_instances(catalogue, path, text));
  for (const std::string& id : catalogue.chip_ids()) {
    const std::string path = fmt::format("chips/{}.toml", id);
    for (const auto& [name, text] : catalogue.files(path)) {
      const auto root = parse_toml(text, name);
      if (name != path || !root) continue;  // read_chip reports the fault
      if (const Toml* aliases = root->find("aliases"))
        for (const Toml& alias : aliases->items) {
          names.names_.emplace(plain_name(alias.text), ClusterName{.chip = id});
          names.spelled_.push_back(alias.text);
        }
    }
    names.names_.emplace(plain_name(id), ClusterName{.chip = id});
    names.spelled_.push_back(id);
  }
  return names;
}

std::optional<ClusterName> ClusterNames::find(std::string_view name) const {
  if (const auto known = names_.find(plain_name(name)); known != names_.end()) return known->second;
  for (const Series& series : series_)
    for (const std::string& prefix : {series.prefix, series.chip + "-"}) {  // v5p-128, and tpu-v5p-128
      if (name.size() <= prefix.size() || plain_name(name.substr(0, prefix.size())) != plain_name(prefix)) continue;
      const auto number = parse_count(name.substr(prefix.size()), "");
      if (!number || *number % series.per_chip != 0) continue;
      return ClusterName{series.chip,  *number / series.per_chip, true, {}, series.provider, series.source,
                         series.counts};
    }
  return std::nullopt;
}

std::optional<ClusterName> ClusterNames::find_listed(std::string_view accelerator) const {
  if (const auto known = listed_.find(plain_name(accelerator)); known != listed_.end())
    return ClusterName{.chip = known->second};
  if (const auto meant = find(accelerator)) return meant;
  const std::size_t dash = accelerator.find('-');  // tpu-v5litepod-8: a slice behind the kind of chip
  return dash == accelerator.npos ? std::nullopt : find(accelerator.substr(dash + 1));
}

std::vector<std::string> ClusterNames::all() const { return spelled_; }

}  // namespace assay::hardware
