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

/// Whether a number was stated anew: its source or its value is another one.
template <class T>
bool changed(const Sourced<T>& number, const Sourced<T>& before) {
  return number.source != before.source || !(number.value == before.value);
}
template <class T>
bool changed(const Maybe<T>& number, const Maybe<T>& before) {
  if (!number || !before) return number.has_value() != before.has_value();
  return changed(*number, *before);
}

double ratio(const Maybe<Hertz>& clock, const Maybe<Hertz>& before) {
  return clock && before ? clock->value / before->value : 1.0;
}
double ratio(const Count& count, const Count& before) {
  return static_cast<double>(count.value) / static_cast<double>(before.value);
}

/// A peak is cores x units x FLOP of a unit per cycle x clock, and what the file says beyond that stays as it is.
void derive_peaks(Chip& chip, const Chip& before) {
  const MatrixUnit &unit = chip.matrix_unit, &old = before.matrix_unit;
  double faster =
      ratio(chip.cores.count, before.cores.count) * ratio(unit.count, old.count) * ratio(unit.clock, old.clock);
  const auto per_cycle = matrix_flops_per_cycle(chip), old_per_cycle = matrix_flops_per_cycle(before);
  if (per_cycle && old_per_cycle) faster *= per_cycle->value / old_per_cycle->value;
  const auto derive = [faster](Peaks& peaks, const Peaks& old_peaks) {
    for (std::size_t i = 0; i < peaks.size(); ++i) {
      if (!peaks[i] || changed(peaks[i], old_peaks[i])) continue;
      peaks[i]->value = faster * old_peaks[i]->value;
      peaks[i]->source = fmt::format("{} times {}, as its units", human_number(faster), old_peaks[i]->source);
      peaks[i]->note.clear();
      peaks[i]->also.clear();
    }
  };
  if (faster == 1.0) return;
  derive(chip.peak, before.peak);
  derive(chip.peak_sparse, before.peak_sparse);
}

/// An array that takes tiles of its own size still does.
void derive_tile(Maybe<std::int64_t>& tile, const Maybe<std::int64_t>& old_tile, const Maybe<std::int64_t>& side,
                 const Maybe<std::int64_t>& old_side) {
  if (!tile || !old_tile || !side || !old_side || changed(tile, old_tile) || old_tile->value != old_side->value) return;
  if (side->value != old_side->value) tile = side;
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
  node->file = change.source;
  return {};
}

namespace {

void share_adapters(Chip& chip, const Chip& before, const Toml& root, const ReportFault& report) {
  if (!chip.network.scale_out || !before.network.scale_out) return;
  ScaleOut& out = *chip.network.scale_out;
  const ScaleOut& old = *before.network.scale_out;
  const bool adapters = changed(out.nics_per_host, old.nics_per_host) || changed(out.nic_bandwidth, old.nic_bandwidth);
  if (changed(out.bandwidth, old.bandwidth) || !adapters) return;
  if (!out.nics_per_host || !out.nic_bandwidth)
    return report(*root.find("network")->find("scale_out"), "network.scale_out",
                  fmt::format("a host's adapters are described by nics_per_host and nic_bandwidth; {} has no {}",
                              chip.id, out.nic_bandwidth ? "nics_per_host" : "nic_bandwidth"),
                  "set both, or network.scale_out.bandwidth");
  out.bandwidth.value = static_cast<double>(out.nics_per_host->value) / static_cast<double>(chip.host.chips.value) *
                        out.nic_bandwidth->value;
  out.bandwidth.source =
      changed(out.nic_bandwidth, old.nic_bandwidth) ? out.nic_bandwidth->source : out.nics_per_host->source;
}

/// Levels keep their ratio to the ports of the chips below.
void scale_fabric(Chip& chip, const Chip& before) {
  if (!chip.network.scale_out || !before.network.scale_out) return;
  ScaleOut& out = *chip.network.scale_out;
  const ScaleOut& old = *before.network.scale_out;
  const double rate = out.bandwidth.value / old.bandwidth.value;
  const std::vector<double> below = chips_below_levels(chip), usually_below = chips_below_levels(before);
  for (std::size_t i = 0; i < out.levels.size() && i < old.levels.size(); ++i) {
    const double ports = rate * (below[i] / usually_below[i]);
    Sourced<BytesPerSecond>& bandwidth = out.levels[i].bandwidth;
    if (changed(bandwidth, old.levels[i].bandwidth) || ports == 1.0) continue;
    bandwidth.value = ports * old.levels[i].bandwidth.value;
    bandwidth.source = rate == 1.0 ? std::string(override_source) : out.bandwidth.source;
  }
}

}  // namespace

void derive_changed(Chip& chip, const Chip& before, const Toml& root, const ReportFault& report) {
  derive_peaks(chip, before);
  MatrixUnit& unit = chip.matrix_unit;
  const MatrixUnit& old = before.matrix_unit;
  derive_tile(unit.tile_k, old.tile_k, unit.rows, old.rows);
  derive_tile(unit.tile_n, old.tile_n, unit.columns, old.columns);
  share_adapters(chip, before, root, report);
  scale_fabric(chip, before);
}

}  // namespace assay::hardware
