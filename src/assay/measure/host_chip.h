// The chip file of this machine, `chips/host.toml`, from what was measured.
#pragma once
#include <string>
#include <vector>

#include "assay/base/units.h"
#include "assay/measure/machine.h"
#include "assay/measure/rows.h"

namespace assay::measure {

/// What a file says about how it was made.
struct MeasureOrigin {
  std::string date, command;
};

/// The rates of a machine. Peaks are cores x clock x FLOP per cycle, where the last is that of two vector units with
/// fused multiply-add, and twice as much for as long as products were faster than that; where the clock is not known,
/// the fastest product. Bandwidths are the fastest reads and copies.
struct HostRates {
  Machine machine;
  Hertz clock;                ///< 0: not known
  int units = 2;              ///< vector units of one core
  FlopsPerSecond fp32, fp64;  ///< peaks; 0 where no such product was measured
  BytesPerSecond memory;
  std::vector<BytesPerSecond> caches;  ///< of the whole machine, by the machine's caches; 0: not measured
  BytesPerSecond link;                 ///< what one rank receives at most; 0: no collectives
  std::int64_t ranks = 0;              ///< the most that were measured
};
HostRates host_rates(const Facts& facts, const std::vector<MeasuredRow>& rows);

/// The file; the shares are those that kernels were found to reach.
std::string host_chip_text(const HostRates& rates, const MeasureOrigin& origin, double matrix_share,
                           double memory_share);

/// Bytes that one of `ranks` receives in a collective, over those of the whole array.
double share_of_array(const std::string& kind, double ranks);
bool is_collective(const std::string& op);

/// Text in a form that a string of a TOML file may hold.
std::string plain_text(std::string text);

}  // namespace assay::measure
