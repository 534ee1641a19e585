// Figures derived from the numbers of a chip file; absent if the file does not say enough.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/hardware/chip.h"

namespace assay::hardware {

/// The format used to compare chips: bf16, otherwise fp16, fp32, fp64, otherwise the first it has.
Dtype reference_dtype(const Chip& chip);

/// Figures of the matrix units, in the reference format.
struct MatrixFigures {
  std::optional<Flops> flops_per_cycle;            ///< FLOP of one unit
  std::optional<std::int64_t> cells;               ///< cells of one systolic array
  std::optional<FlopsPerSecond> unit_rate;         ///< rate of one unit at its clock
  std::optional<FlopsPerSecond> rate_from_units;   ///< rate of all units; compare it with the peak
  std::optional<Flops> flops_per_cycle_from_peak;  ///< FLOP of one unit, assuming that all units make up the peak
  std::optional<FlopsPerSecond> rate_per_core;     ///< the peak over the cores
  std::optional<double> over_vector;               ///< the peak over the vector rate
  std::vector<std::pair<Dtype, double>> speedups;  ///< peaks of other formats over the reference
};
MatrixFigures matrix_figures(const Chip& chip);

struct VectorFigures {
  std::int64_t alus = 0, alus_per_core = 0;
  FlopsPerSecond rate, rate_per_core, fma_rate;
  std::optional<FlopsPerSecond> rate_at_base_clock;
  std::optional<std::int64_t> threads_per_core;               ///< if each thread uses the maximum number of registers
  std::int64_t lane_steps = 0;                                ///< steps to add up all lanes, halving them each time
  std::optional<std::int64_t> sublane_steps, sublane_cycles;  ///< to add up all sublanes, where registers have some
};
VectorFigures vector_figures(const Chip& chip);

/// Capacity of a memory level over the whole chip.
Bytes capacity_of_chip(const Chip& chip, const MemoryLevel& level);

/// Capacity over the whole chip of each memory level that is inside the cores.
std::vector<std::pair<std::string, Bytes>> core_memory(const Chip& chip);

/// The knee of a memory level's roofline.
struct CriticalIntensity {
  std::string memory;
  double over_hbm = 1;  ///< bandwidth relative to main memory
  std::vector<std::pair<Dtype, FlopsPerByte>> by_dtype;
  FlopsPerByte vector;
  std::optional<FlopsPerByte> ring;  ///< ici in the reference format: a closed ring moves data both ways at once
};
std::vector<CriticalIntensity> critical_intensities(const Chip& chip);

struct ScaleUpFigures {
  BytesPerSecond link_both_ways, egress;
  std::optional<std::int64_t> pod_chips;
  std::optional<BytesPerSecond> switch_capacity;  ///< capacity of all switches of a node
  std::optional<double> scale_out_switch_over_scale_up_switch;
  std::optional<BytesPerSecond> node_egress;
};
std::optional<ScaleUpFigures> scale_up_figures(const Chip& chip);

/// FLOP of the reference peak per dollar of a price.
std::optional<FlopsPerDollar> flops_per_dollar(const Chip& chip, const Price& price);

}  // namespace assay::hardware
