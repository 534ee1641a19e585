#include "assay/validate/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/validate/rows/tables.h"

namespace assay::validate {
namespace {

constexpr std::string_view fit_date = "2026-11-16";  // of the measurements' last study; a result holds no clock
constexpr std::string_view fit_command = "assay validate --fit catalogue --data DIR";

struct Family {
  std::string_view id, name;
  std::vector<std::string> architectures;
};
const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"ada", "Ada Lovelace GPUs", {"Ada Lovelace"}},
      {"ampere", "Ampere data-centre GPUs", {"Ampere"}},
      {"blackwell", "Blackwell data-centre GPUs", {"Blackwell", "Blackwell Ultra"}},
      {"hopper", "Hopper data-centre GPUs", {"Hopper"}},
      {"tpu", "TPUs", {"TPU v2", "TPU v3", "TPU v4", "TPU v5", "Trillium", "Ironwood"}}};
  return all;
}

hardware::Calibration& add(FitProblem& problem, std::string_view id, std::string_view name) {
  hardware::Calibration& c = problem.calibrations[std::string(id)];
  c.id = id, c.name = name;
  c.sources.push_back({"fit", "fit to " + problem.rows, std::string(fit_command), "", std::string(fit_date), "", ""});
  c.sources.push_back({"assumed", "not measured here: taken over from the nearest family, or from whole training steps",
                       std::string(fit_command), "", std::string(fit_date), "", ""});
  hardware::MatmulCalibration& m = c.matmul.emplace();
  m.memory_share = 0.9, m.small_tile = 15, m.fill = 128, m.split_cost = 2_us, m.port = 100_GB_per_s;
  return c;
}

/// Marks a section as not fitted.
void assumed(hardware::Calibration& c, std::string section) { c.origins.emplace_back(std::move(section), "(assumed)"); }

hardware::CollectiveCalibration start_collective(double in_network) {
  const hardware::CollectiveCurve curve{5_us, 1_us, 0.8, 0.5, 4_us};
  const hardware::AcrossCurve across{60_us, 0.85, 2_MB};
  return {curve, curve, curve, curve, in_network, across, across, across};
}

void add_spreads(const FitProblem& problem, hardware::Calibration& c) {
  hardware::SpreadCalibration& spread = c.spread.emplace();
  std::map<double*, std::vector<double>> logs;
  for (const KernelRow& row : problem.kernels) {
    const hardware::Chip& chip = problem.chips.at(row.chip);
    if (!row.fitted || calibration_id(chip, row.kind) != c.id) continue;
    const auto predicted = predict(row, chip, c, problem.harnesses.at(row.source));
    if (!predicted) continue;
    double& field = row.kind == KernelKind::matmul   ? spread.matmul
                    : row.kind < KernelKind::decode  ? spread.attention
                    : row.kind == KernelKind::decode ? spread.decode
                                                     : spread.pointwise;
    logs[&field].push_back(std::abs(std::log(*predicted / row.measured)));
  }
  for (const CollectiveRow& row : problem.collectives) {
    if (!row.fitted || !c.collective || calibration_id(problem.chips.at(row.chip), KernelKind::collective) != c.id)
      continue;
    const Seconds predicted = predict(row, *c.collective, problem.harnesses.at(row.source));
    logs[&spread.collective].push_back(std::abs(std::log(predicted / row.measured)));
  }
  for (auto& [field, values] : logs) *field = spread_of(std::move(values));
}

