#include "assay/lab/fit/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "assay/base/text.h"
#include "assay/lab/fit/fit.h"
#include "assay/lab/validate/rows/collective_rows.h"
#include "assay/lab/validate/rows/kernel_rows.h"

namespace assay::validate {
namespace {

constexpr auto stream = static_cast<std::size_t>(KernelKind::stream);

std::vector<CollectiveRow> collectives_of(const std::vector<measure::MeasuredRow>& rows, const hardware::Chip& chip) {
  std::vector<CollectiveRow> found;
  const auto egress = hardware::scale_up_egress(chip);
  if (!egress) return found;
  for (const measure::MeasuredRow& row : rows)
    if (const auto kind = measure::collective_of(row.op); kind && row.b >= 2) {
      CollectiveRow one;
      one.kind = *kind;
      one.bytes = Bytes(static_cast<double>(row.a));
      one.measured = row.median;
      one.links.devices = static_cast<double>(row.b);
      one.links.levels.push_back({one.links.devices, 1.0, egress->value, false, 0});
      one.shape = fmt::format("{} over {} of {}", row.op, row.b, row.a);
      one.group = fmt::format("{} over {}", program::name(*kind), row.b);
      one.id = fmt::format("{}-{}", chip.id, one.shape);
      one.fitted = shape_hash(one.shape) % 2 == 1;
      found.push_back(std::move(one));
    }
  return found;
}

/// The data of one fit.
struct Problem {
  const hardware::Chip& chip;
  std::vector<KernelRow> kernels;
  std::vector<CollectiveRow> collectives;
  hardware::Calibration calibration;
  Harness harness;

  std::optional<Seconds> predicted(const KernelRow& row) const { return predict(row, chip, calibration, harness); }
  bool has(KernelKind kind, bool sustained = false) const {
    return std::any_of(kernels.begin(), kernels.end(), [&](const KernelRow& row) {
      return row.fitted && row.kernel.kind == kind && row.sustained == sustained;
    });
  }

