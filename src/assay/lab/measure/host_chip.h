// The chip file of this machine, `chips/host.toml`, from measurements.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/units.h"
#include "assay/lab/measure/machine.h"
#include "assay/lab/measure/rows.h"
#include "assay/program/form/collective.h"

namespace assay::measure {

/// How a file was made.
struct MeasureOrigin {
  std::string date, command;
};

/// The rates of a machine. Peaks are cores x clock x FLOP per cycle, assuming two vector units with fused multiply-add,
/// doubled while measured products are faster than that; without a known clock, the fastest product. Bandwidths come
/// from the fastest reads and copies.
struct HostRates {
  Machine machine;
  Hertz clock;                ///< 0: not known
  int units = 2;              ///< vector units of one core
  FlopsPerSecond fp32, fp64;  ///< peaks; 0 where no such product was measured
  BytesPerSecond memory;
  std::vector<BytesPerSecond> caches;  ///< of the whole machine, by cache; 0: not measured
  BytesPerSecond link;                 ///< maximum received by a rank on its core; 0: no collectives
  std::int64_t ranks = 0;              ///< largest number measured
};
HostRates host_rates(const Facts& facts, const std::vector<MeasuredRow>& rows);

/// The file; its shares are the ones that kernels reached.
std::string host_chip_text(const HostRates& rates, const MeasureOrigin& origin, double matrix_share,
                           double memory_share);

/// The collective that rows of this operation measure: "all_gather".
std::optional<program::Collective> collective_of(std::string_view op);

/// The fact of a table that says how many cores its ranks share, and its value; nothing where no network was measured.
inline constexpr std::string_view shared_cores_fact = "shared cores";
std::optional<double> shared_cores(const Facts& facts);

/// Text escaped for a TOML string.
std::string plain_text(std::string text);

}  // namespace assay::measure
