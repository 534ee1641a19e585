// Fits collectives: curves inside of a node by family, what fabrics between nodes add for all families.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "assay/lab/fit/fit.h"
#include "assay/lab/fit/minimise.h"

namespace assay::validate {
namespace {

template <class Take>
double misfit(const FitProblem& problem, Take take) {
  std::map<std::string, std::pair<double, double>> groups;
  for (const CollectiveRow& row : problem.collectives) {
    if (!row.fitted || !take(row)) continue;
    const std::string id = calibration_id(problem, row.chip, KernelKind::collective);
    const auto& calibration = problem.calibrations.at(id).collective;
    if (!calibration) continue;
    auto& [sum, count] = groups[row.group];
    sum += std::abs(std::log(predict(row, *calibration, problem.harnesses.at(row.source)) / row.measured));
    count += 1.0;
  }
  return mean_of_groups(groups);
}

/// Sweeps of the library itself.
bool is_plain(const FitProblem& problem, const CollectiveRow& row) {
  return std::any_of(problem.ranges.sweeps.begin(), problem.ranges.sweeps.end(),
                     [&](const CollectiveSweep& sweep) { return sweep.plain && sweep.name == row.source; });
}

void fit_curve(
    FitProblem& problem, const std::string& id, const std::function<bool(program::Collective)>& is_kind,
    hardware::CollectiveCurve& curve, double* in_network, const std::function<void()>& spread = [] {}) {
  const auto mine = [&](const CollectiveRow& row) {
    return is_kind(row.kind) && !row.across &&
           (is_plain(problem, row) || row.algorithm == collective::CollectiveAlgorithm::ring) &&
           calibration_id(problem, row.chip, KernelKind::collective) == id;
  };
  if (std::none_of(problem.collectives.begin(), problem.collectives.end(),
                   [&](const CollectiveRow& row) { return row.fitted && mine(row); }))
    return;
  const RangeTable ranges = problem.ranges.of("collective");
  std::vector<FitParameter> parameters{fit(curve.latency, ranges["latency"]), fit(curve.share, ranges["share"])};
  if (curve.chunk > Seconds(0)) parameters.push_back(fit(curve.chunk, ranges["chunk"]));
  if (!family_of_calibration(problem, id).kernels->fixed_groups) {
    parameters.push_back(fit(curve.member, ranges["member"]));
    parameters.push_back(fit(curve.pair, ranges["pair"]));
  }
  if (in_network && *in_network > 0.0) parameters.push_back(fit(*in_network, ranges["in_network"]));
  minimise(
      parameters,
      [&] {
        spread();
        return misfit(problem, mine);
      },
      800);
  spread();
}

/// What fabrics add to a step, and the chunk of trees, for all families alike. The library's own model has all else;
/// its authors' fabric, InfiniBand, adds nothing.
void fit_across(FitProblem& problem) {
  const RangeTable ranges = problem.ranges.of("across");
  std::array<Seconds, std::size(hardware::fabric_keys)> added;
  added.fill(ranges["latency"].start<Seconds>());
  added[static_cast<std::size_t>(hardware::Fabric::infiniband)] = Seconds(0);
  Seconds chunk = ranges["chunk"].start<Seconds>();
  const auto spread = [&] {
    for (auto& [id, calibration] : problem.calibrations) {
      if (!calibration.collective) continue;
      calibration.collective->chunk = chunk;
      for (std::size_t i = 0; i < added.size(); ++i)
        (*calibration.collective.*hardware::CollectiveCalibration::across_curves[i])->latency = added[i];
    }
  };
  std::vector<FitParameter> parameters{fit(chunk, ranges["chunk"])};
  for (std::size_t i = 0; i < added.size(); ++i) {
    const auto is_measured = [&](const CollectiveRow& row) {
      return row.fitted && row.across && static_cast<std::size_t>(row.fabric) == i;
    };
    if (std::any_of(problem.collectives.begin(), problem.collectives.end(), is_measured))
      parameters.push_back(fit(added[i], ranges["latency"]));
  }
  minimise(
      parameters,
      [&] {
        spread();
        return misfit(problem, [](const CollectiveRow& row) { return row.across; });
      },
      800);
  spread();
}

}  // namespace

void fit_collectives(FitProblem& problem) {
  constexpr auto collective = static_cast<std::size_t>(KernelKind::collective);
  for (auto& [id, calibration] : problem.calibrations) {
    if (!calibration.collective) continue;
    hardware::CollectiveCalibration& c = *calibration.collective;
    // An all-gather is a reduce-scatter in reverse: the same bytes over the same ring.
    const auto is_ring = [](program::Collective kind) { return program::gathers(kind) || program::scatters(kind); };
    const auto is_sum = [](program::Collective kind) { return kind == program::Collective::all_reduce; };
    fit_curve(problem, id, is_ring, c.all_gather, nullptr, [&c] { c.reduce_scatter = c.all_gather; });
    fit_curve(problem, id, is_sum, c.all_reduce, &c.in_network);
    fit_curve(problem, id, &program::is_exchange, c.all_to_all, nullptr);
  }
  fit_across(problem);
  for (auto& [source, harness] : problem.harnesses) {
    const auto mine = [&, &name = source](const CollectiveRow& row) {
      return row.source == name && !row.across && !is_plain(problem, row);
    };
    if (std::none_of(problem.collectives.begin(), problem.collectives.end(),
                     [&](const CollectiveRow& row) { return row.fitted && mine(row); }))
      continue;
    minimise({fit(harness.launch[collective], problem.ranges.of("measuring")["collective_launch"])},
             [&] { return misfit(problem, mine); });
  }
}

}  // namespace assay::validate