  template <class Take>
  double misfit(Take take) const {
    std::map<std::string, std::pair<double, double>> groups;
    for (const KernelRow& row : kernels) {
      if (!row.fitted || !take(row)) continue;
      const auto time = predicted(row);
      if (!time) continue;
      auto& [sum, count] = groups[row.group];
      sum += std::abs(std::log(*time / row.measured));
      count += 1.0;
    }
    return mean_of_groups(groups);
  }
};

bool is_product(const KernelRow& row) { return row.kernel.kind == KernelKind::matmul; }

/// Shares of the formats that have rows to fit.
void add_shares(Problem& p, const FitRange<double>& range, std::vector<FitParameter>& parameters) {
  hardware::MatmulCalibration& m = *p.calibration.matmul;
  for (std::size_t format = 0; format < m.share.size(); ++format) {
    const bool measured = std::any_of(p.kernels.begin(), p.kernels.end(), [&](const KernelRow& row) {
      return row.fitted && is_product(row) && static_cast<std::size_t>(row.kernel.format) == format;
    });
    if (!measured) {
      m.share[format] = 0.0;
      continue;
    }
    if (m.share[format] == 0.0) m.share[format] = range.start;
    parameters.push_back(fit(m.share[format], range));
  }
}

void fit_cpu_products(Problem& p, const MeasuredRanges& ranges) {
  const RangeTable cpu = ranges.of("cpu");
  hardware::MatmulCalibration& m = p.calibration.matmul.emplace();
  m.memory_share = cpu["memory_share"].start();
  m.fill = cpu["fill"].start();
  m.fork = cpu["fork"].start<Seconds>();
  hardware::Regime& burst = p.calibration.burst.emplace(
      hardware::Regime{cpu["launch"].start<Seconds>(), Seconds(0), cpu["ramp"].start<Seconds>()});
  const auto parameters = [&] {  // start from the current values
    std::vector<FitParameter> all{fit(m.memory_share, cpu["memory_share"]), fit(m.fill, cpu["fill"]),
                                  fit(*m.fork, cpu["fork"]), fit(burst.launch, cpu["launch"]),
                                  fit(burst.ramp, cpu["ramp"])};
    add_shares(p, cpu["share"], all);
    return all;
  };
  const auto objective = [&] {
    p.harness.launch[matmul] = burst.launch;
    p.harness.ramp = burst.ramp;
    return p.misfit(is_product);
  };
  for (int round = 0; round < 3; ++round) minimise(parameters(), objective, 1000);
  objective();
  p.calibration.sustained = burst;
}

void fit_gpu_products(Problem& p, const hardware::Calibration* start, const MeasuredRanges& ranges) {
  const RangeTable gpu = ranges.of("gpu"), alone = ranges.of("alone"), streamed = ranges.of("in-a-stream");
  hardware::MatmulCalibration& m = p.calibration.matmul.emplace();
  m.memory_share = gpu["memory_share"].start();
  m.small_tile = gpu["small_tile"].start();
  m.fill = gpu["fill"].start();
  m.split_cost = gpu["split_cost"].start<Seconds>();
  m.port = gpu["port"].start<BytesPerSecond>();
  m.droop = gpu["droop"].start();
  hardware::Regime& burst = p.calibration.burst.emplace(hardware::Regime{
      alone["launch"].start<Seconds>(), alone["gap"].start<Seconds>(), alone["ramp"].start<Seconds>()});
  hardware::Regime& sustained = p.calibration.sustained.emplace(
      hardware::Regime{streamed["launch"].start<Seconds>(), Seconds(0), streamed["ramp"].start<Seconds>()});
  if (start && start->matmul) m = *start->matmul;
  if (start && start->burst) burst = *start->burst;
  if (start && start->sustained) sustained = *start->sustained;
  const bool trains = p.has(KernelKind::matmul, true);
  const auto objective = [&] {
    p.harness.launch[matmul] = burst.launch;
    p.harness.gap = burst.gap;
    p.harness.ramp = burst.ramp;
    return p.misfit(is_product);
  };
  for (int round = 0; round < 4; ++round) {
    std::vector<FitParameter> chip{fit(m.memory_share, gpu["memory_share"]), fit(m.droop, gpu["droop"])};
    add_shares(p, gpu["share"], chip);
    minimise(chip, objective, 200);
    std::vector<FitParameter> way{fit(burst.launch, alone["launch"]), fit(burst.gap, alone["gap"]),
                                  fit(burst.ramp, alone["ramp"])};
    if (trains) {
      way.push_back(fit(sustained.launch, streamed["launch"]));
      way.push_back(fit(sustained.ramp, streamed["ramp"]));
    }
    minimise(way, objective, 200);
    minimise({fit(m.small_tile, gpu["small_tile"]), fit(m.fill, gpu["fill"]), fit(m.split_cost, gpu["split_cost"])},
             objective, 100);
  }
  objective();
}

bool is_attention_pass(const KernelRow& row) {
  return row.kernel.kind == KernelKind::attention_forward || row.kernel.kind == KernelKind::attention_backward;
}

void fit_attention(Problem& p, const hardware::Calibration* start, const RangeTable& ranges) {
  hardware::AttentionKernelCalibration& kernel =
      p.calibration.attention.emplace().cudnn.emplace(attention_start(ranges));
  if (start && start->attention && start->attention->cudnn) kernel = *start->attention->cudnn;
  launch_alike(p.harness);
  for (const KernelKind kind : {KernelKind::attention_forward, KernelKind::attention_backward}) {
    if (!p.has(kind)) continue;
    const bool forward = kind == KernelKind::attention_forward;
    const RangeTable pass = ranges.inside(forward ? "forward" : "backward");
    FitRange<double> share = pass["share"];
    share.high = ranges.inside("forward")["share"].in_base_units.high;  // a new chip may do better than the known ones
    hardware::AttentionPass& found = forward ? kernel.forward : kernel.backward;
    found.start = found.start.value_or(pass["start"].start<Seconds>());
    found.tail = found.tail.value_or(pass["tail"].start());
    minimise(
        {fit(found.share, share), fit(found.softmax, pass["softmax"]), fit(found.passes, pass["passes"]),
         fit(*found.start, pass["start"]), fit(*found.tail, pass["tail"])},
        [&] { return p.misfit([&](const KernelRow& row) { return row.kernel.kind == kind; }); }, 1500);
  }
  if (!p.has(KernelKind::decode)) return;
  const RangeTable decode = ranges.inside("decode");
  minimise(
      {fit(kernel.decode.share, decode["share"]), fit(kernel.decode.item, decode["item"]),
       fit(kernel.decode.crowded, decode["crowded"])},
      [&] { return p.misfit([](const KernelRow& row) { return row.kernel.kind == KernelKind::decode; }); }, 1500);
}

/// Streaming kernels have the same launch time as products.
Seconds launch_of(const hardware::Calibration& c) { return c.sustained ? c.sustained->launch : Seconds(0); }

/// Copies determine the stream rate; kernels without rows get the same rate.
void fit_streams(Problem& p, const MeasuredRanges& ranges) {
  const RangeTable copies = ranges.of("copies");
  hardware::PointwiseCalibration& s = p.calibration.pointwise.emplace(
      hardware::PointwiseCalibration{copies["stream"].start(), 1, 1, 1, copies["ramp"].start<Seconds>()});
  p.harness.launch[stream] = launch_of(p.calibration);
  minimise(
      {fit(s.stream, copies["stream"]), fit(s.ramp, copies["ramp"])},
      [&] { return p.misfit([](const KernelRow& row) { return row.kernel.kind == KernelKind::stream; }); }, 1500);
  s.norm = s.softmax = s.optimizer = s.stream;
}

void fit_ranks(Problem& p, const MeasuredRanges& from, std::optional<double> cores) {
  const RangeTable ranges = from.of("ranks");
  hardware::CollectiveCalibration& c = p.calibration.collective.emplace();
  c.cores = cores;
  for (const program::CollectiveFacts& each : program::all_collectives) {
    if (each.measured_as != each.kind) continue;
    hardware::CollectiveCurve* const curve = &collective::curve_of(c, each.kind);
    std::set<double> groups;
    for (const CollectiveRow& row : p.collectives)
      if (row.kind == each.kind) groups.insert(row.links.devices);
    const bool grows = groups.size() > 1;  // a single rank count does not show how the time grows with ranks
    // Ranks that copy for themselves do so message by message: nothing is pipelined.
    *curve = {ranges["latency"].start<Seconds>(), grows ? ranges["member"].start<Seconds>() : Seconds(0),
              ranges["share"].start(), grows ? ranges["pair"].start() : 0.0,
              cores ? Seconds(0) : ranges["chunk"].start<Seconds>()};
    const auto parameters = [&] {  // start from the current values
      std::vector<FitParameter> all{fit(curve->latency, ranges["latency"]), fit(curve->share, ranges["share"])};
      if (!cores) all.push_back(fit(curve->chunk, ranges["chunk"]));
      if (grows) {
        all.push_back(fit(curve->member, ranges["member"]));
        all.push_back(fit(curve->pair, ranges["pair"]));
      }
      return all;
    };
    const auto objective = [&, of = each.kind] {
      double sum = 0, count = 0;
      for (const CollectiveRow& row : p.collectives)
        if (row.fitted && row.kind == of) {
          sum += std::abs(std::log(predict(row, c, p.harness) / row.measured));
          count += 1.0;
        }
      return count > 0.0 ? sum / count : 0.0;
    };
    for (int round = 0; round < 3; ++round) minimise(parameters(), objective, 1500);
  }
}

std::vector<ValidationCase> cases_of(const Problem& p) {
  std::vector<ValidationCase> cases;
  const auto& spread = p.calibration.spread;
  for (const KernelRow& row : p.kernels)
    if (const auto time = p.predicted(row))
      cases.push_back({row.id, row.group, row.measured, *time,
                       is_product(row) ? fmt::format("{}[{},{},{}]", name(row.kernel.format), row.kernel.product.m,
                                                     row.kernel.product.n, row.kernel.product.k)
                                       : row.shape,
                       row.fitted, spread ? spread_of(*spread, row.kernel.kind) : 0.0});
  for (const CollectiveRow& row : p.collectives)
    if (p.calibration.collective)
      cases.push_back({row.id, row.group, row.measured, predict(row, *p.calibration.collective, p.harness), row.shape,
                       row.fitted, spread ? spread->collective : 0.0});
  return cases;
}

/// Errors of a class of rows: the fitted ones, and all.
struct Errors {
  std::vector<double> fitted, all;

