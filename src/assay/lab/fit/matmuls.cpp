// Fits products: shares, droop and memory of each family; launch, gap and ramp of each harness; and shared numbers.
#include <algorithm>

#include "assay/lab/fit/fit.h"
#include "assay/lab/fit/minimise.h"

namespace assay::validate {
namespace {

std::size_t at(Dtype dtype) { return static_cast<std::size_t>(dtype); }

/// Products of any shape.
bool is_matmul(const KernelRow& row) {
  return row.kernel.kind == KernelKind::matmul && row.kernel.product.batch == 1.0 && !row.odd;
}

/// The numbers of one die that have rows to fit. Chips that differ only in memory share them.
void fit_family(FitProblem& problem, const std::vector<std::string>& ids) {
  const auto mine = [&](const KernelRow& row) {
    return is_matmul(row) &&
           std::find(ids.begin(), ids.end(), calibration_id(problem, row.chip, row.kernel.kind)) != ids.end();
  };
  hardware::MatmulCalibration& m = *problem.calibrations.at(ids.front()).matmul;
  const auto spread = [&] {
    for (const std::string& id : ids) {
      hardware::MatmulCalibration& other = *problem.calibrations.at(id).matmul;
      other.share = m.share;
      other.droop = m.droop;
      other.memory_share = m.memory_share;
    }
  };
  std::vector<FitParameter> parameters;
  if (!family_of_calibration(problem, ids.front()).kernels->whole_products)
    parameters.push_back(fit(m.memory_share, problem.ranges.of("matmul")["memory_share"]));
  bool sustained = false, burst = false;  // the droop shows only if both are measured
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp8, Dtype::fp4}) {
    bool measured = false;
    for (const KernelRow& row : problem.kernels) {
      if (!row.fitted || !mine(row)) continue;
      measured = measured || row.kernel.format == dtype || (dtype == Dtype::bf16 && row.kernel.format == Dtype::fp16);
      (problem.harnesses.at(row.source).gap > Seconds(0) ? burst : sustained) = true;
    }
    if (measured) parameters.push_back(fit(m.share[at(dtype)], problem.ranges.of("matmul")["share"]));
  }
  if (burst && sustained) parameters.push_back(fit(m.droop, problem.ranges.of("matmul")["droop"]));
  minimise(parameters, [&] {
    spread();
    return kernel_misfit(problem, mine);
  });
  spread();
}

void fit_harness(FitProblem& problem, const std::string& source) {
  Harness& h = problem.harnesses.at(source);
  const auto mine = [&](const KernelRow& row) { return is_matmul(row) && row.source == source; };
  const RangeTable ranges = problem.ranges.of("measuring");
  std::vector<FitParameter> parameters;
  if (is_own(source) || h.launch[matmul] > Seconds(0))
    parameters.push_back(fit(h.launch[matmul], problem.ranges.launch(source, ranges["product_launch"])));
  if (is_own(source)) {
    parameters.push_back(fit(h.gap, ranges["gap"]));
    parameters.push_back(fit(h.ramp, ranges["ramp"]));
    parameters.push_back(fit(h.dirty, ranges["dirty"]));
    parameters.push_back(fit(h.evicts, ranges["evicts"]));
  }
  if (source == problem.ranges.usual().name) {
    parameters.push_back(fit(h.ramp, ranges["ramp"]));
    parameters.push_back(fit(h.gap, ranges["burst_gap"]));
  }
  minimise(parameters, [&] { return kernel_misfit(problem, mine); });
  for (auto& entry : h.quantise) {
    kernel::Quantising& cast = entry.second;
    const auto in_format = [&](const KernelRow& row) {
      return mine(row) && row.kernel.format == entry.first.first &&
             problem.chips.at(row.chip).architecture == entry.first.second;
    };
    const RangeTable casts = problem.ranges.of("quantise");
    std::vector<FitParameter> of_cast{fit(cast.fixed, casts["fixed"]), fit(cast.passes, casts["passes"])};
    if (cast.element > Seconds(0)) of_cast.push_back(fit(cast.element, casts["element"]));
    minimise(of_cast, [&] { return kernel_misfit(problem, in_format); });
  }
}

