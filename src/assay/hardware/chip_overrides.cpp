#include "assay/hardware/chip_overrides.h"

#include <fmt/format.h>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::hardware {
namespace {

/// The member of a table with this key, or the entry with this name in a list of tables.
Toml* member_named(Toml& node, std::string_view key) {
  if (node.kind == Toml::Kind::table) return node.find(key);
  for (Toml& item : node.items)
    if (const Toml* name = item.find("name"); name && name->text == key) return &item;
  return nullptr;
}

template <class T>
bool is_set(const Sourced<T>& number) {
  return number.source == override_source;
}
template <class T>
bool is_set(const Maybe<T>& number) {
  return number && is_set(*number);
}

}  // namespace

Result<void> apply_override(Toml& root, const Override& change) {
  Toml* node = &root;
  const auto keys = split(change.path, '.');
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Toml* next = member_named(*node, keys[i]);
    const bool last = i + 1 == keys.size();
    if (!next && last && node->kind == Toml::Kind::table && i > 0) {
      // A key that this chip omits; the reader knows whether it exists.
      node->members.emplace_back(keys[i], Toml{});
      next = &node->members.back().second;
    }
    if (!next || (last && !next->members.empty() && !next->find("value"))) {
      std::vector<std::string> known;
      for (const auto& [key, value] : (next ? next : node)->members) known.push_back(key);
      for (const Toml& item : (next ? next : node)->items)
        if (const Toml* name = item.find("name")) known.push_back(name->text);
      return fail("--set " + change.path, fmt::format("{} is not a number of the chip", in_quotes(change.path)),
                  next ? "the keys below it are " + join(known, ", ") : suggestion(keys[i], known), Error::Kind::usage);
    }
    node = next;
  }
  *node = toml_scalar(change.value);  // it has no line in the file, which is how the reader recognises it
  return {};
}

void share_adapters(Chip& chip, const Toml& root, const ReportFault& report) {
  if (!chip.network.scale_out) return;
  ScaleOut& out = *chip.network.scale_out;
  if (is_set(out.bandwidth) || !(is_set(out.nics_per_host) || is_set(out.nic_bandwidth))) return;
  if (!out.nics_per_host || !out.nic_bandwidth)
    return report(*root.find("network")->find("scale_out"), "network.scale_out",
                  fmt::format("a host's adapters are described by nics_per_host and nic_bandwidth; {} has no {}",
                              chip.id, out.nic_bandwidth ? "nics_per_host" : "nic_bandwidth"),
                  "set both, or network.scale_out.bandwidth");
  out.bandwidth.value = static_cast<double>(out.nics_per_host->value) / static_cast<double>(chip.host.chips.value) *
                        out.nic_bandwidth->value;
  out.bandwidth.source = override_source;
}

void scale_fabric(Chip& chip, const Chip& before) {
  if (!chip.network.scale_out || !before.network.scale_out) return;
  ScaleOut& out = *chip.network.scale_out;
  const double rate = out.bandwidth.value / before.network.scale_out->bandwidth.value;
  const std::vector<double> below = chips_below_levels(chip), usually_below = chips_below_levels(before);
  for (std::size_t i = 0; i < out.levels.size(); ++i) {
    const double ratio = rate * (below[i] / usually_below[i]);
    Sourced<BytesPerSecond>& bandwidth = out.levels[i].bandwidth;
    if (is_set(bandwidth) || ratio == 1.0) continue;
    bandwidth.value = ratio * bandwidth.value;
    bandwidth.source = override_source;
  }
}

}  // namespace assay::hardware