  void add(double predicted_over_measured, bool was_fitted) {
    all.push_back(std::abs(std::log(predicted_over_measured)));
    if (was_fitted) fitted.push_back(all.back());
  }
  /// With few rows a quantile is meaningless: use the largest error, with the same margin.
  double spread() const {
    if (const double many = spread_of(fitted); many > 0.0 || all.empty()) return many;
    return std::expm1(unseen_margin * *std::max_element(all.begin(), all.end()));
  }
};

void add_spread(Problem& p) {
  Errors products, attention, decode, streams, ranks;
  for (const KernelRow& row : p.kernels)
    if (const auto time = p.predicted(row))
      (is_product(row)                         ? products
       : is_attention_pass(row)                ? attention
       : row.kernel.kind == KernelKind::decode ? decode
                                               : streams)
          .add(*time / row.measured, row.fitted);
  for (const CollectiveRow& row : p.collectives)
    if (p.calibration.collective)
      ranks.add(predict(row, *p.calibration.collective, p.harness) / row.measured, row.fitted);
  hardware::SpreadCalibration& spread = p.calibration.spread.emplace();
  spread.matmul = products.spread();
  spread.pointwise = streams.spread();
  spread.attention = attention.spread();
  spread.decode = decode.spread();
  spread.collective = ranks.spread();
}

Problem problem_of(const CsvTable& table, const hardware::Chip& chip, std::vector<UnansweredCase>* unanswered) {
  KernelRows rows = read_own_ops(table, chip.id, chip.id);
  Problem problem{chip, std::move(rows.rows), collectives_of(measured_rows(table), chip), {}, {}};
  for (KernelRow& row : problem.kernels) row.fitted = shape_hash(row.shape) % 2 == 1;
  if (unanswered) {
    std::erase_if(rows.unanswered,
                  [](const UnansweredCase& one) { return measure::collective_of(one.group).has_value(); });
    *unanswered = std::move(rows.unanswered);
  }
  return problem;
}

void learn_products(Problem& p, const MeasuredRanges& ranges) {
  hardware::MatmulCalibration& m = *p.calibration.matmul;
  const auto objective = [&] { return p.misfit(is_product); };
  minimise({fit(m.droop, ranges.of("gpu")["droop"])}, objective, 200);
  constexpr double good_enough = 0.02;
  if (objective() <= good_enough) return;
  std::vector<FitParameter> shares;
  for (std::size_t format = 0; format < m.share.size(); ++format)
    if (m.share[format] > 0.0 && std::any_of(p.kernels.begin(), p.kernels.end(), [&](const KernelRow& row) {
          return is_product(row) && static_cast<std::size_t>(row.kernel.format) == format;
        }))
      shares.push_back(fit(m.share[format], ranges.of("gpu")["share"]));
  if (!shares.empty()) minimise(shares, objective, 200);
}

/// Shares of the passes that have rows, of each kernel of attention by itself.
void learn_attention(Problem& p, const RangeTable& ranges) {
  struct Named {
    hardware::AttentionKernel kernel;
    std::optional<hardware::AttentionKernelCalibration>* numbers;
  };
  hardware::AttentionCalibration& all = *p.calibration.attention;
  for (const auto& [of, numbers] :
       {Named{hardware::AttentionKernel::flash2, &all.flash2}, Named{hardware::AttentionKernel::cudnn, &all.cudnn}}) {
    if (!*numbers) continue;
    const auto learn = [&, kernel = of](double& share, FitRange<double> range, KernelKind kind) {
      const auto take = [&](const KernelRow& row) { return row.kernel.kind == kind && row.kernel.library == kernel; };
      if (std::none_of(p.kernels.begin(), p.kernels.end(), take)) return;
      range.low = std::min(range.low, share);
      range.high = std::max(range.high, share);
      minimise(
          {fit(share, range)}, [&] { return p.misfit(take); }, 200);
    };
    learn((*numbers)->forward.share, ranges.inside("forward")["share"], KernelKind::attention_forward);
    learn((*numbers)->backward.share, ranges.inside("backward")["share"], KernelKind::attention_backward);
    learn((*numbers)->decode.share, ranges.inside("decode")["share"], KernelKind::decode);
  }
}

std::vector<ValidationCase> unfitted_cases(const Problem& p) {
  std::vector<ValidationCase> cases = cases_of(p);
  for (ValidationCase& one : cases) one.fitted = false;
  return cases;
}

}  // namespace

std::vector<measure::MeasuredRow> measured_rows(const CsvTable& table) {
  std::vector<measure::MeasuredRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (unread_measurement(table, i)) continue;
    const auto size = [&](std::string_view column) { return static_cast<std::int64_t>(table.number(i, column)); };
    measure::MeasuredRow row{std::string(table.text(i, "op")),
                             std::string(table.text(i, "dtype")),
                             size("a"),
                             size("b"),
                             size("c"),
                             size("d"),
                             size("e")};
    row.median = table.number(i, "us_median") * 1_us;
    row.least = table.number(i, "us_min") * 1_us;
    row.note = table.text(i, "note");
    rows.push_back(std::move(row));
  }
  return rows;
}

