// The fit of the times in catalogue/steps/training.toml: blocks of numbers in turn, each to the rows it affects.
#include <algorithm>
#include <array>
#include <cmath>

#include "assay/validate/fit/steps.h"

namespace assay::validate {
namespace {

constexpr std::size_t fused = 0, compiled = 1, eager = 2, xla = 3;
using Ways = std::array<double, estimate::StepCalibration::ways>;

Ways ways_from(const FitRange<double>& launched, const FitRange<double>& whole) {
  return {launched.start, launched.start, launched.start, whole.start};
}

/// Start values by family, for families with measured steps.
void start_families(estimate::StepCalibration& s) {
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
void start_steps(const TrainingRanges& ranges, estimate::StepCalibration& s) {
  start_families(s);
  s.pointwise = ways_from(ranges.pointwise, ranges.pointwise_xla);
  s.cast = ways_from(ranges.cast, ranges.cast_xla);
  s.loss = ways_from(ranges.loss, ranges.loss_xla);
  s.expert_product = ways_from(ranges.expert_product, ranges.expert_product_xla);
  s.expert_traffic = ways_from(ranges.expert_traffic, ranges.expert_traffic_xla);
  s.launch = {ranges.launch.start, ranges.launch.start, ranges.launch.start, ranges.launch_xla.start};
  s.fused_expert_product = ranges.fused_expert_product.start;
  s.plain_attention = ranges.plain_attention.start;
  s.first_flash = ranges.first_flash.start;
  s.unaligned = ranges.unaligned.start;
  s.composed = ranges.composed.start;
  s.scan = ranges.scan.start;
  s.straggler = ranges.straggler.start;
  s.fixed = ranges.fixed.start;
}

/// A fitted number, with a pull towards its start value for when the rows do not determine it.
struct Tuned {
  FitParameter parameter;
  std::function<double()> value;
  double stiffness = 0.00002;  ///< error cost of a factor of 1.5

  double strangeness() const {
    const double off = std::log(value() / parameter.start) / std::log(1.5);
    return stiffness * off * off;
  }
};
Tuned tuned(double& number, const FitRange<double>& range) {
  Tuned out{fit(number, range), [&number] { return number; }};
  if (range.pull > 0.0) out.stiffness = range.pull;
  return out;
}
Tuned tuned(Seconds& number, const FitRange<Seconds>& range) {
  return {fit(number, range), [&number] { return number.value(); }};
}

/// One number for all software that launches kernels, since the expert kernels are the same.
Tuned of_launched(Ways& numbers, const FitRange<double>& range) {
  double& first = numbers[fused];
  return {
      {first, range.low, range.high, [&numbers](double x) { numbers[fused] = numbers[compiled] = numbers[eager] = x; }},
      [&first] { return first; }};
}

struct FitBlock {
  std::vector<Tuned> numbers;
  std::function<bool(const TrainingRow&)> touches;
};

using Touches = std::function<bool(const TrainingRow&)>;

/// Rows of the families at these indices.
Touches rows_of(TrainingPredictor& predict, std::vector<std::size_t> families) {
  return [&predict, families = std::move(families)](const TrainingRow& row) {
    const estimate::Family* family = predict.family(row);
    return std::any_of(families.begin(), families.end(),
                       [&](std::size_t f) { return family == &predict.steps.families[f]; });
  };
}

/// Rows whose layers or loss run this way, on chips that launch kernels.
Touches rows_run(std::size_t way) {
  return [way](const TrainingRow& row) {
    const estimate::Fusion layers = row.software.step.fusion, loss = row.software.step.loss.value_or(layers);
    return !row.compiled_whole && (static_cast<std::size_t>(layers) == way || static_cast<std::size_t>(loss) == way);
  };
}

/// Kernels of each measured family.
void add_families(TrainingPredictor& predict, const TrainingRanges& ranges, std::vector<FitBlock>& blocks) {
  estimate::StepCalibration& s = predict.steps;
  for (std::size_t f = 0; f < s.families.size(); ++f) {
    const estimate::Family& family = s.families[f];
    if (!family.training) continue;
    FitBlock block{{tuned(s.product[f], family.training->product), tuned(s.attention[f], family.training->attention)},
                   rows_of(predict, {f})};
    if (family.training->pointwise.is_fitted()) block.numbers.push_back(tuned(s.stream[f], family.training->pointwise));
    if (family.compiled_whole) block.numbers.push_back(tuned(s.pointwise[xla], ranges.pointwise_xla));
    blocks.push_back(std::move(block));
  }
}

/// Element-wise work, launches and casts by software.
void add_software(estimate::StepCalibration& s, const TrainingRanges& ranges, std::vector<FitBlock>& blocks) {
  for (const std::size_t way : {fused, compiled, eager}) {
    FitBlock block{{tuned(s.pointwise[way], ranges.pointwise), tuned(s.loss[way], ranges.loss),
                    tuned(s.launch[way], ranges.launch)},
                   rows_run(way)};
    if (way == eager) block.numbers.push_back(tuned(s.composed, ranges.composed));
    blocks.push_back(std::move(block));
  }
  const auto narrow = [](const TrainingRow& row) { return facts(row.compute).bits <= 8; };
  for (const std::size_t way : {fused, compiled})
    blocks.push_back({{tuned(s.cast[way], ranges.cast)},
                      [narrow, runs = rows_run(way)](const TrainingRow& row) { return narrow(row) && runs(row); }});
  blocks.push_back({{tuned(s.cast[xla], ranges.cast_xla)},
                    [narrow](const TrainingRow& row) { return narrow(row) && row.compiled_whole; }});
}

void add_experts(estimate::StepCalibration& s, const TrainingRanges& ranges, std::vector<FitBlock>& blocks) {
  const auto routed = [](bool whole) {
    return [whole](const TrainingRow& row) { return estimate::has_experts(row.model) && row.compiled_whole == whole; };
  };
  blocks.push_back(
      {{of_launched(s.expert_product, ranges.expert_product), of_launched(s.expert_traffic, ranges.expert_traffic)},
       routed(false)});
  blocks.push_back({{tuned(s.fused_expert_product, ranges.fused_expert_product)},
                    [](const TrainingRow& row) { return row.software.step.fused_experts; }});
  blocks.push_back({{tuned(s.expert_product[xla], ranges.expert_product_xla),
                     tuned(s.expert_traffic[xla], ranges.expert_traffic_xla)},
                    routed(true)});
}

std::vector<FitBlock> fit_blocks(const TrainingRanges& ranges, TrainingPredictor& predict) {
  estimate::StepCalibration& s = predict.steps;
  std::vector<FitBlock> blocks;
  const auto add = [&](std::vector<Tuned> numbers, Touches touches) {
    blocks.push_back({std::move(numbers), std::move(touches)});
  };
  add_families(predict, ranges, blocks);
  add({tuned(s.first_flash, ranges.first_flash)}, [](const TrainingRow& row) { return row.software.step.first_flash; });
  add({tuned(s.plain_attention, ranges.plain_attention), tuned(s.unaligned, ranges.unaligned)},
      [](const TrainingRow& row) { return !row.software.flash; });
  add_software(s, ranges, blocks);
  add_experts(s, ranges, blocks);
  add({tuned(s.scan, ranges.scan)}, [](const TrainingRow& row) { return estimate::has_state_spaces(row.model); });
  add({tuned(s.straggler, ranges.straggler), tuned(s.fixed, ranges.fixed)}, [](const TrainingRow&) { return true; });
  return blocks;
}

/// Starts from the best of a few values over the whole range, one number at a time: the simplex cannot find its way
/// while a number has no effect (a floor that never applies).
void scan(const std::vector<Tuned>& numbers, std::vector<FitParameter>& parameters,
          const std::function<double()>& objective) {
  constexpr int steps = 6;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    FitParameter& parameter = parameters[i];
    double best = objective(), at = parameter.start;
    for (int step = 1; step < steps; ++step) {
      const double x = parameter.low * std::pow(parameter.high / parameter.low, static_cast<double>(step) / steps);
      parameter.set(x);
      if (const double value = objective(); value < best) {
        best = value;
        at = x;
      }
    }
    parameter.start = at;
    parameter.set(at);
  }
}

}  // namespace

void fit_step_times(const std::vector<TrainingRow>& rows, const TrainingRanges& ranges, TrainingPredictor& predict) {
  estimate::StepCalibration& s = predict.steps;
  start_steps(ranges, s);
  const std::vector<FitBlock> blocks = fit_blocks(ranges, predict);
  GroupMean groups;
  for (const TrainingRow& row : rows) groups.add(row.group, 0.0);
  for (int round = 0; round < 3; ++round)
    for (const FitBlock& block : blocks) {
      std::vector<const TrainingRow*> touched;
      for (const TrainingRow& row : rows)
        if (block.touches(row)) touched.push_back(&row);
      if (touched.empty()) continue;
      std::vector<FitParameter> parameters;
      for (const Tuned& number : block.numbers) {
        parameters.push_back(number.parameter);
        parameters.back().start = number.value();
      }
      const auto objective = [&] {
        GroupMean mean;
        for (const TrainingRow* row : touched)
          if (const Result<training::TrainingCost> cost = predict(*row); cost && is_possible(*row, *cost))
            mean.add(row->group, misfit(*cost, *row));
        double sum = mean.sum() / static_cast<double>(groups.groups());
        for (const Tuned& number : block.numbers) sum += number.strangeness();
        return sum;
      };
      if (round == 0) scan(block.numbers, parameters, objective);
      minimise(parameters, objective, 30 + 20 * static_cast<int>(parameters.size()));
    }
}

}  // namespace assay::validate