/// Rows and error of what was fitted into a file.
void describe_fit(FitProblem& problem, hardware::Calibration& c) {
  std::size_t kernels = 0, collectives = 0;
  for (const KernelRow& row : problem.kernels)
    if (row.fitted && calibration_id(problem.chips.at(row.chip), row.kind) == c.id) ++kernels;
  for (const CollectiveRow& row : problem.collectives)
    if (row.fitted && calibration_id(problem.chips.at(row.chip), KernelKind::collective) == c.id) ++collectives;
  c.sources.front().rows = fmt::format("{} kernels, {} collectives", kernels, collectives);
  std::string error;
  const auto add_error = [&](std::string_view what, auto take) {
    const double misfit = kernel_misfit(problem, [&](const KernelRow& row) {
      return take(row.kind) && row.matmul.batch == 1.0 && calibration_id(problem.chips.at(row.chip), row.kind) == c.id;
    });
    if (misfit > 0.0) error += fmt::format("{}{} {:.1f} %", error.empty() ? "" : ", ", what, 100.0 * misfit);
  };
  add_error("products", [](KernelKind kind) { return kind == KernelKind::matmul; });
  add_error("attention", [](KernelKind kind) { return kind > KernelKind::matmul && kind < KernelKind::decode; });
  add_error("decode", [](KernelKind kind) { return kind == KernelKind::decode; });
  add_error("streams", [](KernelKind kind) { return kind >= KernelKind::stream && kind <= KernelKind::optimizer; });
  c.sources.front().error = error.empty() ? "" : "mean absolute, groups alike: " + error;
}

}  // namespace

void launch_alike(Harness& harness) {
  for (const KernelKind kind : {KernelKind::attention_forward, KernelKind::attention_backward, KernelKind::decode})
    harness.launch[static_cast<std::size_t>(kind)] = harness.launch[static_cast<std::size_t>(KernelKind::matmul)];
}

double spread_of(std::vector<double> logs) {
  if (logs.size() < 5) return 0.0;
  std::sort(logs.begin(), logs.end());
  return std::expm1(unseen_margin *
                    logs[static_cast<std::size_t>(hardware::spread_coverage * static_cast<double>(logs.size() - 1))]);
}

std::string calibration_id(const hardware::Chip& chip, KernelKind kind) {
  if (chip.id == "h200-sxm" && kind == KernelKind::matmul) return chip.id;
  for (const Family& family : families())
    if (std::find(family.architectures.begin(), family.architectures.end(), chip.architecture) !=
        family.architectures.end())
      return std::string(family.id);
  return "";
}