/// Only our own tables show how long scales take to read, which is the same everywhere.
void fit_scales(FitProblem& problem) {
  const hardware::MatmulCalibration& own = *problem.calibrations.at(std::string(own_chip)).matmul;
  Seconds scales = own.scales.value_or(problem.ranges.of("matmul")["scales"].start<Seconds>());
  const auto spread = [&] {
    for (auto& [id, calibration] : problem.calibrations)
      if (calibration.matmul && !family_of_calibration(problem, id).compiled_whole) calibration.matmul->scales = scales;
  };
  minimise({fit(scales, problem.ranges.of("matmul")["scales"])}, [&] {
    spread();
    return kernel_misfit(problem, [](const KernelRow& row) { return is_matmul(row) && is_own(row.source); });
  });
  spread();
}

/// Tiles cost the same on chips whose cores multiply in the same way; the family files list them.
void fit_tiles(FitProblem& problem, const std::vector<std::string>& ids) {
  hardware::MatmulCalibration shared = *problem.calibrations.at(ids.front()).matmul;
  const auto spread = [&] {
    for (const std::string& id : ids) {
      hardware::MatmulCalibration& m = *problem.calibrations.at(id).matmul;
      m.small_tile = shared.small_tile;
      m.fill = shared.fill;
      m.split_cost = shared.split_cost;
      m.port = shared.port;
      m.stage = shared.stage;
    }
  };
  const auto mine = [&](const KernelRow& row) {
    return is_matmul(row) &&
           std::find(ids.begin(), ids.end(), calibration_id(problem, row.chip, row.kernel.kind)) != ids.end();
  };
  const RangeTable ranges = problem.ranges.of("matmul");
  std::vector<FitParameter> parameters{fit(shared.small_tile, ranges["small_tile"]), fit(shared.fill, ranges["fill"]),
                                       fit(shared.split_cost, ranges["split_cost"])};
  if (shared.port) parameters.push_back(fit(*shared.port, ranges["port"]));
  // Many small products tell the stages of the loop from the rest.
  if (std::find(ids.begin(), ids.end(), own_chip) != ids.end()) {
    if (!shared.stage) shared.stage = ranges["stage"].start<Seconds>();
    parameters.push_back(fit(*shared.stage, ranges["stage"]));
  }
  minimise(
      parameters,
      [&] {
        spread();
        return kernel_misfit(problem, mine);
      },
      200);
  spread();
}

/// Products over experts, from our own table, which was measured as the other random shapes but without rests. The
/// kernels belong to a family.
void fit_grouped(FitProblem& problem) {
  const OwnStart& table = problem.ranges.showing(grouped_products);
  Harness& h = problem.harnesses.at(table.name);
  h = problem.harnesses.at(table.measured_as);
  hardware::MatmulCalibration& m = *problem.calibrations.at(std::string(own_chip)).matmul;
  const RangeTable ranges = problem.ranges.of("matmul");
  m.grouped_port = ranges["grouped_port"].start<BytesPerSecond>();
  m.grouped_fill = ranges["grouped_fill"].start();
  minimise({fit(*m.grouped_port, ranges["grouped_port"]), fit(*m.grouped_fill, ranges["grouped_fill"]),
            fit(h.gap, problem.ranges.of("measuring")["gap"])},
           [&] { return kernel_misfit(problem, [&](const KernelRow& row) { return row.source == table.name; }); });
  const std::string_view family = numbers::family_of(problem.families, problem.chips.at(std::string(own_chip)))->id;
  for (auto& [id, calibration] : problem.calibrations) {
    if (!calibration.matmul || family_of_calibration(problem, id).id != family) continue;
    calibration.matmul->grouped_port = m.grouped_port;
    calibration.matmul->grouped_fill = m.grouped_fill;
  }
}

