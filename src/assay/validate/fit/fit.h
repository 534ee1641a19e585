// The fit of calibrations to measured kernels and collectives: `assay validate --fit`.
// Numbers of a chip family and numbers of a way of measuring are fitted in turn,
// so that what belongs to the harness does not end up in the chip.
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "assay/hardware/calibration.h"
#include "assay/validate/fit/minimise.h"
#include "assay/validate/rows/collective_rows.h"
#include "assay/validate/rows/kernel_rows.h"
#include "assay/validate/validation.h"

namespace assay::validate {

inline constexpr auto matmul = static_cast<std::size_t>(KernelKind::matmul);

/// What is fitted, and what it is fitted to.
struct FitProblem {
  std::string rows = {};           ///< in words, for the sources
  std::vector<KernelRow> kernels;  ///< all rows; only fitted ones are looked at
  std::vector<CollectiveRow> collectives;
  std::map<std::string, hardware::Chip> chips;                ///< by id
  std::map<std::string, hardware::Calibration> calibrations;  ///< by id
  Harnesses harnesses;
};
/// Which file a row's section is fitted in: products of an H200 in its own, the rest by family.
std::string calibration_id(const hardware::Chip& chip, KernelKind kind);

/// Sums of |log(predicted / measured)| and counts by group, as one number: groups count alike, but for small ones.
inline double mean_of_groups(const std::map<std::string, std::pair<double, double>>& groups) {
  double sum = 0, weights = 0;
  for (const auto& [group, sums] : groups) {
    const double weight = sums.second / (sums.second + 5.0);
    sum += weight * sums.first / sums.second, weights += weight;
  }
  return weights > 0.0 ? sum / weights : 0.0;
}

/// Four of five fitted rows lie within this factor, from their |log(predicted / measured)|; rows that were not fitted
/// lie a little farther off.
double spread_of(std::vector<double> logs);
/// How much farther off, in the logarithm.
inline constexpr double unseen_margin = 1.25;

/// The misfit of those rows that `take` lets through.
template <class Take>
double kernel_misfit(const FitProblem& problem, Take take) {
  std::map<std::string, std::pair<double, double>> groups;
  for (const KernelRow& row : problem.kernels) {
    if (!row.fitted || !take(row)) continue;
    const hardware::Chip& chip = problem.chips.at(row.chip);
    const auto predicted =
        predict(row, chip, problem.calibrations.at(calibration_id(chip, row.kind)), problem.harnesses.at(row.source));
    if (!predicted) continue;
    // Tables of products were measured at clocks of their own: each counts.
    auto& [sum, count] = groups[row.kind == KernelKind::matmul ? row.source + row.group : row.group];
    sum += std::abs(std::log(*predicted / row.measured)), count += 1.0;
  }
  return mean_of_groups(groups);
}

/// Start values and structure of all calibrations and harnesses: what is not fitted below stays as it is here.
void start_fit(FitProblem& problem);
void fit_matmuls(FitProblem& problem);
void fit_attention(FitProblem& problem);
/// Where the numbers of an attention kernel start, and the bounds of those of one pass (`wide`: it has rows with heads
/// above wide_head).
inline constexpr hardware::AttentionKernelCalibration attention_start{
    {0.7, 1.0, 50, 0.5}, {0.6, 1.0, 40, 1.0}, {0.9, 1.0, 0.9, 1_us}};
/// Of a GPU all of whose rows are replayed from a graph: attention is launched as products are.
void launch_alike(Harness& harness);
void add_pass(hardware::AttentionPass& pass, bool wide, std::vector<FitParameter>& parameters, double most = 1.0);
void fit_pointwise(FitProblem& problem);
void fit_collectives(FitProblem& problem);

/// The whole fit: files by path below the catalogue.
Result<std::vector<std::pair<std::string, std::string>>> fit_calibrations(const FitInput& input);

}  // namespace assay::validate
