// A chip as it is designed: dies with cores, memories and links, and what of them is switched on. docs/design.md
// describes the file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/toml.h"
#include "assay/predict/design/technology.h"

namespace assay::design {

/// What a die has of something, and what of it is used: the others are spare.
struct Made {
  double count = 0, used = 0;
};

/// Links of a kind.
struct DieLinks {
  const LinkKind* kind = nullptr;
  double count = 0;
};

/// A die, of which a package may hold several that are alike.
struct Die {
  const Node* node = nullptr;
  std::string style;  ///< of its layout: dies of one style have the same share of area that no part explains
  double count = 1;
  Made cores;
  double matrix_units = 0, multiply_adds = 0;  ///< units of a core, and 16-bit multiply-adds of each in a cycle
  double lanes = 0, double_lanes = 0, integer_lanes = 0;  ///< of the vector units of a core
  Bytes local;                                            ///< memory of a core: registers, caches, scratchpad
  Bytes cache, scratchpad;                                ///< that the cores of the die share
  double stacks = 0;                                      ///< whose PHYs it has
  std::vector<DieLinks> links;
  Given<Area> other;                     ///< parts that are not listed
  std::optional<Given<Area>> published;  ///< what its maker says
};

struct ChipDesign {
  std::string id, name, base;  ///< base: the chip whose network, hosts and calibration it has; may be empty
  Hertz clock;
  std::vector<Die> dies;
  std::vector<std::pair<Dtype, double>> rates;  ///< of other formats, relative to 16 bits
  const StackKind* memory = nullptr;            ///< none: on-chip memory alone
  double stacks = 0;                            ///< that are used
  Bytes stack_capacity;
  BytesPerSecond stack_bandwidth;
  std::string scale_up;           ///< the kind of links to other chips
  std::optional<Bytes> cache_on;  ///< of the shared memory, if a part is switched off
  const PackageKind* package = nullptr;
  std::optional<Watts> limit;             ///< of power: the clock follows
  std::optional<Given<Watts>> published;  ///< power, as its maker says
  std::optional<double> volume;           ///< chips over which masks and design are spread

  /// The id of its chip file: its own, or another one where the base has that.
  std::string chip_id() const { return id == base ? id + "-design" : id; }
  FlopsPerSecond peak() const;  ///< in 16 bits, at the clock
  double cores() const;         ///< that are used, over all dies
  BytesPerSecond memory_bandwidth() const { return stacks * stack_bandwidth; }
  BytesPerSecond link_bandwidth() const;  ///< to other chips, one way
};

/// Reads a design; reports every fault at once. `file` names it in errors.
Result<ChipDesign> read_design(const Toml& root, const std::string& file, const Technology& technology);

/// What other verbs see of a chip: the more of each, the faster.
struct ChipRates {
  double cores = 0;
  std::vector<std::pair<Dtype, FlopsPerSecond>> peaks;  ///< of one core, by format
  Bytes capacity;                                       ///< of memory beside the dies; none: as of the base
  BytesPerSecond bandwidth;
  double links = 0;  ///< to other chips
  BytesPerSecond link_bandwidth;
};
/// At a clock, which may be lower than that of the design.
ChipRates rates_of(const ChipDesign& design, Hertz clock);

/// The chip file that other verbs take: what differs from the base.
std::string chip_file(const ChipDesign& design, const ChipRates& rates, Watts power);

}  // namespace assay::design
