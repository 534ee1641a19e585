// The fit of the times in catalogue/steps/training.toml: all numbers at once, each by the rows it affects.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "assay/lab/fit/steps.h"

namespace assay::validate {
namespace {

constexpr int fit_rounds = 10;
constexpr std::size_t fused = 0, compiled = 1, eager = 2, xla = 3;
using Ways = std::array<double, kernel::StepCalibration::ways>;

Ways ways_from(const FitRange<double>& launched, const FitRange<double>& whole) {
  return {launched.start, launched.start, launched.start, whole.start};
}

/// Start values by family, for families with measured steps.
void start_families(kernel::StepCalibration& s) {
  s.measured.assign(s.families.size(), 0);
  s.product = s.attention = s.stream = std::vector<double>(s.families.size(), 1.0);
  for (std::size_t f = 0; f < s.families.size(); ++f) {
    const auto& training = s.families[f].training;
    if (!training) continue;
    s.measured[f] = 1;
    s.product[f] = training->product.start;
    s.attention[f] = training->attention.start;
    s.stream[f] = training->pointwise.start;
  }
}

/// Start values of the times; memory numbers keep their values.
void start_steps(const TrainingRanges& ranges, kernel::StepCalibration& s) {
  start_families(s);
  s.pointwise = {ranges.pointwise.start, 1, 1, ranges.pointwise_xla.start};
  s.cast = ways_from(ranges.cast, ranges.cast_xla);
  s.cast[compiled] = ranges.cast_compiled.start;
  s.loss = {ranges.loss.start, 1, 1, ranges.loss_xla.start};
  s.compiled_expert_traffic = ranges.expert_traffic_xla.start;
  s.launch = {ranges.launch.start, ranges.launch.start, ranges.launch.start, ranges.launch_xla.start};
  s.routing_launches = ranges.routing_launches.start;
  s.plain_attention = ranges.plain_attention.start;
  s.first_flash = ranges.first_flash.start;
  s.unaligned = ranges.unaligned.start;
  s.scan = ranges.scan.start;
  s.straggler = ranges.straggler.start;
  s.fixed = ranges.fixed.start;
}

using Touches = std::function<bool(const TrainingRow&)>;

/// A number, and the rows that it affects.
struct Tuned {
  TunedNumber number;
  Touches touches;
};
constexpr double step_stiffness = 0.00002;
Tuned touching(double& number, const FitRange<double>& range, Touches touches) {
  return {tuned(number, range, range.pull > 0.0 ? range.pull : step_stiffness), std::move(touches)};
}
Tuned touching(Seconds& number, const FitRange<Seconds>& range, Touches touches) {
  return {tuned(number, range, step_stiffness), std::move(touches)};
}

/// Rows of the families at these indices.
Touches rows_of(TrainingPredictor& predict, std::vector<std::size_t> families) {
  return [&predict, families = std::move(families)](const TrainingRow& row) {
    const kernel::Family* family = predict.family(row);
    return std::any_of(families.begin(), families.end(),
                       [&](std::size_t f) { return family == &predict.steps.families[f]; });
  };
}

/// Rows whose layers or loss run this way, on chips that launch kernels.
Touches rows_run(std::size_t way) {
  return [way](const TrainingRow& row) {
    const kernel::Fusion layers = row.software.step.fusion, loss = row.software.step.loss.value_or(layers);
    return !row.compiled_whole && (static_cast<std::size_t>(layers) == way || static_cast<std::size_t>(loss) == way);
  };
}

/// Kernels of each measured family.
void add_families(TrainingPredictor& predict, const TrainingRanges& ranges, std::vector<Tuned>& numbers) {
  kernel::StepCalibration& s = predict.steps;
  for (std::size_t f = 0; f < s.families.size(); ++f) {
    const kernel::Family& family = s.families[f];
    if (!family.training) continue;
    const Touches rows = rows_of(predict, {f});
    numbers.push_back(touching(s.product[f], family.training->product, rows));
    numbers.push_back(touching(s.attention[f], family.training->attention, rows));
    numbers.push_back(touching(s.stream[f], family.training->pointwise, rows));
    if (family.compiled_whole) numbers.push_back(touching(s.pointwise[xla], ranges.pointwise_xla, rows));
  }
}

/// Element-wise work, launches and casts by software.
void add_software(kernel::StepCalibration& s, const TrainingRanges& ranges, std::vector<Tuned>& numbers) {
  const auto narrow = [](const TrainingRow& row) { return facts(row.compute).bits <= 8; };
  for (const std::size_t way : {fused, compiled, eager}) {
    const Touches runs = rows_run(way);
    numbers.push_back(touching(s.launch[way], ranges.launch, runs));
    if (way != fused) continue;  // of the others, the bytes of each kind are counted
    numbers.push_back(touching(s.pointwise[way], ranges.pointwise, runs));
    numbers.push_back(touching(s.loss[way], ranges.loss, runs));
    numbers.push_back(touching(s.cast[way], ranges.cast,
                               [narrow, runs](const TrainingRow& row) { return narrow(row) && runs(row); }));
  }
  numbers.push_back(touching(s.cast[xla], ranges.cast_xla,
                             [narrow](const TrainingRow& row) { return narrow(row) && row.compiled_whole; }));
}

void add_experts(kernel::StepCalibration& s, const TrainingRanges& ranges, std::vector<Tuned>& numbers) {
  const auto routed = [](bool whole) {
    return [whole](const TrainingRow& row) { return kernel::has_experts(row.model) && row.compiled_whole == whole; };
  };
  numbers.push_back(touching(s.routing_launches, ranges.routing_launches, routed(false)));
  numbers.push_back(touching(s.compiled_expert_traffic, ranges.expert_traffic_xla, routed(true)));
}

std::vector<Tuned> fitted_numbers(const TrainingRanges& ranges, TrainingPredictor& predict) {
  kernel::StepCalibration& s = predict.steps;
  std::vector<Tuned> numbers;
  const auto plain = [](const TrainingRow& row) { return !row.software.flash; };
  const auto any = [](const TrainingRow&) { return true; };
  add_families(predict, ranges, numbers);
  numbers.push_back(touching(s.first_flash, ranges.first_flash,
                             [](const TrainingRow& row) { return row.software.step.first_flash; }));
  numbers.push_back(touching(s.plain_attention, ranges.plain_attention, plain));
  numbers.push_back(touching(s.unaligned, ranges.unaligned, plain));
  add_software(s, ranges, numbers);
  add_experts(s, ranges, numbers);
  numbers.push_back(
      touching(s.scan, ranges.scan, [](const TrainingRow& row) { return kernel::has_state_spaces(row.model); }));
  numbers.push_back(touching(s.straggler, ranges.straggler, any));
  numbers.push_back(touching(s.fixed, ranges.fixed, any));
  std::erase_if(numbers, [](const Tuned& one) { return !(one.number.parameter.low < one.number.parameter.high); });
  return numbers;
}

/// Rows as a fit sees them, with equal weight per group.
FittedRows training_rows(std::vector<TrainingRow>& rows, TrainingPredictor& predict) {
  FittedRows out;
  std::map<std::string, double> members;
  for (const TrainingRow& row : rows) members[row.group] += 1.0;
  for (const TrainingRow& row : rows)
    out.weights.push_back(1.0 / members[row.group] / static_cast<double>(members.size()));
  out.most_misfit = most_misfit;
  out.residual = [&](std::size_t i) {
    const Result<training::TrainingCost> cost = predict(rows[i]);
    if (!cost || !is_possible(rows[i], *cost)) return std::nan("");
    return std::log(cost->estimate / *rows[i].measured);
  };
  // What is recomputed follows from memory and hardly from the numbers: where rows do not say it, it is decided before
  // each round.
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].states_recompute) open.push_back(i);
  out.settle = [&, open] {
    for (const std::size_t i : open) {
      TrainingRow& row = rows[i];
      row.states_recompute = false;
      if (const Result<lower::Recompute> policy = predict.recompute(row)) row.strategy.recompute = *policy;
      row.states_recompute = true;
    }
  };
  return out;
}

}  // namespace

void fit_step_times(const std::vector<TrainingRow>& given, const TrainingRanges& ranges, TrainingPredictor& predict) {
  start_steps(ranges, predict.steps);
  std::vector<TrainingRow> rows = given;
  std::vector<TunedNumber> numbers;
  for (Tuned& one : fitted_numbers(ranges, predict)) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (one.touches(rows[i])) one.number.rows.push_back(i);
    numbers.push_back(std::move(one.number));
  }
  fit_at_once(numbers, training_rows(rows, predict), fit_rounds);
}

}  // namespace assay::validate
