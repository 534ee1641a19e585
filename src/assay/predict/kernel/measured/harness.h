// Ways of measuring a kernel: what they add to the kernel itself. `roofline --measured` names one.
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "assay/base/dtype.h"
#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/catalogue.h"
#include "assay/predict/kernel/kernel.h"

namespace assay::kernel {

/// Casting the left operand of a product to 8 bits or fewer, if the measurement includes it.
struct Quantising {
  Seconds fixed;      ///< independent of the size
  Seconds element;    ///< per element of a row, which is scaled by its maximum
  double passes = 0;  ///< over all elements, one byte each
};

/// What one way of measuring adds; catalogue/validation/harness.toml holds one for each table of measurements.
struct Harness {
  std::array<Seconds, kernel_kinds> launch{};  ///< fixed time of a measurement, by kind
  Seconds gap, ramp;                           ///< as in Regime
  Bytes dirty;          ///< bytes that flushing leaves in the cache: a kernel's reads must evict them
  double evicts = 1;    ///< share of the reads that evict, until no such bytes are left
  bool split_k = true;  ///< its kernels may split k
  /// Bytes moved by a kernel, evictions included.
  Bytes moved(Bytes bytes) const { return bytes + std::min(evicts * bytes, dirty); }
  std::map<std::pair<Dtype, std::string>, Quantising> quantise;  ///< by format and architecture
  double attention_passes = 0;  ///< passes over queries, keys and values that the measurement includes
};
using Harnesses = std::map<std::string, Harness, std::less<>>;

/// The harnesses of a file by name; reports every fault at once.
Result<Harnesses> read_harnesses(std::string_view document, std::string_view file);
/// The catalogue's harnesses.
Result<Harnesses> harnesses_of(const hardware::Catalogue& catalogue);
/// How people time kernels, in general; the numbers are those of the chip's calibration.
///   flushed      one at a time, after a write over the whole cache: what triton.testing.do_bench does
///   cold         one at a time, with nothing in the cache
///   alone        one at a time, with the cache as the last run left it; hits in the cache are not modelled
///   in-a-stream  one of many back to back, as in a step, at the clock that sustained power allows
inline constexpr std::string_view measured_ways[] = {"flushed", "cold", "alone", "in-a-stream"};
inline constexpr std::string_view default_way = measured_ways[0];

/// Products start as in the regime, other kernels as `launch` says where it is given.
Harness harness_of(const hardware::Regime& regime, const hardware::LaunchCalibration* launch = nullptr);

/// A way of measuring on one chip.
struct MeasuredWay {
  std::string name;
  Harness harness;
  std::string source;      ///< of its numbers
  bool sustained = false;  ///< kernels back to back
};
/// One of the general ways, or the harness of a table by its name; unknown names are an error with the nearest ones.
/// Nothing where the calibration lacks the regime.
Result<std::optional<MeasuredWay>> measured_way(std::string_view name, const hardware::Calibration& calibration,
                                                const hardware::Catalogue& catalogue, std::string_view where);

/// The text of a file that reads back as these harnesses; `source` is the key of its source.
std::string harness_text(const Harnesses& harnesses, std::string_view source);

}  // namespace assay::kernel
