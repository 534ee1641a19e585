// Hardware names in tables of measurements: catalogue/validation/accelerators.toml and chip ids.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/cluster_names.h"
#include "assay/predict/numbers/families.h"

namespace assay::validate {

/// An accelerator whose name or properties differ from the catalogue's chip.
struct NamedAccelerator {
  std::string name, chip;
  std::string table;           ///< where it has this name; empty: everywhere
  std::optional<Watts> power;  ///< limit of each chip
  std::vector<hardware::Override> changes;
};
/// A network that differs from the catalogue chip's.
struct NamedNetwork {
  std::string text;          ///< part of the row's description of its network
  BytesPerSecond bandwidth;  ///< of one chip's share of the interfaces; 0: not stated
  double reached = 1;        ///< share of it that collectives reach, relative to other networks
};
/// A generation of network interfaces.
struct NamedInterface {
  std::string name;
  BytesPerSecond bandwidth;  ///< of one, one way
};
/// The torus slice on which sweeps of collectives ran.
struct MeasuredSlice {
  std::string chip, cluster, axis;
};

/// Chips by the names used in tables; each is read once.
class KnownChips {
 public:
  static Result<KnownChips> make(const hardware::Catalogue& catalogue);

  /// The id of an accelerator's chip: "B300-SXM-288GB" is b300, "GB200" gb200-nvl72, "NVIDIA H100 80GB HBM3" h100-sxm
  /// by the aliases of its file. Empty if there is none.
  std::optional<std::string> find(std::string_view accelerator, std::string_view table = {}) const;
  /// The fold of a row that is told from others by `of`; rows on chips that no fit has seen are held out.
  std::size_t fold(std::string_view accelerator, std::string_view of, std::string_view split) const;
  /// How an accelerator differs from its chip; nullptr if it does not.
  const NamedAccelerator* named(std::string_view accelerator, std::string_view table = {}) const;
  /// The network named by a row, if it differs from the catalogue chip's: one of the table, or what its text says of
  /// the interfaces of a node with `chips` chips. 0: those are not known.
  NamedNetwork network(std::string_view text, double chips = 0) const;
  /// Nullptr if the chip's sweeps did not run on a torus slice.
  const MeasuredSlice* slice(std::string_view chip) const;
  /// Whether sweeps of collectives ran over the chip's own links.
  bool has_sweeps(std::string_view chip) const;

  /// Nullptr if the catalogue has no such chip, or its file has a fault.
  const hardware::Chip* chip(const std::string& id);
  /// The family of a chip; nullptr if it has none.
  const numbers::Family* family(const std::string& id);
  /// Whether a compiler turns a whole step into one program on this chip.
  bool compiled_whole(const std::string& id);

 private:
  explicit KnownChips(const hardware::Catalogue& catalogue) : catalogue_(&catalogue) {}
  std::string without_asides(std::string_view name) const;
  /// "NVLink4 + 8x 400Gb/s RoCE", "8x HDR200": one-way bandwidth of a node's interfaces; nothing if the text does not
  /// say.
  std::optional<BytesPerSecond> node_bandwidth(std::string_view interconnect) const;

  const hardware::Catalogue* catalogue_;
  numbers::Families families_;
  std::vector<NamedAccelerator> accelerators_;
  std::vector<NamedNetwork> networks_;
  std::vector<NamedInterface> interfaces_;
  std::vector<MeasuredSlice> slices_;
  std::vector<std::string> swept_, unseen_;
  std::vector<std::string> asides_;  ///< words of names that say nothing about the part
  hardware::ClusterNames names_;
  std::map<std::string, std::optional<hardware::Chip>> read_;
};

}  // namespace assay::validate