MeasuredFit fit_measured(const CsvTable& table, const hardware::Chip& chip, const hardware::Calibration* start,
                         const MeasuredRanges& ranges, const hardware::CalibrationSource& source,
                         std::optional<double> cores) {
  MeasuredFit result;
  Problem problem = problem_of(table, chip, &result.unanswered);
  hardware::Calibration& c = problem.calibration;
  c.id = chip.id;
  c.name = chip.name;
  c.chip = chip.id;
  const bool cpu = chip.family == "cpu";
  if (problem.has(KernelKind::matmul))
    cpu ? fit_cpu_products(problem, ranges) : fit_gpu_products(problem, start, ranges);
  if (cpu && problem.has(KernelKind::stream)) fit_streams(problem, ranges);
  if (problem.has(KernelKind::attention_forward)) fit_attention(problem, start, ranges.of("attention"));
  if (!problem.collectives.empty()) fit_ranks(problem, ranges, cores);
  add_spread(problem);
  result.cases = cases_of(problem);
  std::size_t fitted = 0;
  for (const ValidationCase& one : result.cases) fitted += one.fitted;
  const ValidationSummary all = summarise("all", result.cases);
  c.sources.push_back(source);
  c.sources.front().rows = fmt::format("{} fitted, {} not", fitted, all.n);
  c.sources.front().error =
      fmt::format("on rows not fitted: median {:.1f} %, 90 % within {:.1f} %", 100.0 * all.median, 100.0 * all.p90);
  result.calibration = std::move(c);
  return result;
}

