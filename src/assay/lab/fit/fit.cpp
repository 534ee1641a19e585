#include "assay/lab/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/lab/validate/rows/tables.h"
#include "assay/predict/numbers/interval.h"

namespace assay::validate {
namespace {

constexpr std::string_view fit_date = "2026-11-16";  // of the last study; results contain no clock time
constexpr std::string_view fit_command = "assay validate --fit catalogue --data DIR";

hardware::Calibration& add_calibration(FitProblem& problem, std::string_view id, std::string_view name) {
  hardware::Calibration& c = problem.calibrations[std::string(id)];
  c.id = id;
  c.name = name;
  c.sources.push_back({"fit", "fit to " + problem.rows, std::string(fit_command), "", std::string(fit_date), "", ""});
  c.sources.push_back({"assumed", "not measured here: taken over from the nearest family, or from whole training steps",
                       std::string(fit_command), "", std::string(fit_date), "", ""});
  return c;
}

hardware::MatmulCalibration start_matmul(const RangeTable& ranges, const numbers::FamilyKernels& kernels) {
  hardware::MatmulCalibration m;
  m.share = kernels.share;
  m.droop = kernels.droop;
  m.fine_tiles = kernels.fine_tiles;
  m.memory_share = 1.0;  // a compiler that plans the whole array also plans what it reads: fits find no loss
  if (!kernels.whole_products) {
    m.memory_share = ranges["memory_share"].start();
    m.small_tile = ranges["small_tile"].start();
    m.fill = ranges["fill"].start();
    m.split_cost = ranges["split_cost"].start<Seconds>();
  }
  if (!kernels.unbounded_port) m.port = ranges["port"].start<BytesPerSecond>();
  return m;
}

/// Marks a section as not fitted.
void mark_assumed(hardware::Calibration& c, std::string section) { c.origins.add(std::move(section), "(assumed)"); }

hardware::CollectiveCalibration start_collective(const KernelRanges& all, const numbers::FamilyKernels& kernels) {
  const RangeTable ranges = all.of("collective");
  const Seconds chunk = kernels.unchunked ? Seconds(0) : ranges["chunk"].start<Seconds>();
  const hardware::CollectiveCurve curve{ranges["latency"].start<Seconds>(), ranges["member"].start<Seconds>(),
                                        ranges["share"].start(), ranges["pair"].start(), chunk};
  const hardware::AcrossCurve across{all.of("across")["latency"].start<Seconds>()};
  return {curve, curve, curve, curve, kernels.in_network, across, across, across, across};
}

/// Start values and structure of a family's calibration; numbers that are not fitted keep these values.
void start_family(FitProblem& problem, const numbers::Family& family) {
  const numbers::FamilyKernels& kernels = *family.kernels;
  const KernelRanges& ranges = problem.ranges;
  hardware::Calibration& c = add_calibration(problem, family.id, family.name);
  c.architectures = family.architectures;
  c.matmul = start_matmul(ranges.of("matmul"), kernels);
  const RangeTable p = ranges.of("pointwise");
  c.pointwise = hardware::PointwiseCalibration{p["stream"].start(), p["norm"].start(), p["softmax"].start(),
                                               p["optimizer"].start(), p["ramp"].start<Seconds>()};
  hardware::AttentionKernelCalibration attention = attention_start(ranges.of("attention"));
  if (kernels.softmax) attention.forward.softmax = attention.backward.softmax = *kernels.softmax;
  c.attention.emplace().cudnn = attention;
  c.attention->cudnn->head_step = kernels.head_step;
  c.attention->cudnn->full_power = kernels.full_power;
  if (kernels.flash2) c.attention->flash2 = attention;
  if (kernels.collective_from.empty()) c.collective = start_collective(ranges, kernels);
  c.host = kernels.host;
  mark_assumed(c, "host");
  if (!kernels.pointwise_from.empty()) mark_assumed(c, "pointwise");
  if (!kernels.collective_from.empty()) mark_assumed(c, "collective");
}

Harness& add_harness(FitProblem& problem, std::string_view name, const HarnessStart& start) {
  Harness& h = problem.harnesses[std::string(name)];
  for (std::size_t i = 0; i + 1 < kernel_kinds; ++i) h.launch[i] = start.launch;  // kinds without rows are reset later
  h.gap = start.gap;
  h.ramp = start.ramp;
  h.split_k = !start.whole_k;
  return h;
}

/// Casts included in a measurement, on the architectures that have the format.
void add_quantising(FitProblem& problem, Harness& harness) {
  const RangeTable ranges = problem.ranges.of("quantise");
  const std::vector<std::string>& by_rows = problem.ranges.casts_by_row;
  for (const numbers::Family& family : problem.families)
    for (const Dtype dtype : {Dtype::fp8, Dtype::fp4}) {
      if (!family.kernels || family.kernels->share[static_cast<std::size_t>(dtype)] == 0.0) continue;
      const Seconds fixed =
          dtype == Dtype::fp4 ? ranges["fixed_fp4"].start<Seconds>() : ranges["fixed"].start<Seconds>();
      const bool by_row = std::find(by_rows.begin(), by_rows.end(), name(dtype)) != by_rows.end();
      const Seconds element = by_row ? ranges["element"].start<Seconds>() : Seconds(0);
      for (const std::string& architecture : family.architectures)
        harness.quantise[{dtype, architecture}] = {fixed, element, ranges["passes"].start()};
    }
}

Result<void> start_harnesses(FitProblem& problem) {
  problem.harnesses.clear();
  const RangeTable measuring = problem.ranges.of("measuring");
  for (const OwnTable& table : own_tables) {
    Harness& own = add_harness(problem, table.source, problem.ranges.own);
    own.dirty = measuring["dirty"].start<Bytes>();
    own.evicts = measuring["evicts"].start();
  }
  for (const HarnessStart& start : problem.ranges.tables) {
    Harness& table = add_harness(problem, start.name, start);
    if (!start.engine) continue;
    add_quantising(problem, table);
    table.attention_passes = measuring["attention_passes"].start();
  }
  for (const CollectiveSweep& sweep : problem.ranges.sweeps) problem.harnesses[sweep.name];
  for (const OwnStart& own : problem.ranges.own_tables)
    for (const std::string& name : {own.name, own.measured_as, own.rested_as})
      if (!name.empty() && !is_own(name))
        return fail("fits/kernels.toml: own_table", fmt::format("no table of ours is {}", in_quotes(name)));
  return {};
}

void add_spreads(const FitProblem& problem, hardware::Calibration& c) {
  hardware::SpreadCalibration& spread = c.spread.emplace();
  std::map<double*, std::vector<double>> logs;
  for (const KernelRow& row : problem.kernels) {
    const hardware::Chip& chip = problem.chips.at(row.chip);
    if (!row.fitted || row.odd || calibration_id(problem.families, chip, row.kernel.kind) != c.id) continue;
    const auto predicted = predict(row, chip, c, problem.harnesses.at(row.source));
    if (!predicted) continue;
    double& field = row.kernel.kind == KernelKind::matmul   ? spread.matmul
                    : row.kernel.kind < KernelKind::decode  ? spread.attention
                    : row.kernel.kind == KernelKind::decode ? spread.decode
                                                            : spread.pointwise;
    logs[&field].push_back(std::abs(std::log(*predicted / row.measured)));
  }
  std::vector<numbers::Residual> between;
  for (const CollectiveRow& row : problem.collectives) {
    const std::string id = calibration_id(problem, row.chip, KernelKind::collective);
    const auto& own = problem.calibrations.at(id).collective;
    if (!row.fitted || !own || !c.collective || (id != c.id && !row.across)) continue;
    const double log_ratio = std::log(predict(row, *own, problem.harnesses.at(row.source)) / row.measured);
    if (row.across)
      between.push_back({row.group, log_ratio, {}, {}});
    else
      logs[&spread.collective].push_back(std::abs(log_ratio));
  }
  // A fabric is new to a user as a whole table is: tables weigh alike.
  if (!between.empty()) spread.between_nodes = numbers::residual_spread(std::move(between), hardware::spread_coverage);
  for (auto& [field, values] : logs) *field = spread_of(std::move(values));
}

/// Row count and error of the numbers fitted into a file.
void describe_fit(FitProblem& problem, hardware::Calibration& c) {
  std::size_t kernels = 0, collectives = 0;
  for (const KernelRow& row : problem.kernels)
    if (row.fitted && calibration_id(problem, row.chip, row.kernel.kind) == c.id) ++kernels;
  for (const CollectiveRow& row : problem.collectives)
    if (row.fitted && calibration_id(problem, row.chip, KernelKind::collective) == c.id) ++collectives;
  c.sources.front().rows = fmt::format("{} kernels, {} collectives", kernels, collectives);
  std::string error;
  const auto add_error = [&](std::string_view what, auto take) {
    const double misfit = kernel_misfit(problem, [&](const KernelRow& row) {
      return take(row.kernel.kind) && row.kernel.product.batch == 1.0 &&
             calibration_id(problem, row.chip, row.kernel.kind) == c.id;
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

std::string calibration_id(const numbers::Families& families, const hardware::Chip& chip, KernelKind kind) {
  const numbers::Family* family = numbers::family_of(families, chip);
  if (!family || !family->kernels) return "";
  const std::vector<std::string>& own = family->kernels->own_products;
  const bool apart = kind == KernelKind::matmul && std::find(own.begin(), own.end(), chip.id) != own.end();
  return apart ? chip.id : family->id;
}

std::string calibration_id(const FitProblem& problem, const std::string& chip, KernelKind kind) {
  return calibration_id(problem.families, problem.chips.at(chip), kind);
}

const numbers::Family& family_of_calibration(const FitProblem& problem, std::string_view id) {
  for (const numbers::Family& family : problem.families) {
    if (!family.kernels) continue;
    const std::vector<std::string>& own = family.kernels->own_products;
    if (family.id == id || std::find(own.begin(), own.end(), id) != own.end()) return family;
  }
  throw InternalError(fmt::format("no family has the calibration {}", id));
}

Result<void> start_fit(FitProblem& problem, const hardware::Catalogue& catalogue) {
  ASSAY_TRY(families, numbers::families_of(catalogue));
  ASSAY_TRY(ranges, kernel_ranges_of(catalogue));
  problem.families = std::move(families);
  problem.ranges = std::move(ranges);
  problem.calibrations.clear();
  ASSAY_TRY(library, hardware::collective_protocols_of(catalogue));
  for (const numbers::Family& family : problem.families) {
    if (!family.kernels) continue;
    start_family(problem, family);
    if (auto& collective = problem.calibrations[family.id].collective)
      collective->run(library, family.architectures.front());
    for (const std::string& id : family.kernels->own_products) {
      ASSAY_TRY(chip, catalogue.chip(id, "own_products"));
      hardware::Calibration& own = add_calibration(problem, id, chip.name);
      own.chip = id;
      own.matmul = start_matmul(problem.ranges.of("matmul"), *family.kernels);
    }
  }
  return start_harnesses(problem);
}

namespace {

/// The tree bound is not fitted: it comes from NCCL's own model (src/graph/tuning.cc), 110 GB/s of ring bandwidth on
/// A100, so half of that for the array. It keeps the value in the files.
Result<void> keep_trees(const hardware::Catalogue& catalogue, FitProblem& problem) {
  for (const auto& [path, text] : catalogue.files("calibration/")) {
    ASSAY_TRY(known, hardware::read_calibration(text, path));
    const auto of = problem.calibrations.find(known.id);
    if (of == problem.calibrations.end() || !of->second.collective || !known.collective) continue;
    of->second.collective->tree = known.collective->tree;
  }
  return {};
}

bool is_ignored(const KernelRow& row, const KernelRanges& ranges) {
  const bool grouped = row.kernel.kind == KernelKind::matmul && row.kernel.product.batch > 1.0;
  const std::string_view kind =
      grouped ? "grouped" : kernel::kernel_kind_names[static_cast<std::size_t>(row.kernel.kind)];
  return std::any_of(ranges.ignored.begin(), ranges.ignored.end(), [&](const IgnoredRows& rows) {
    return rows.table == row.source && (rows.chip.empty() || rows.chip == row.chip) &&
           std::find(rows.kinds.begin(), rows.kinds.end(), kind) != rows.kinds.end();
  });
}

void take_kernels(KernelRows rows, const FitInput& input, FitProblem& problem) {
  for (KernelRow& row : rows.rows) {
    row.fitted = input.sees(row.fold) && !is_ignored(row, problem.ranges);
    row.odd = row.source == problem.ranges.showing(odd_rows).name;
    if (row.server.empty() && problem.harnesses.contains(row.source)) problem.kernels.push_back(std::move(row));
  }
}

/// All kernel and collective rows, and the chips they were measured on.
Result<void> read_rows(const FitInput& input, FitProblem& problem) {
  for (const OwnTable& table : own_tables) {
    if (!table.fitted) continue;
    ASSAY_TRY(own, catalogue_table(input.catalogue, table.file));
    take_kernels(read_own_ops(own, table.source), input, problem);
  }
  ASSAY_TRY(kernel_table, data_table(*input.data, "third_party/kernels.csv"));
  ASSAY_TRY(kernels, read_kernels(kernel_table, input.catalogue));
  take_kernels(std::move(kernels), input, problem);
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
  // Chips without a family cannot be fitted.
  std::erase_if(problem.kernels,
                [&](const KernelRow& row) { return calibration_id(problem, row.chip, row.kernel.kind).empty(); });
  std::erase_if(problem.collectives, [&](const CollectiveRow& row) {
    return calibration_id(problem, row.chip, KernelKind::collective).empty();
  });
  return {};
}

/// The regimes of a calibration from the tables, and sections copied from other families.
void complete(const FitProblem& problem, const std::map<std::string, hardware::Calibration>& fitted,
              hardware::Calibration& c) {
  const Harness& tables = problem.harnesses.at(problem.ranges.usual().name);
  const Harness& own = problem.harnesses.at(problem.ranges.own_usual().name);
  const numbers::Family& family = family_of_calibration(problem, c.id);
  if (family.compiled_whole) {
    c.burst = c.sustained = hardware::Regime{};
  } else {
    c.sustained = hardware::Regime{tables.launch[matmul], Seconds(0), tables.ramp};
    c.burst = c.chip ? hardware::Regime{own.launch[matmul], own.gap, own.ramp}
                     : hardware::Regime{tables.launch[matmul], tables.gap, tables.ramp};
    // Our own tables show how kernels by themselves start and what a flushed cache costs, on the family they ran on.
    if (!c.chip && &family == numbers::family_of(problem.families, problem.chips.at(std::string(own_chip)))) {
      const auto launch = [&](KernelKind kind) { return own.launch[static_cast<std::size_t>(kind)]; };
      c.launch = {launch(KernelKind::attention_forward),
                  launch(KernelKind::attention_backward),
                  launch(KernelKind::decode),
                  launch(KernelKind::stream),
                  launch(KernelKind::norm),
                  launch(KernelKind::softmax),
                  launch(KernelKind::optimizer)};
      c.flushed = {own.dirty, own.evicts};
    }
  }
  if (c.origin("pointwise") == "(assumed)") c.pointwise = fitted.at(family.kernels->pointwise_from).pointwise;
  if (c.origin("collective") == "(assumed)") c.collective = fitted.at(family.kernels->collective_from).collective;
}

/// Launch times are unknown for kinds without rows in a table; tables left out of the fit use our standard harness.
void complete_harnesses(FitProblem& problem) {
  for (auto& [source, h] : problem.harnesses)
    for (std::size_t kind = 0; kind + 1 < kernel_kinds; ++kind)
      if (std::none_of(problem.kernels.begin(), problem.kernels.end(), [&, &name = source](const KernelRow& row) {
            return row.source == name && static_cast<std::size_t>(row.kernel.kind) == kind;
          }))
        h.launch[kind] = Seconds(0);
  const Harness own = problem.harnesses.at(problem.ranges.own_usual().name);
  for (const OwnTable& table : own_tables)
    if (!table.fitted) launch_alike(problem.harnesses[std::string(table.source)] = own);
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> fit_calibrations(const FitInput& input) {
  if (!input.data)
    return fail("--data", "a fit needs the third-party tables too", "give the directory that holds third_party/",
                Error::Kind::usage);
  FitProblem problem;
  problem.rows = input.what();
  ASSAY_CHECK(start_fit(problem, input.catalogue));
  ASSAY_CHECK(keep_trees(input.catalogue, problem));
  ASSAY_CHECK(read_rows(input, problem));
  fit_matmuls(problem);
  fit_attention(problem);
  fit_pointwise(problem);
  fit_collectives(problem);

  std::vector<std::pair<std::string, std::string>> files;
  const std::map<std::string, hardware::Calibration> fitted = problem.calibrations;
  for (auto& [id, c] : problem.calibrations) {
    complete(problem, fitted, c);
    add_spreads(problem, c);
    describe_fit(problem, c);
    files.emplace_back("calibration/" + id + ".toml", hardware::calibration_text(c));
  }
  complete_harnesses(problem);
  std::string harness = fmt::format(
      "# How the tables were measured: nothing of this belongs to a chip.\n[source.fit]\n"
      "title = \"fit to {}\"\ncommand = \"{}\"\ndate = {}\n",
      input.what(), fit_command, fit_date);
  files.emplace_back("validation/harness.toml", harness + harness_text(problem.harnesses, "fit"));
  return files;
}

}  // namespace assay::validate