/// What odd rows cost, from our own table, which was measured as the other one of products. Libraries fall back to the
/// same kernels on all GPUs; what rows that begin inside cache lines cost belongs to a family's own.
void fit_odd_rows(FitProblem& problem) {
  const OwnStart& table = problem.ranges.showing(odd_rows);
  problem.harnesses.at(table.name) = problem.harnesses.at(table.measured_as);
  hardware::MatmulCalibration& m = *problem.calibrations.at(std::string(own_chip)).matmul;
  const RangeTable ranges = problem.ranges.of("matmul");
  m.narrow_port = ranges["narrow_port"].start<BytesPerSecond>();
  m.scattered_port = ranges["scattered_port"].start<BytesPerSecond>();
  m.scattered_result_port = ranges["scattered_result_port"].start<BytesPerSecond>();
  m.straddle = ranges["straddle"].start();
  minimise({fit(*m.narrow_port, ranges["narrow_port"]), fit(*m.scattered_port, ranges["scattered_port"]),
            fit(*m.scattered_result_port, ranges["scattered_result_port"]), fit(*m.straddle, ranges["straddle"])},
           [&] { return kernel_misfit(problem, [](const KernelRow& row) { return row.odd; }); });
  const std::string_view family = numbers::family_of(problem.families, problem.chips.at(std::string(own_chip)))->id;
  for (auto& [id, calibration] : problem.calibrations) {
    const numbers::Family& of = family_of_calibration(problem, id);
    if (!calibration.matmul || of.compiled_whole) continue;
    calibration.matmul->narrow_port = m.narrow_port;
    calibration.matmul->scattered_port = m.scattered_port;
    calibration.matmul->scattered_result_port = m.scattered_result_port;
    if (of.id == family) calibration.matmul->straddle = m.straddle;
  }
}

/// Calibrations that share a die: the family's and its chips'.
std::vector<std::vector<std::string>> shared_dies(const FitProblem& problem) {
  std::vector<std::vector<std::string>> dies;
  for (const numbers::Family& family : problem.families) {
    if (!family.kernels) continue;
    dies.push_back({family.id});
    for (const std::string& chip : family.kernels->own_products) dies.back().push_back(chip);
  }
  return dies;
}

/// Calibrations with the same tile costs: those that share a die, in families listed together.
std::vector<std::vector<std::string>> shared_tiles(const FitProblem& problem) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const std::vector<std::string>& ids : shared_dies(problem)) {
    const numbers::FamilyKernels& kernels = *family_of_calibration(problem, ids.front()).kernels;
    if (kernels.whole_products) continue;
    std::vector<std::string>& group = groups[kernels.tiles_with.empty() ? ids.front() : kernels.tiles_with];
    group.insert(group.end(), ids.begin(), ids.end());
  }
  std::vector<std::vector<std::string>> tiles;
  for (auto& [name, ids] : groups) tiles.push_back(std::move(ids));
  return tiles;
}

}  // namespace

void fit_matmuls(FitProblem& problem) {
  std::vector<std::string> sources;
  for (const KernelRow& row : problem.kernels)
    if (row.fitted && is_matmul(row) && std::find(sources.begin(), sources.end(), row.source) == sources.end())
      sources.push_back(row.source);
  const std::vector<std::vector<std::string>> dies = shared_dies(problem), tiles = shared_tiles(problem);
  for (int round = 0; round < 6; ++round) {
    for (const std::vector<std::string>& ids : dies) fit_family(problem, ids);
    for (const std::string& source : sources) fit_harness(problem, source);
    fit_scales(problem);
    for (const std::vector<std::string>& ids : tiles) fit_tiles(problem, ids);
  }
  fit_grouped(problem);
  fit_odd_rows(problem);
}

}  // namespace assay::validate
