#include "assay/hardware/chip.h"

#include <fmt/format.h>

#include "assay/base/text.h"

namespace assay::hardware {
namespace {

double per_chip(const Chip& chip, const MemoryLevel& level) {
  return level.per && *level.per == "core" ? static_cast<double>(chip.cores.count.value) : 1.0;
}

}  // namespace

std::int64_t vector_alus(const Chip& chip) {
  const VectorUnit& unit = chip.vector_unit;
  return chip.cores.count.value * unit.partitions.value * unit.lanes.value * unit.alus.value;
}

Sourced<FlopsPerSecond> vector_rate(const Chip& chip) {
  const FlopsPerSecond rate = static_cast<double>(vector_alus(chip)) * 1_FLOP * chip.vector_unit.clock.value;
  return {rate, fmt::format("cores x partitions x lanes x ALUs x clock, {}", chip.vector_unit.clock.source), "", {}};
}

Sourced<FlopsPerSecond> vector_fma_rate(const Chip& chip) {
  Sourced<FlopsPerSecond> rate = vector_rate(chip);
  if (!chip.vector_unit.fma.value) return rate;
  rate.value *= 2.0;
  rate.source = "2 per fused multiply-add x " + rate.source;
  return rate;
}

std::optional<Sourced<Flops>> matrix_flops_per_cycle(const Chip& chip) {
  const MatrixUnit& unit = chip.matrix_unit;
  if (unit.flops_per_cycle) return *unit.flops_per_cycle;
  if (!unit.rows) return std::nullopt;
  const auto cells = static_cast<double>(unit.rows->value * unit.columns->value);
  return Sourced<Flops>{2.0 * cells * 1_FLOP, "2 x rows x columns, " + unit.rows->source, "", {}};
}

Result<Sourced<FlopsPerSecond>> peak_rate(const Chip& chip, Dtype dtype, std::string_view where) {
  if (const auto& peak = chip.peak[static_cast<std::size_t>(dtype)]) return *peak;
  std::string known;
  for (const DtypeFacts& entry : all_dtypes())
    if (chip.peak[static_cast<std::size_t>(entry.dtype)])
      known += (known.empty() ? "" : ", ") + std::string(entry.name);
  return fail(std::string(where), fmt::format("the matrix unit of {} has no {} rate", chip.id, name(dtype)),
              fmt::format("it computes in {}", known));
}

std::optional<Sourced<BytesPerSecond>> scale_up_egress(const Chip& chip) {
  if (!chip.network.scale_up) return std::nullopt;
  const ScaleUp& up = *chip.network.scale_up;
  return Sourced<BytesPerSecond>{
      static_cast<double>(up.links.value) * up.link_bandwidth.value,
      fmt::format("{} links x {}, {}", up.links.value, human(up.link_bandwidth.value), up.link_bandwidth.source),
      "",
      {}};
}

std::int64_t node_size(const Chip& chip) {
  const auto& up = chip.network.scale_up;
  return up && up->domain && up->domain->value > 1 ? up->domain->value : chip.host.chips.value;
}

std::vector<double> chips_below_levels(const Chip& chip) {
  auto chips = static_cast<double>(node_size(chip));
  std::vector<double> below;
  for (const FabricLevel& level : chip.network.scale_out->levels) {
    below.push_back(chips);
    if (level.degree) chips *= static_cast<double>(level.degree->value);
  }
  return below;
}

const Price* newest_price(const Chip& chip) {
  if (chip.own_price) return &*chip.own_price;
  const Price* newest = nullptr;
  for (const Price& price : chip.prices)
    if (price.kind == "on-demand" && (chip.price_provider.empty() || price.provider == chip.price_provider) &&
        (!newest || price.date > newest->date))
      newest = &price;
  return newest;
}

double network_efficiency(const Chip& chip) { return chip.efficiency.network ? chip.efficiency.network->value : 1.0; }
Seconds collective_latency(const Chip& chip) {
  return chip.efficiency.latency ? chip.efficiency.latency->value : Seconds(0);
}

std::vector<MemoryRoof> memory_roofs(const Chip& chip) {
  std::vector<MemoryRoof> roofs;
  for (const MemoryLevel& level : chip.memory) {
    if (!level.bandwidth) continue;
    MemoryRoof roof{level.name, *level.bandwidth};
    roof.bandwidth.value *= per_chip(chip, level);
    roofs.push_back(std::move(roof));
  }
  roofs.push_back({"pcie", chip.host.pcie});
  if (chip.network.scale_up) {
    if (chip.network.scale_up->kind == "torus")
      roofs.push_back({"ici", chip.network.scale_up->link_bandwidth});
    else
      roofs.push_back({"nvlink", *scale_up_egress(chip)});
  }
  if (chip.network.scale_out) roofs.push_back({"dcn", chip.network.scale_out->bandwidth});
  return roofs;
}

Result<MemoryRoof> memory_roof(const Chip& chip, std::string_view name, std::string_view where) {
  std::vector<std::string> known;
  std::string_view wanted = name;
  if (wanted == "host") wanted = "pcie";
  if (wanted == "scale-up" || wanted == "link")
    wanted = chip.network.scale_up && chip.network.scale_up->kind == "torus" ? "ici" : "nvlink";
  if (wanted == "scale-out" || wanted == "network" || wanted == "ib") wanted = "dcn";
  for (MemoryRoof& roof : memory_roofs(chip)) {
    if (roof.name == wanted) return std::move(roof);
    known.push_back(roof.name);
  }
  return fail(std::string(where),
              fmt::format("{} has no memory level {} with a known bandwidth", chip.id, in_quotes(name)),
              "it has " + join(known, ", "));
}

}  // namespace assay::hardware