void start_fit(FitProblem& problem) {
  problem.calibrations.clear();
  for (const Family& family : families()) {
    hardware::Calibration& c = add(problem, family.id, family.name);
    c.architectures = family.architectures;
    hardware::MatmulCalibration& m = *c.matmul;
    const bool tpu = family.id == "tpu", blackwell = family.id == "blackwell";
    const auto share = [&](Dtype dtype) -> double& { return m.share[static_cast<std::size_t>(dtype)]; };
    share(Dtype::bf16) = tpu ? 0.8 : blackwell ? 0.72 : 0.84;
    if (family.id != "ampere" && !tpu) share(Dtype::fp8) = 0.75;
    if (blackwell) share(Dtype::fp4) = 0.5;
    // Short bursts do not show how far the clock gives way. Fitted where a family has both regimes; else what whole
    // training steps (Blackwell: 0.58 to 0.62 of the peak) and sustained tables of one chip (Ada) show.
    m.droop = family.id == "hopper" ? 0.2 : blackwell ? 0.3 : family.id == "ada" ? 0.35 : tpu ? 0.0 : 0.05;
    // Kernels that feed matrix units straight from shared memory take tiles of many widths.
    m.fine_tiles = blackwell || family.id == "hopper";
    if (blackwell) m.port.reset();
    if (tpu) m.small_tile = m.fill = 0.0, m.split_cost = Seconds(0), m.port.reset();
    c.pointwise = hardware::PointwiseCalibration{0.9, 0.75, 0.3, 0.6, 0.5_us};
    c.attention.emplace().cudnn = attention_start;
    if (family.id == "hopper" || family.id == "ampere") c.attention->flash2 = attention_start;
    if (family.id != "ada") c.collective = start_collective(family.id == "hopper" || blackwell ? 0.58 : 0.0);
    // What starts a kernel: eager frameworks as whole training steps show it, compiled and captured ones as tables do.
    c.host = tpu ? hardware::HostCalibration{2_us, 2_us, 2_us} : hardware::HostCalibration{31_us, 10_us, 2_us};
    assumed(c, "host");
    if (blackwell || family.id == "ada" || tpu) assumed(c, "pointwise");
    if (family.id == "ada") assumed(c, "collective");
  }
  hardware::Calibration& h200 = add(problem, "h200-sxm", "NVIDIA H200 SXM5 141GB");
  h200.chip = "h200-sxm";
  h200.matmul->share[static_cast<std::size_t>(Dtype::bf16)] = 0.86;
  h200.matmul->share[static_cast<std::size_t>(Dtype::fp8)] = 0.78;
  h200.matmul->droop = 0.2;
  h200.matmul->fine_tiles = true;

  problem.harnesses.clear();
  const auto harness = [&](std::string_view source, Seconds launch, Seconds gap, Seconds ramp) -> Harness& {
    Harness& h = problem.harnesses[std::string(source)];
    for (std::size_t i = 0; i + 1 < kernel_kinds; ++i) h.launch[i] = launch;  // those without rows go at the end
    h.gap = gap, h.ramp = ramp;
    return h;
  };
  for (const OwnTable& table : own_tables)  // replayed from a graph with the caches flushed in between
  {
    Harness& own = harness(table.source, 6_us, 200_us, 1_us);
    own.dirty = 20_MB, own.evicts = 0.2;
  }
  Harness& tables = harness("aiconfigurator", 2.5_us, 3000_us, 0.5_us);  // short bursts from a graph
  for (const std::string architecture : {"Ada Lovelace", "Hopper", "Blackwell", "Blackwell Ultra"})
    tables.quantise[{Dtype::fp8, architecture}] = {9_us, 0.0003_us, 9};
  for (const std::string architecture : {"Blackwell", "Blackwell Ultra"})
    tables.quantise[{Dtype::fp4, architecture}] = {5_us, 0.0003_us, 9};
  tables.attention_passes = 2;
  harness("vidur", 5_us, 0_us, 0.5_us);
  harness("llmservingsim-prof", 3_us, 0_us, 0.5_us);
  harness("infersim", 7_us, 0_us, 0.5_us).split_k = false;
  harness("simumax", 3_us, 0_us, 0.5_us);
  harness("llmcompass", 27_us, 3000_us, 0.5_us);  // timed by the host
  harness("stas00-mamf", 3_us, 3000_us, 0.5_us);  // the best of a sweep
  harness("tpu-recipes-ubench", 0.1_us, 0_us, 0.1_us);
  harness("flash-attention", 10_us, 0_us, 0.5_us);
  for (const std::string_view source :
       {"aiconfigurator-nccl", "nccl-tests-docs", "nccl-tests-transcribed", "scaling-book", "stas00"})
    problem.harnesses[std::string(source)];
}

