// Families of chips: what steps and kernels on chips of related architectures have in common. Each is a file of
// catalogue/families; a chip of no family is estimated from its kernels and links alone.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/explain.h"
#include "assay/base/fit_range.h"
#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"

namespace assay::numbers {

/// Where the fit of catalogue/calibration/ID.toml starts, and what it takes over from other families.
struct FamilyKernels {
  std::array<double, 12> share{};  ///< start, by compute format; 0: the family does not have the format
  double droop = 0;                ///< start; see MatmulCalibration
  bool fine_tiles = false;
  bool whole_products = false;  ///< products are not cut into tiles: a compiler plans the array
  bool unbounded_port = false;  ///< operands reach a core as fast as it takes them
  std::string tiles_with;       ///< id of the family whose tiles cost the same; empty: none
  /// Ids of chips whose products have a calibration of their own, e.g. because their memory differs.
  std::vector<std::string> own_products;
  std::optional<double> head_step;  ///< of the vendor's attention kernels; see AttentionKernelCalibration
  bool full_power = false;          ///< of the vendor's attention kernels; see AttentionKernelCalibration
  std::optional<double> softmax;    ///< start of attention's; see AttentionPass
  bool flash2 = false;              ///< FlashAttention 2 was measured in addition to the vendor's kernel
  bool paged_attention = false;     ///< attention was measured over paged caches only: prompts are not fitted
  bool fixed_groups = false;        ///< collectives were measured over groups of one size
  bool unchunked = false;           ///< collectives fill no buffers chunk by chunk
  double in_network = 0;            ///< start; 0: switches do not reduce
  hardware::HostCalibration host;
  std::string pointwise_from, collective_from;  ///< ids of families whose fits are taken over; empty: own
};

/// Where fits start and the bounds that they keep, by the number's path ("products.slowdown"), in base units.
using FitRanges = std::map<std::string, FitRange<double>, std::less<>>;

/// Collectives that run concurrently with compute.
struct FamilyOverlap {
  Given<double> chip_share = 0;  ///< of the chip that a collective takes while it lasts
  bool tensor_pieces = false;    ///< software cuts tensor-parallel collectives into pieces next to their products
};

/// One file of catalogue/families.
struct Family {
  std::string id, name;
  std::vector<std::string> architectures;
  /// A step is one program of a compiler (XLA): the host does not launch kernels individually, and no other software
  /// was measured.
  bool compiled_whole = false;
  std::optional<FamilyKernels> kernels;  ///< absent: no kernels were measured
  /// Ranges of the family's numbers in steps/training.toml and steps/serving.toml. Absent: no training steps, or no
  /// prefill or decode steps, were measured.
  std::optional<FitRanges> training, serving;
  Given<Seconds> one_shot;  ///< latency of an all-reduce in which each device reads all others' arrays; 0: none
  FamilyOverlap overlap;
};
using Families = std::vector<Family>;

/// Reads and checks a file; reports every fault at once.
Result<Family> read_family(std::string_view document, std::string_view file);
/// The families of the catalogue in order of id. If two files claim an architecture, the one overlaid last has it.
Result<Families> families_of(const hardware::Catalogue& catalogue);

/// The place of a chip's family, or of the family of an id; nothing where there is none.
std::optional<std::size_t> family_index(const Families& families, const hardware::Chip& chip);
std::optional<std::size_t> family_index(const Families& families, std::string_view id);
/// The family of a chip; nullptr where it has none.
const Family* family_of(const Families& families, const hardware::Chip& chip);

/// Families, and which of them a file has numbers of. All numbers by family are in this order.
struct MeasuredFamilies {
  using Section = std::optional<FitRanges> Family::*;
  Families families;
  std::vector<char> measured;  ///< by family: 1 where its steps were measured; else its numbers are neutral
  Section section = &Family::training;

  MeasuredFamilies() = default;
  MeasuredFamilies(Families all, Section of) : families(std::move(all)), measured(families.size(), 0), section(of) {}
  /// Nullptr where the chip has no family.
  const Family* family(const hardware::Chip& chip) const { return family_of(families, chip); }
  std::vector<std::string_view> family_ids() const;
  bool has_steps(const hardware::Chip& chip) const;
  /// Whether a step is one program of a compiler on this chip.
  bool compiled_whole(const hardware::Chip& chip) const;
  /// The range of a family's number; nullptr where the family does not have the number.
  const FitRange<double>* range(std::size_t family, std::string_view table, std::string_view key) const;
  /// The number of a chip's family; neutral where there is none.
  template <class T>
  Given<T> of_family(const hardware::Chip& chip, const std::vector<Given<T>>& numbers, T neutral) const {
    if (!has_steps(chip)) return {neutral, unmeasured(chip)};
    return numbers[*family_index(families, chip)];
  }

 private:
  static std::string unmeasured(const hardware::Chip& chip);
};

}  // namespace assay::numbers
