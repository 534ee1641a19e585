#include "assay/ask/verbs/side_by_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "assay/ask/draw/heat_map.h"
#include "assay/base/text.h"
#include "assay/hardware/chip_figures.h"

namespace assay::verbs {
namespace {

/// Memories that programs fill themselves, and those that hardware does.
const std::vector<std::string> scratchpads{"smem", "vmem", "sbuf"}, caches{"l2", "cmem"}, registers{"registers"};

const hardware::MemoryLevel* level_of(const hardware::Chip& chip, const std::vector<std::string>& names) {
  const auto found = std::find_if(chip.memory.begin(), chip.memory.end(), [&](const hardware::MemoryLevel& level) {
    return std::find(names.begin(), names.end(), level.name) != names.end();
  });
  return found == chip.memory.end() ? nullptr : &*found;
}

/// "vmem, 128 MiB": over the whole chip.
report::Value memory_text(const hardware::Chip& chip, const std::vector<std::string>& names) {
  const hardware::MemoryLevel* level = level_of(chip, names);
  if (!level) return {};
  return fmt::format("{}, {}", level->name, human(hardware::capacity_of_chip(chip, *level)));
}

std::optional<BytesPerSecond> rate_of(const hardware::Chip& chip, const std::vector<std::string>& names) {
  const hardware::MemoryLevel* level = level_of(chip, names);
  if (!level || !level->bandwidth) return std::nullopt;
  return level->bandwidth->value;
}

std::optional<BytesPerSecond> links_of(const hardware::Chip& chip) {
  const auto figures = hardware::scale_up_figures(chip);
  return figures ? std::optional(figures->egress) : std::nullopt;
}

struct Part {
  std::string_view name;
  std::function<report::Value(const hardware::Chip&)> value;
};

std::vector<Part> parts() {
  const auto peak = [](const hardware::Chip& chip) {
    return chip.peak[static_cast<std::size_t>(reference_dtype(chip))];
  };
  return {
      {"cores",
       [](const hardware::Chip& chip) { return fmt::format("{} {}", chip.cores.count.value, chip.cores.kind); }},
      {"matrix units",
       [](const hardware::Chip& chip) { return chip.matrix_unit.count.value * chip.cores.count.value; }},
      {"matrix rate",
       [peak](const hardware::Chip& chip) { return peak(chip) ? report::Value(peak(chip)->value) : report::Value(); }},
      {"vector ALUs", [](const hardware::Chip& chip) { return hardware::vector_figures(chip).alus; }},
      {"vector rate", [](const hardware::Chip& chip) { return hardware::vector_figures(chip).rate; }},
      {"registers", [](const hardware::Chip& chip) { return memory_text(chip, registers); }},
      {"scratchpad", [](const hardware::Chip& chip) { return memory_text(chip, scratchpads); }},
      {"cache", [](const hardware::Chip& chip) { return memory_text(chip, caches); }},
      {"scratchpad bandwidth", [](const hardware::Chip& chip) { return report::Value(rate_of(chip, scratchpads)); }},
      {"cache bandwidth", [](const hardware::Chip& chip) { return report::Value(rate_of(chip, caches)); }},
      {"memory", [](const hardware::Chip& chip) { return chip.hbm().capacity.value; }},
      {"memory bandwidth", [](const hardware::Chip& chip) { return chip.hbm().bandwidth->value; }},
      {"critical intensity",
       [peak](const hardware::Chip& chip) {
         return peak(chip) ? report::Value(peak(chip)->value / chip.hbm().bandwidth->value) : report::Value();
       }},
      {"links",
       [](const hardware::Chip& chip) {
         const auto& up = chip.network.scale_up;
         return up ? report::Value(fmt::format("{} {}", up->links.value, up->technology.value_or(up->kind)))
                   : report::Value();
       }},
      {"bandwidth of links", [](const hardware::Chip& chip) { return report::Value(links_of(chip)); }},
      {"chips joined by links",
       [](const hardware::Chip& chip) {
         const auto figures = hardware::scale_up_figures(chip);
         if (figures && figures->pod_chips) return report::Value(*figures->pod_chips);
         const auto& up = chip.network.scale_up;
         return up && up->domain ? report::Value(up->domain->value) : report::Value();
       }},
      {"network beyond",
       [](const hardware::Chip& chip) {
         const auto& out = chip.network.scale_out;
         return out ? report::Value(out->bandwidth.value) : report::Value();
       }},
      {"PCIe", [](const hardware::Chip& chip) { return chip.host.pcie.value; }},
      {"price",
       [](const hardware::Chip& chip) {
         const hardware::Price* price = hardware::newest_price(chip);
         return price ? report::Value(price->value.value) : report::Value();
       }},
      {"FLOP per dollar", [](const hardware::Chip& chip) {
         const hardware::Price* price = hardware::newest_price(chip);
         return price ? report::Value(hardware::flops_per_dollar(chip, *price)) : report::Value();
       }}};
}

}  // namespace

report::Items side_by_side(const std::vector<hardware::Chip>& chips) {
  report::Items rows;
  for (const Part& part : parts()) {
    report::Members row{{"part", part.name}};
    bool any = false;
    for (const hardware::Chip& chip : chips) {
      report::Value value = part.value(chip);
      any = any || !value.is_null();
      row.emplace_back(chip.id, std::move(value));
    }
    if (any) rows.emplace_back(std::move(row));
  }
  return rows;
}

draw::Scene bandwidth_ladder(const std::vector<hardware::Chip>& chips) {
  struct Level {
    std::string name;
    std::function<std::optional<BytesPerSecond>(const hardware::Chip&)> rate;
  };
  const Level levels[] = {
      {"scratchpad", [](const hardware::Chip& chip) { return rate_of(chip, scratchpads); }},
      {"cache", [](const hardware::Chip& chip) { return rate_of(chip, caches); }},
      {"memory", [](const hardware::Chip& chip) { return std::optional(chip.hbm().bandwidth->value); }},
      {"links", [](const hardware::Chip& chip) { return links_of(chip); }},
      {"PCIe", [](const hardware::Chip& chip) { return std::optional(chip.host.pcie.value); }},
      {"network", [](const hardware::Chip& chip) {
         const auto& out = chip.network.scale_out;
         return out ? std::optional(out->bandwidth.value) : std::nullopt;
       }}};
  draw::HeatMapInput ladder{
      "How fast bytes come to a chip", "one way, of one chip; the deeper the colour, the faster", "", "", {}, {}, {}};
  for (const hardware::Chip& chip : chips) ladder.columns.push_back(chip.id);
  for (const Level& level : levels) {
    if (std::none_of(chips.begin(), chips.end(),
                     [&](const hardware::Chip& chip) { return level.rate(chip).has_value(); }))
      continue;
    ladder.rows.push_back(level.name);
    auto& cells = ladder.cells.emplace_back();
    for (const hardware::Chip& chip : chips) {
      const auto rate = level.rate(chip);
      cells.emplace_back();
      if (rate)
        cells.back() = draw::HeatMapCell{std::log10(rate->value()), human(*rate),
                                         fmt::format("{} of {}: {}", level.name, chip.name, human(*rate))};
    }
  }
  return draw::draw_heat_map(ladder);
}

}  // namespace assay::verbs