Result<std::vector<std::pair<std::string, std::string>>> fit_calibrations(const FitInput& input) {
  if (!input.data)
    return fail("--data", "a fit needs the third-party tables too", "give the directory that holds third_party/",
                Error::Kind::usage);
  FitProblem problem;
  problem.rows = input.what();
  start_fit(problem);
  // The bound of trees is no fit: NCCL's own model (src/graph/tuning.cc) has it, 110 GB/s of a ring's bandwidth on
  // A100, half of it of the array. It stays as the files have it.
  for (const auto& [path, text] : input.catalogue.files("calibration/")) {
    ASSAY_TRY(known, hardware::read_calibration(text, path));
    const auto of = problem.calibrations.find(known.id);
    if (of == problem.calibrations.end() || !of->second.collective || !known.collective) continue;
    of->second.collective->tree = known.collective->tree;
  }
  const auto take = [&](KernelRows rows) {
    for (KernelRow& row : rows.rows) {
      row.fitted = input.sees(row.fold);
      if (problem.harnesses.contains(row.source)) problem.kernels.push_back(std::move(row));
    }
  };
  for (const OwnTable& table : own_tables) {
    if (!table.fitted) continue;
    ASSAY_TRY(own, catalogue_table(input.catalogue, table.file));
    take(read_own_ops(own, table.source));
  }
  ASSAY_TRY(kernel_table, data_table(*input.data, "third_party/kernels.csv"));
  take(read_kernels(kernel_table, input.catalogue));
  ASSAY_TRY(collective_table, data_table(*input.data, "third_party/collectives.csv"));
  ASSAY_TRY(collectives, read_collectives(collective_table, input.catalogue));
  for (CollectiveRow& row : collectives.rows) {
    row.fitted = input.sees(row.fold);
    if (problem.harnesses.contains(row.source)) problem.collectives.push_back(std::move(row));
  }
  const auto know = [&](const std::string& id) -> Result<void> {
    if (problem.chips.contains(id)) return {};
    ASSAY_TRY(chip, input.catalogue.chip(id, "chip"));
    problem.chips.emplace(id, std::move(chip));
    return {};
  };
  for (const KernelRow& row : problem.kernels) ASSAY_CHECK(know(row.chip));
  for (const CollectiveRow& row : problem.collectives) ASSAY_CHECK(know(row.chip));
  // Chips of no family cannot be fitted.
  std::erase_if(problem.kernels,
                [&](const KernelRow& row) { return calibration_id(problem.chips.at(row.chip), row.kind).empty(); });
  std::erase_if(problem.collectives, [&](const CollectiveRow& row) {
    return calibration_id(problem.chips.at(row.chip), KernelKind::collective).empty();
  });

  fit_matmuls(problem);
  fit_attention(problem);
  fit_pointwise(problem);
  fit_collectives(problem);

  std::vector<std::pair<std::string, std::string>> files;
  const Harness& tables = problem.harnesses.at("aiconfigurator");
  const Harness& own = problem.harnesses.at("h200-random");  // as assay measure does it
  const hardware::Calibration hopper = problem.calibrations.at("hopper"), ampere = problem.calibrations.at("ampere");
  for (auto& [id, c] : problem.calibrations) {
    if (id == "tpu") {
      c.burst = c.sustained = hardware::Regime{};
    } else {
      c.sustained = hardware::Regime{tables.launch[matmul], Seconds(0), tables.ramp};
      c.burst = id == "h200-sxm" ? hardware::Regime{own.launch[matmul], own.gap, own.ramp}
                                 : hardware::Regime{tables.launch[matmul], tables.gap, tables.ramp};
    }
    if (c.origin("pointwise") == "(assumed)") c.pointwise = hopper.pointwise;
    if (c.origin("collective") == "(assumed)") c.collective = ampere.collective;
    add_spreads(problem, c);
    describe_fit(problem, c);
    files.emplace_back("calibration/" + id + ".toml", hardware::calibration_text(c));
  }
  for (auto& [source, h] : problem.harnesses)
    for (std::size_t kind = 0; kind + 1 < kernel_kinds; ++kind)
      if (std::none_of(problem.kernels.begin(), problem.kernels.end(), [&, &name = source](const KernelRow& row) {
            return row.source == name && static_cast<std::size_t>(row.kind) == kind;
          }))
        h.launch[kind] = Seconds(0);
  for (const OwnTable& table : own_tables)  // measured the same way, but all kernels are replayed from a graph
    if (!table.fitted) {
      Harness& h = problem.harnesses[std::string(table.source)] = own;
      launch_alike(h);
    }
  std::string harness = fmt::format(
      "# How the tables were measured: nothing of this belongs to a chip.\n[source.fit]\n"
      "title = \"fit to {}\"\ncommand = \"{}\"\ndate = {}\n",
      input.what(), fit_command, fit_date);
  files.emplace_back("validation/harness.toml", harness + harness_text(problem.harnesses, "fit"));
  return files;
}

}  // namespace assay::validate
