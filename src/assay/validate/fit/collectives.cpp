// Fits collectives: the curves of each family inside of a node, those of the fabrics between nodes for all families.
#include <algorithm>
#include <cmath>
#include <functional>

#include "assay/validate/fit/fit.h"
#include "assay/validate/fit/minimise.h"

namespace assay::validate {
namespace {

template <class Take>
double misfit(const FitProblem& problem, Take take) {
  std::map<std::string, std::pair<double, double>> groups;
  for (const CollectiveRow& row : problem.collectives) {
    if (!row.fitted || !take(row)) continue;
    const std::string id = calibration_id(problem.chips.at(row.chip), KernelKind::collective);
    const auto& calibration = problem.calibrations.at(id).collective;
    if (!calibration) continue;
    auto& [sum, count] = groups[row.group];
    sum += std::abs(std::log(predict(row, *calibration, problem.harnesses.at(row.source)) / row.measured)),
        count += 1.0;
  }
  return mean_of_groups(groups);
}

/// Sweeps of the library itself; other sources add the cost of their framework.
bool is_plain(const CollectiveRow& row) {
  return row.source.starts_with("aiconfigurator") || row.source == "scaling-book";
}

void fit_curve(
    FitProblem& problem, const std::string& id, const std::function<bool(network::CollectiveKind)>& is_kind,
    hardware::CollectiveCurve& curve, double* in_network, const std::function<void()>& spread = [] {}) {
  const auto mine = [&](const CollectiveRow& row) {
    return is_kind(row.kind) && !row.across &&
           (is_plain(row) || row.algorithm == estimate::CollectiveAlgorithm::ring) &&
           calibration_id(problem.chips.at(row.chip), KernelKind::collective) == id;
  };
  if (std::none_of(problem.collectives.begin(), problem.collectives.end(),
                   [&](const CollectiveRow& row) { return row.fitted && mine(row); }))
    return;
  std::vector<FitParameter> parameters{fit(curve.latency, 0.5_us, 200_us), fit(curve.share, 0.3, 1.2),
                                       fit(curve.chunk, 0.01_us, 50_us)};
  if (id != "tpu") {
    parameters.push_back(fit(curve.member, 0.01_us, 5_us));
    parameters.push_back(fit(curve.pair, 0.01, 3.0));
  }
  if (in_network && *in_network > 0.0) parameters.push_back(fit(*in_network, 0.3, 1.0));
  minimise(
      parameters,
      [&] {
        spread();
        return misfit(problem, mine);
      },
      800);
  spread();
}

void fit_fabric(FitProblem& problem, hardware::Fabric fabric,
                std::optional<hardware::AcrossCurve> hardware::CollectiveCalibration::*curve) {
  hardware::AcrossCurve shared = *((*problem.calibrations.at("hopper").collective).*curve);
  const auto spread = [&] {
    for (auto& [id, calibration] : problem.calibrations)
      if (calibration.collective) (*calibration.collective).*curve = shared;
  };
  minimise({fit(shared.latency, 5_us, 300_us), fit(shared.share, 0.3, 1.0), fit(shared.chunk, 1_kB, 100_MB)}, [&] {
    spread();
    return misfit(problem, [&](const CollectiveRow& row) { return row.across && row.fabric == fabric; });
  });
  spread();
}

}  // namespace

void fit_collectives(FitProblem& problem) {
  constexpr auto collective = static_cast<std::size_t>(KernelKind::collective);
  for (auto& [id, calibration] : problem.calibrations) {
    if (!calibration.collective) continue;
    hardware::CollectiveCalibration& c = *calibration.collective;
    const auto one = [](network::CollectiveKind kind) {
      return [kind](network::CollectiveKind other) { return other == kind; };
    };
    // Gathering is scattering backwards: the same bytes over the same ring.
    const auto rings = [](network::CollectiveKind kind) {
      return kind == network::CollectiveKind::all_gather || kind == network::CollectiveKind::reduce_scatter;
    };
    fit_curve(problem, id, rings, c.all_gather, nullptr, [&c] { c.reduce_scatter = c.all_gather; });
    fit_curve(problem, id, one(network::CollectiveKind::all_reduce), c.all_reduce, &c.in_network);
    fit_curve(problem, id, one(network::CollectiveKind::all_to_all), c.all_to_all, nullptr);
  }
  fit_fabric(problem, hardware::Fabric::infiniband, &hardware::CollectiveCalibration::infiniband);
  fit_fabric(problem, hardware::Fabric::efa, &hardware::CollectiveCalibration::efa);
  fit_fabric(problem, hardware::Fabric::tcpxo, &hardware::CollectiveCalibration::tcpxo);
  for (auto& [source, harness] : problem.harnesses) {
    const auto mine = [&, &name = source](const CollectiveRow& row) {
      return row.source == name && !row.across && !is_plain(row);
    };
    if (std::none_of(problem.collectives.begin(), problem.collectives.end(),
                     [&](const CollectiveRow& row) { return row.fitted && mine(row); }))
      continue;
    minimise({fit(harness.launch[collective], 0.05_us, 100_us)}, [&] { return misfit(problem, mine); });
  }
}

}  // namespace assay::validate
