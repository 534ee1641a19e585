#include "assay/hardware/chip_figures.h"

#include <bit>

namespace assay::hardware {
namespace {

const Maybe<FlopsPerSecond>& dense_peak(const Chip& chip, Dtype dtype) {
  return chip.peak[static_cast<std::size_t>(dtype)];
}

double core_total(const Chip& chip) { return static_cast<double>(chip.cores.count.value); }

}  // namespace

Dtype reference_dtype(const Chip& chip) {
  for (Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32, Dtype::fp64})
    if (dense_peak(chip, dtype)) return dtype;
  for (const DtypeFacts& entry : all_dtypes())
    if (dense_peak(chip, entry.dtype)) return entry.dtype;
  return Dtype::bf16;
}

MatrixFigures matrix_figures(const Chip& chip) {
  MatrixFigures figures;
  const Dtype reference = reference_dtype(chip);
  const auto& peak = dense_peak(chip, reference);
  const MatrixUnit& unit = chip.matrix_unit;
  if (const auto per_cycle = matrix_flops_per_cycle(chip)) {
    const double units = core_total(chip) * static_cast<double>(unit.count.value);
    figures.flops_per_cycle = per_cycle->value;
    if (unit.rows) figures.cells = unit.rows->value * unit.columns->value;
    if (unit.clock) {
      figures.unit_rate = per_cycle->value * unit.clock->value;
      figures.rate_from_units = units * per_cycle->value * unit.clock->value;
      if (peak) figures.flops_per_cycle_from_peak = peak->value / (units * unit.clock->value);
    }
  }
  if (!peak) return figures;
  figures.rate_per_core = peak->value / core_total(chip);
  figures.over_vector = peak->value / vector_rate(chip).value;
  for (const DtypeFacts& entry : all_dtypes())
    if (const auto& other = dense_peak(chip, entry.dtype); other && entry.dtype != reference)
      figures.speedups.emplace_back(entry.dtype, other->value / peak->value);
  return figures;
}

VectorFigures vector_figures(const Chip& chip) {
  VectorFigures figures;
  const VectorUnit& unit = chip.vector_unit;
  figures.alus = vector_alus(chip);
  figures.alus_per_core = vector_alus(chip) / chip.cores.count.value;
  figures.rate = vector_rate(chip).value;
  figures.rate_per_core = vector_rate(chip).value / core_total(chip);
  figures.fma_rate = vector_fma_rate(chip).value;
  if (chip.cores.base_clock)
    figures.rate_at_base_clock = static_cast<double>(vector_alus(chip)) * 1_FLOP * chip.cores.base_clock->value;
  if (chip.cores.registers_per_thread && unit.registers)
    figures.threads_per_core = unit.partitions.value * unit.registers->value / chip.cores.registers_per_thread->value;
  const auto halvings = [](std::int64_t n) { return std::bit_width(static_cast<std::uint64_t>(n - 1)); };
  figures.lane_steps = halvings(unit.lanes.value);
  if (unit.cross_lane_units) {  // registers of sublanes x lanes: sublanes roll in the ALUs, lanes need a unit of their
                                // own
    figures.sublane_steps = halvings(unit.partitions.value);
    if (unit.latency) figures.sublane_cycles = *figures.sublane_steps * unit.latency->value;
  }
  return figures;
}

Bytes capacity_of_chip(const Chip& chip, const MemoryLevel& level) {
  return (level.per && *level.per == "core" ? core_total(chip) : 1.0) * level.capacity.value;
}

std::vector<std::pair<std::string, Bytes>> core_memory(const Chip& chip) {
  std::vector<std::pair<std::string, Bytes>> totals;
  for (const MemoryLevel& level : chip.memory)
    if (level.per && *level.per == "core") totals.emplace_back(level.name, capacity_of_chip(chip, level));
  return totals;
}

std::vector<CriticalIntensity> critical_intensities(const Chip& chip) {
  std::vector<CriticalIntensity> all;
  for (const MemoryRoof& roof : memory_roofs(chip)) {
    CriticalIntensity& critical = all.emplace_back();
    critical.memory = roof.name;
    critical.over_hbm = roof.bandwidth.value / chip.hbm().bandwidth->value;
    for (const DtypeFacts& entry : all_dtypes())
      if (const auto& peak = dense_peak(chip, entry.dtype))
        critical.by_dtype.emplace_back(entry.dtype, peak->value / roof.bandwidth.value);
    critical.vector = vector_rate(chip).value / roof.bandwidth.value;
    if (const auto& peak = dense_peak(chip, reference_dtype(chip)); peak && roof.name == "ici")
      critical.ring = peak->value / (2.0 * roof.bandwidth.value);
  }
  return all;
}

std::optional<ScaleUpFigures> scale_up_figures(const Chip& chip) {
  const auto& up = chip.network.scale_up;
  if (!up) return std::nullopt;
  ScaleUpFigures figures;
  figures.link_both_ways = 2.0 * up->link_bandwidth.value;
  figures.egress = scale_up_egress(chip)->value;
  if (up->pod) {
    figures.pod_chips = 1;
    for (std::int64_t n : up->pod->value) *figures.pod_chips *= n;
  }
  if (up->switches && up->switch_ports)
    figures.switch_capacity =
        static_cast<double>(up->switches->value * up->switch_ports->value) * up->link_bandwidth.value;
  const auto& out = chip.network.scale_out;
  if (up->switch_ports && out && out->switch_ports && out->nic_bandwidth)
    figures.scale_out_switch_over_scale_up_switch =
        static_cast<double>(out->switch_ports->value) * out->nic_bandwidth->value /
        (static_cast<double>(up->switch_ports->value) * up->link_bandwidth.value);
  if (up->domain && out) figures.node_egress = static_cast<double>(up->domain->value) * out->bandwidth.value;
  return figures;
}

std::optional<FlopsPerDollar> flops_per_dollar(const Chip& chip, const Price& price) {
  const auto& peak = dense_peak(chip, reference_dtype(chip));
  if (!peak) return std::nullopt;
  return peak->value / price.value.value;
}

}  // namespace assay::hardware
