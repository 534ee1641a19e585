// Hardware as tables of measurements name it: catalogue/validation/accelerators.toml and the ids of chips.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/estimate/families.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"

namespace assay::validate {

/// An accelerator that does not have the catalogue's name, or differs from the catalogue's chip.
struct NamedAccelerator {
  std::string name, chip;
  std::optional<Watts> power;  ///< limit of each chip
  std::vector<hardware::Override> changes;
};
/// A network that is not the one of the catalogue's chip.
struct NamedNetwork {
  std::string text;          ///< part of what a row says of its network
  BytesPerSecond bandwidth;  ///< of one chip's share of the interfaces; 0: not stated
  bool omni_path = false;
};
/// The slice of a torus that sweeps of collectives ran on.
struct MeasuredSlice {
  std::string chip, cluster, axis;
};

/// Chips by the names that tables give them; each is read once.
class KnownChips {
 public:
  static Result<KnownChips> make(const hardware::Catalogue& catalogue);

  /// The id of an accelerator's chip: "B300-SXM-288GB" is b300, "GB200" gb200-nvl72. Nothing where there is none.
  std::optional<std::string> find(std::string_view accelerator) const;
  /// How an accelerator differs from its chip; nullptr where it does not.
  const NamedAccelerator* named(std::string_view accelerator) const;
  /// What a row says of its network, where that is not the one of the catalogue's chip.
  NamedNetwork network(std::string_view text) const;
  /// Nullptr where the chip's sweeps ran on none.
  const MeasuredSlice* slice(std::string_view chip) const;
  /// Whether sweeps of collectives ran over the chip's own links.
  bool has_sweeps(std::string_view chip) const;

  /// Nullptr where the catalogue has no such chip, or its file has a fault.
  const hardware::Chip* chip(const std::string& id);
  /// Whether a step is one program of a compiler on this chip.
  bool compiled_whole(const std::string& id);

 private:
  explicit KnownChips(const hardware::Catalogue& catalogue) : catalogue_(&catalogue) {}

  const hardware::Catalogue* catalogue_;
  estimate::Families families_;
  std::vector<NamedAccelerator> accelerators_;
  std::vector<NamedNetwork> networks_;
  std::vector<MeasuredSlice> slices_;
  std::vector<std::string> swept_;
  std::map<std::string, std::optional<hardware::Chip>> read_;
};

}  // namespace assay::validate
