// Fits products: shares, droop and memory of each family; launch, gap and ramp of each harness; what all share.
#include <algorithm>
#include <cmath>

#include "assay/validate/fit/fit.h"
#include "assay/validate/fit/minimise.h"

namespace assay::validate {
namespace {

std::size_t at(Dtype dtype) { return static_cast<std::size_t>(dtype); }

/// One product of any shape on a chip at its nominal power. The B200 of simumax's tables runs a quarter below all
/// others, large products more than small ones: a limit of that host, not of the chip. stas00-mamf has the best shapes
/// of a sweep.
bool is_matmul(const KernelRow& row) {
  return row.kind == KernelKind::matmul && row.matmul.batch == 1.0 && row.source != "stas00-mamf" &&
         !(row.source == "simumax" && row.chip == "b200");
}

/// Numbers of one die, those that have rows to be fitted to: files of chips that differ in their memory alone share
/// them.
void fit_family(FitProblem& problem, const std::vector<std::string>& ids) {
  const auto mine = [&](const KernelRow& row) {
    return is_matmul(row) &&
           std::find(ids.begin(), ids.end(), calibration_id(problem.chips.at(row.chip), row.kind)) != ids.end();
  };
  hardware::MatmulCalibration& m = *problem.calibrations.at(ids.front()).matmul;
  const auto spread = [&] {
    for (const std::string& id : ids) {
      hardware::MatmulCalibration& other = *problem.calibrations.at(id).matmul;
      other.share = m.share, other.droop = m.droop, other.memory_share = m.memory_share;
    }
  };
  std::vector<FitParameter> parameters{fit(m.memory_share, 0.5, 0.97)};
  bool sustained = false, burst = false;  // the droop shows where both are measured
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp8, Dtype::fp4}) {
    bool measured = false;
    for (const KernelRow& row : problem.kernels) {
      if (!row.fitted || !mine(row)) continue;
      measured = measured || row.compute == dtype;
      (problem.harnesses.at(row.source).gap > Seconds(0) ? burst : sustained) = true;
    }
    if (measured) parameters.push_back(fit(m.share[at(dtype)], 0.2, 1.0));
  }
  if (burst && sustained) parameters.push_back(fit(m.droop, 0.01, 0.6));
  minimise(parameters, [&] {
    spread();
    return kernel_misfit(problem, mine);
  });
  spread();
}

void fit_harness(FitProblem& problem, const std::string& source) {
  Harness& h = problem.harnesses.at(source);
  const auto mine = [&](const KernelRow& row) { return is_matmul(row) && row.source == source; };
  std::vector<FitParameter> parameters;
  if (!is_own(source)) {
    parameters.push_back(fit(h.launch[matmul], 0.05_us, 60_us));
  } else {
    parameters.push_back(fit(h.gap, 20_us, 20000_us));
    parameters.push_back(fit(h.ramp, 0.05_us, 8_us));
    parameters.push_back(fit(h.dirty, 1_MB, 120_MB));
    parameters.push_back(fit(h.evicts, 0.02, 1.0));
  }
  if (source == "aiconfigurator") {
    parameters.push_back(fit(h.ramp, 0.05_us, 8_us));
    parameters.push_back(fit(h.gap, 20_us, 100000_us));
  }
  minimise(parameters, [&] { return kernel_misfit(problem, mine); });
  for (auto& entry : h.quantise) {
    Quantising& cast = entry.second;
    const auto in_format = [&](const KernelRow& row) {
      return mine(row) && row.compute == entry.first.first &&
             problem.chips.at(row.chip).architecture == entry.first.second;
    };
    minimise({fit(cast.fixed, 0.5_us, 30_us), fit(cast.element, 0.00001_us, 0.01_us), fit(cast.passes, 0.5, 30.0)},
             [&] { return kernel_misfit(problem, in_format); });
  }
}

/// A graph starts kernels alike in all of our own tables.
void fit_own_launch(FitProblem& problem) {
  Seconds launch = problem.harnesses.at(std::string(own_tables[0].source)).launch[matmul];
  const auto spread = [&] {
    for (const OwnTable& table : own_tables) problem.harnesses.at(std::string(table.source)).launch[matmul] = launch;
  };
  minimise({fit(launch, 0.05_us, 60_us)}, [&] {
    spread();
    return kernel_misfit(problem, [](const KernelRow& row) { return is_matmul(row) && is_own(row.source); });
  });
  spread();
}

/// What tiles cost is alike on chips whose cores multiply alike: from registers on Ampere and Ada, from shared memory
/// into registers on Hopper. Blackwell has a memory of its own for sums, so that it starts the next tile while it
/// writes the last, and pairs of its cores load operands together.
void fit_tiles(FitProblem& problem, const std::vector<std::string>& ids) {
  hardware::MatmulCalibration shared = *problem.calibrations.at(ids.front()).matmul;
  const auto spread = [&] {
    for (const std::string& id : ids) {
      hardware::MatmulCalibration& m = *problem.calibrations.at(id).matmul;
      m.small_tile = shared.small_tile;
      m.fill = shared.fill;
      m.split_cost = shared.split_cost;
      m.port = shared.port;
    }
  };
  const auto mine = [&](const KernelRow& row) {
    return is_matmul(row) &&
           std::find(ids.begin(), ids.end(), calibration_id(problem.chips.at(row.chip), row.kind)) != ids.end();
  };
  std::vector<FitParameter> parameters{fit(shared.small_tile, 1.0, 60.0), fit(shared.fill, 8.0, 600.0),
                                       fit(shared.split_cost, 0.5_us, 40_us)};
  if (shared.port) parameters.push_back(fit(*shared.port, 5_GB_per_s, 1000_GB_per_s));
  minimise(
      parameters,
      [&] {
        spread();
        return kernel_misfit(problem, mine);
      },
      200);
  spread();
}

/// Products of experts, by our own table of them: its harness is that of our other kernels but for what starts one. The
/// kernels are alike on all GPUs.
void fit_grouped(FitProblem& problem) {
  const std::string source = "h200-experts";
  Harness& h = problem.harnesses.at(source);
  h = problem.harnesses.at("h200-ops");
  double& grouped = problem.calibrations.at("h200-sxm").matmul->grouped;
  minimise({fit(grouped, 0.3, 1.0), fit(h.launch[matmul], 0.05_us, 60_us)},
           [&] { return kernel_misfit(problem, [&](const KernelRow& row) { return row.source == source; }); });
  for (auto& [id, calibration] : problem.calibrations)
    if (calibration.matmul && id != "tpu") calibration.matmul->grouped = grouped;
}

}  // namespace

void fit_matmuls(FitProblem& problem) {
  std::vector<std::string> sources;
  for (const KernelRow& row : problem.kernels)
    if (row.fitted && is_matmul(row) && std::find(sources.begin(), sources.end(), row.source) == sources.end())
      sources.push_back(row.source);
  for (int round = 0; round < 6; ++round) {
    for (const std::vector<std::string>& ids :
         {std::vector<std::string>{"ada"}, {"ampere"}, {"blackwell"}, {"hopper", "h200-sxm"}, {"tpu"}})
      fit_family(problem, ids);
    for (const std::string& source : sources) fit_harness(problem, source);
    fit_own_launch(problem);
    fit_tiles(problem, {"ada", "ampere"});
    fit_tiles(problem, {"h200-sxm", "hopper"});
    fit_tiles(problem, {"blackwell"});
  }
  fit_grouped(problem);
}

}  // namespace assay::validate