std::vector<ValidationCase> check_measured(const CsvTable& table, const hardware::Chip& chip,
                                           const hardware::Calibration& calibration) {
  Problem problem = problem_of(table, chip, nullptr);
  problem.calibration = calibration;
  problem.harness.launch[stream] = launch_of(calibration);
  if (const auto& burst = calibration.burst) {
    problem.harness.launch[matmul] = burst->launch;
    problem.harness.gap = burst->gap;
    problem.harness.ramp = burst->ramp;
    launch_alike(problem.harness);
  }
  return unfitted_cases(problem);
}

LearnedFit learn_measured(const CsvTable& table, const hardware::Chip& chip, const hardware::Calibration& start,
                          const MeasuredRanges& ranges, const hardware::CalibrationSource& source) {
  LearnedFit out;
  Problem problem = problem_of(table, chip, nullptr);
  problem.calibration = start;
  for (KernelRow& row : problem.kernels) row.fitted = true;
  out.before = unfitted_cases(problem);
  hardware::Calibration& c = problem.calibration;
  const bool products = c.matmul && problem.has(KernelKind::matmul, true), attends = c.attention.has_value();
  if (products) learn_products(problem, ranges);
  if (attends) learn_attention(problem, ranges.of("attention"));
  out.after = unfitted_cases(problem);
  c.id = chip.id;
  c.name = chip.name;
  c.chip = chip.id;
  c.architectures.reset();
  // Sections name their sources by what stands first.
  SourceTable origins;
  const std::string origin = fmt::format("calibration/{}.toml ({})", chip.id, source.key);
  if (products) origins.add("matmul", origin);
  if (attends && std::any_of(problem.kernels.begin(), problem.kernels.end(),
                             [](const KernelRow& row) { return row.kernel.kind != KernelKind::matmul; }))
    origins.add("attention", origin);
  for (const auto& [key, from] : c.origins.all()) origins.add(key, from);
  c.origins = std::move(origins);
  std::erase_if(c.sources, [&](const hardware::CalibrationSource& one) { return one.key == source.key; });
  c.sources.push_back(source);
  c.sources.back().rows = fmt::format("{} kernels", out.after.size());
  c.sources.back().error = fmt::format("median {:.1f} %", 100.0 * summarise("all", out.after).median);
  out.calibration = std::move(c);
  return out;
}

std::vector<ValidationCase> check_learned(const CsvTable& table, const hardware::Chip& chip,
                                          const hardware::Calibration& calibration) {
  Problem problem = problem_of(table, chip, nullptr);
  problem.calibration = calibration;
  return unfitted_cases(problem);
}

}  // namespace assay::validate
