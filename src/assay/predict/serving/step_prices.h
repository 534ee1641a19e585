// The kernels of one profile's steps, priced for many batches: what placements, batches and steps with prompts have in
// common is priced once.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/predict/serving/profile.h"

namespace assay::serving {

/// Sequences that each kind of work sees in one step, as many on every device as on the fullest.
struct StepSizes {
  double tokens = 1;     ///< products, norms and collectives, in steps of the profile's queries; 0: attention alone
  double attention = 1;  ///< sequences whose caches are read
  double heads = 1;      ///< sequences that get a next token

  std::size_t hash() const;
  friend bool operator==(const StepSizes&, const StepSizes&) = default;
};

/// What the kernels of a step add up to.
struct KernelSums {
  StepSizes sizes{-1, -1, -1};
  ServingTime time;             ///< without links and estimates
  std::vector<Seconds> layers;  ///< the estimate of one layer of each block
};

/// Refers to the setup that its prices are for.
class StepPrices {
 public:
  StepPrices(const ServingSetup& setup, const std::vector<ServingProfile::Block>& blocks);
  /// Valid until the next call.
  const KernelSums& kernels(const StepSizes& sizes);
  /// Kernels and collectives that a step launches.
  double launches() const { return launches_; }

 private:
  static constexpr std::size_t remembered = 256;  ///< steps: more than a search prices of a profile
  const ServingSetup& setup_;
  std::vector<ServingProfile::Block> blocks_;
  std::vector<ServedWork> works_;  ///< of all kernels in order: their work at the last load
  std::vector<KernelSums> known_;  ///< by the hash of their sizes
  double launches_ = 0;
};

/// For callers that price a profile at many batches with one setup: its steps are priced once each. The setup and the
/// tables have to outlive the profile. No time changes.
void remember_prices(const ServingSetup& setup, kernel::TileTables& tables, ServingProfile& profile);

}  // namespace assay::serving
