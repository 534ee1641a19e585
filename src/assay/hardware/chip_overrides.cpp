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
bool is_stated(const Maybe<T>& number, const Stated& stated) {
  return number && stated(number->source);
}

double ratio(const Maybe<Hertz>& clock, const Maybe<Hertz>& before) {
  return clock && before ? clock->value / before->value : 1.0;
}
double ratio(const Count& count, const Count& before) {
  return static_cast<double>(count.value) / static_cast<double>(before.value);
}

/// A peak is cores x units x FLOP of a unit per cycle x clock, and what the file says beyond that stays as it is.
void derive_peaks(Chip& chip, const Chip& before, const Stated& stated) {
  const MatrixUnit &unit = chip.matrix_unit, &old = before.matrix_unit;
  double faster =
      ratio(chip.cores.count, before.cores.count) * ratio(unit.count, old.count) * ratio(unit.clock, old.clock);
  const auto per_cycle = matrix_flops_per_cycle(chip), old_per_cycle = matrix_flops_per_cycle(before);
  if (per_cycle && old_per_cycle) faster *= per_cycle->value / old_per_cycle->value;
  const auto derive = [&](Peaks& peaks, const Peaks& old_peaks) {
    for (std::size_t i = 0; i < peaks.size(); ++i) {
      if (!peaks[i] || !old_peaks[i] || is_stated(peaks[i], stated)) continue;
      peaks[i] = old_peaks[i];
      if (faster == 1.0) continue;
      peaks[i]->value *= faster;
      peaks[i]->source = fmt::format("{} times {}, as its units", human_number(faster), old_peaks[i]->source);
      peaks[i]->note.clear();
      peaks[i]->also.clear();
    }
  };
  derive(chip.peak, before.peak);
  derive(chip.peak_sparse, before.peak_sparse);
}

/// An array that takes tiles of its own size still does.
void derive_tile(Maybe<std::int64_t>& tile, const Maybe<std::int64_t>& old_tile, const Maybe<std::int64_t>& side,
                 const Maybe<std::int64_t>& old_side, const Stated& stated) {
  if (!tile || !old_tile || is_stated(tile, stated)) return;
  tile = old_tile;
  if (side && old_side && old_tile->value == old_side->value && side->value != old_side->value) tile = side;
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

void share_adapters(Chip& chip, const Chip& before, const Stated& stated, const Toml& root, const ReportFault& report) {
  if (!chip.network.scale_out || !before.network.scale_out) return;
  ScaleOut& out = *chip.network.scale_out;
  if (stated(out.bandwidth.source)) return;
  out.bandwidth = before.network.scale_out->bandwidth;
  const bool rate = is_stated(out.nic_bandwidth, stated), number = is_stated(out.nics_per_host, stated);
  if (!rate && !number) return;
  if (!out.nics_per_host || !out.nic_bandwidth)
    return report(*root.find("network")->find("scale_out"), "network.scale_out",
                  fmt::format("a host's adapters are described by nics_per_host and nic_bandwidth; {} has no {}",
                              chip.id, out.nic_bandwidth ? "nics_per_host" : "nic_bandwidth"),
                  "set both, or network.scale_out.bandwidth");
  out.bandwidth.value = static_cast<double>(out.nics_per_host->value) / static_cast<double>(chip.host.chips.value) *
                        out.nic_bandwidth->value;
  out.bandwidth.source = rate ? out.nic_bandwidth->source : out.nics_per_host->source;
}

/// Levels keep their ratio to the ports of the chips below.
void scale_fabric(Chip& chip, const Chip& before, const Stated& stated) {
  if (!chip.network.scale_out || !before.network.scale_out) return;
  ScaleOut& out = *chip.network.scale_out;
  const ScaleOut& old = *before.network.scale_out;
  const double rate = out.bandwidth.value / old.bandwidth.value;
  const std::vector<double> below = chips_below_levels(chip), usually_below = chips_below_levels(before);
  for (std::size_t i = 0; i < out.levels.size() && i < old.levels.size(); ++i) {
    Sourced<BytesPerSecond>& bandwidth = out.levels[i].bandwidth;
    if (stated(bandwidth.source)) continue;
    bandwidth = old.levels[i].bandwidth;
    const double ports = rate * (below[i] / usually_below[i]);
    if (ports == 1.0) continue;
    bandwidth.value = ports * bandwidth.value;
    bandwidth.source = rate == 1.0 ? std::string(override_source) : out.bandwidth.source;
  }
}

}  // namespace

void derive_changed(Chip& chip, const Chip& before, const Stated& stated, const Toml& root, const ReportFault& report) {
  derive_peaks(chip, before, stated);
  MatrixUnit& unit = chip.matrix_unit;
  const MatrixUnit& old = before.matrix_unit;
  derive_tile(unit.tile_k, old.tile_k, unit.rows, old.rows, stated);
  derive_tile(unit.tile_n, old.tile_n, unit.columns, old.columns, stated);
  share_adapters(chip, before, stated, root, report);
  scale_fabric(chip, before, stated);
}

}  // namespace assay::hardware
