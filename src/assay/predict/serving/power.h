// What the chips of a server draw: by how busy a step keeps matrix units, memory and links.
#pragma once
#include <optional>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"
#include "assay/predict/serving/point.h"

namespace assay::serving {

using JoulesPerByte = Quantity<Dim{.byte = -1, .joule = 1}>;

/// Of any chip, as shares of its limit, and for each byte of memory: catalogue/steps/power_load.toml.
struct PowerLoad {
  Given<double> idle;                ///< clocks are up, and nothing runs
  Given<double> matrix;              ///< above that, matrix units at their peak, in any format
  Given<double> link;                ///< links at their peak
  Given<double> padding;             ///< of what arithmetic draws, on rows that only fill a block
  Given<JoulesPerByte> byte, cache;  ///< of weights and activations; of caches that attention reads
};
Result<PowerLoad> power_load_of(const hardware::Catalogue& catalogue);

/// Energy of one chip in a step: idle power all of the time, and what arithmetic, bytes and messages take beyond it; at
/// most its limit.
Joules step_energy(const hardware::Chip& chip, const PowerLoad& load, const ServingTime& step);

/// Of a server whose places are all taken.
struct ServedPower {
  Watts chip, limit;  ///< on average, and the most
  Joules decode;      ///< of a decode step, all chips
  Joules token;       ///< of an output token, with its share of prompts
};
/// Nothing where the chip's limit is not known.
std::optional<ServedPower> served_power(const hardware::Chip& chip, double chips, const PowerLoad& load,
                                        const ServingPoint& point);

/// The mean power of servers of which so many work at a time: idle power all of the time, and beyond it that of a full
/// server while it works.
Watts mean_power(const PowerLoad& load, const ServedPower& full, double chips, double servers, double working);

}  // namespace assay::serving
