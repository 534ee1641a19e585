// Area, power and cost of a designed chip, from its parts and the technology. Written once over a number policy; ranges
// come from varying one figure of the technology after the other.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/predict/design/chip_design.h"

namespace assay::design {

/// What dies that exist say about parts that nobody lists: areas and energies over those of the parts.
struct Calibration {
  std::vector<std::pair<std::string, Spread<double>>> layouts;   ///< by the style of dies
  std::vector<std::pair<std::string, Spread<double>>> energies;  ///< of arithmetic, by process
  /// By name; nothing where no die says so.
  const Spread<double>* layout(std::string_view style) const;
  const Spread<double>* energy(std::string_view node) const;
};

/// Everything that figures depend on. Holds references: for the duration of a call.
struct Designed {
  const ChipDesign& design;
  const Technology& technology;
  const Calibration& calibration;
};

/// Which figure of the technology is at the end of its range; the others are typical.
struct Varied {
  const void* figure = nullptr;
  bool is_high = false;
  template <class Q>
  const Given<Q>& of(const Spread<Q>& spread) const {
    return &spread != figure ? spread.typical : is_high ? spread.high : spread.low;
  }
};

/// Areas of one die.
template <class N>
struct DieArea {
  NumberOf<N, Area> logic{}, memory{}, stacks{}, links{}, other{};  ///< parts that are listed
  NumberOf<N, Area> listed{}, all{};                                ///< all: with control, wires and what lies between
};

template <class N>
struct ChipPower {
  NumberOf<N, Watts> arithmetic{}, memory{}, links{}, leakage{}, all{};  ///< at full load, at the clock of the design
};

template <class N>
struct ChipCost {
  NumberOf<N, Dollars> dies{}, memory{}, package{}, test{}, once{}, all{};  ///< once: masks and design, by the volume
};

template <class N>
struct ChipFigures {
  std::vector<DieArea<N>> dies;  ///< in the order of the design
  NumberOf<N, Area> area{};      ///< of all dies
  ChipPower<N> power;
  ChipCost<N> cost;
};

template <class N>
ChipFigures<N> chip_figures(const N& num, const Designed& of, const Varied& varied = {});

/// Shares of dies that work: as they are, and where spare cores replace broken ones.
struct Yield {
  double without_spares = 1, with_spares = 1;
};
/// Dies whose defects lie in clusters (negative binomial); `cores` is the area of all cores that a die has.
Yield yield_of(Area die, Area cores, const Made& made, PerArea defects, double clustering);
/// Whole dies of a round wafer (de Vries 2005); lengths in millimetres.
double dies_per_wafer(Area die, double diameter, double edge, double scribe);

/// The yield of a die of the design with typical figures.
Yield yield_of(const Designed& of, const Die& die, const DieArea<Plain>& area);

/// The clock at which the chip stays below its power limit at full load; its own where that is far enough. Nothing
/// where even an idle clock is too much.
std::optional<Hertz> clock_within(const Designed& of, const ChipPower<Plain>& power, Watts limit);

/// A number with the range that the technology leaves, from all figures that it depends on.
struct Ranged {
  double low = 0, typical = 0, high = 0;
};
std::vector<Ranged> ranges_of(const Designed& of,
                              const std::function<std::vector<double>(const ChipFigures<Plain>&)>& get);

/// Calibrates by designs of chips that exist, all but the one of that id.
Calibration calibrate(const std::vector<ChipDesign>& known, const Technology& technology, std::string_view without);

/// The chips that exist, from catalogue/designs/.
Result<const std::vector<ChipDesign>*> known_designs(const hardware::Catalogue& catalogue);

}  // namespace assay::design
