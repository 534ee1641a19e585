// The fit of calibrations to measured kernels and collectives: `assay validate --fit`. Chip-family numbers and harness
// numbers are fitted alternately, so that measuring overhead is not attributed to the chip.
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "assay/hardware/calibration.h"
#include "assay/lab/fit/minimise.h"
#include "assay/lab/fit/ranges.h"
#include "assay/lab/validate/rows/collective_rows.h"
#include "assay/lab/validate/rows/kernel_rows.h"
#include "assay/lab/validate/validation.h"
#include "assay/predict/numbers/families.h"

namespace assay::validate {

inline constexpr auto matmul = static_cast<std::size_t>(KernelKind::matmul);

/// The fitted numbers and the rows they are fitted to.
struct FitProblem {
  std::string rows = {};       ///< in words, for the sources
  numbers::Families families;  ///< only families with kernels are fitted
  KernelRanges ranges;
  std::vector<KernelRow> kernels;  ///< all rows; fits use only the fitted ones
  std::vector<CollectiveRow> collectives;
  std::map<std::string, hardware::Chip> chips;                ///< by id
  std::map<std::string, hardware::Calibration> calibrations;  ///< by id
  Harnesses harnesses;
};
/// The file in which a row's section is fitted: the chip family's, or for products the chip's own if the family says
/// so. Empty if the chip has no family whose kernels are fitted.
std::string calibration_id(const numbers::Families& families, const hardware::Chip& chip, KernelKind kind);
/// The same for a row's chip.
std::string calibration_id(const FitProblem& problem, const std::string& chip, KernelKind kind);
/// The family that a calibration belongs to, by its id.
const numbers::Family& family_of_calibration(const FitProblem& problem, std::string_view id);

/// Combines sums of |log(predicted / measured)| and counts by group into one number: groups weigh the same, small ones
/// less.
inline double mean_of_groups(const std::map<std::string, std::pair<double, double>>& groups) {
  double sum = 0, weights = 0;
  for (const auto& [group, sums] : groups) {
    const double weight = sums.second / (sums.second + 5.0);
    sum += weight * sums.first / sums.second;
    weights += weight;
  }
  return weights > 0.0 ? sum / weights : 0.0;
}

/// The factor that contains four of five fitted rows, from their |log(predicted / measured)|, widened for rows that
/// were not fitted.
double spread_of(std::vector<double> logs);
/// The amount of widening, in the logarithm.
inline constexpr double unseen_margin = 1.25;

/// The misfit of the fitted rows that `take` selects.
template <class Take>
double kernel_misfit(const FitProblem& problem, Take take) {
  std::map<std::string, std::pair<double, double>> groups;
  for (const KernelRow& row : problem.kernels) {
    if (!row.fitted || !take(row)) continue;
    const hardware::Chip& chip = problem.chips.at(row.chip);
    const auto predicted =
        predict(row, chip, problem.calibrations.at(calibration_id(problem.families, chip, row.kernel.kind)),
                problem.harnesses.at(row.source));
    if (!predicted) continue;
    // Each table was measured at its own clock, and its rows of attention with its own release: a group of its own.
    auto& [sum, count] = groups[row.kernel.kind < KernelKind::decode ? row.source + row.group : row.group];
    sum += std::abs(std::log(*predicted / row.measured));
    count += 1.0;
  }
  return mean_of_groups(groups);
}

/// Start values and structure of all calibrations and harnesses; numbers that are not fitted keep these values.
Result<void> start_fit(FitProblem& problem, const hardware::Catalogue& catalogue);
void fit_matmuls(FitProblem& problem);
void fit_attention(FitProblem& problem);
/// For a GPU whose rows are all replayed from a graph: attention has the same launch time as products.
void launch_alike(Harness& harness);
void fit_pointwise(FitProblem& problem);
void fit_collectives(FitProblem& problem);

/// The whole fit. Files by path below the catalogue.
Result<std::vector<std::pair<std::string, std::string>>> fit_calibrations(const FitInput& input);

}  // namespace assay::validate
