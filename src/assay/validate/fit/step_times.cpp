// The fit of the times in catalogue/steps/training.toml: blocks of numbers in turn, each to the rows that it touches.
#include <algorithm>
#include <cmath>

#include "assay/validate/fit/steps.h"

namespace assay::validate {
namespace {

constexpr std::size_t ampere = 0, hopper = 1, blackwell = 2, tpu = 3, other = 4;
constexpr std::size_t fused = 0, compiled = 1, eager = 2, way_of_tpu = 3;

/// Where the fit starts: kernels do as they do alone, bytes are the fewest or nearly so, half of what may be hidden is
/// waited for.
void make_neutral(estimate::StepCalibration& s) {
  s.product = s.attention = s.stream = {1, 1, 1, 1, 1};
  s.pointwise = s.cast = s.loss = {1.5, 1.5, 1.5, 1.0};
  s.tensor_overlapped = {1.0, 0.5, 0.5, 0.5, 0.5};
  s.beside_waited = 0.5;
  s.launch = {20_us, 20_us, 20_us, Seconds(0)};
  s.plain_attention = s.first_flash = s.unaligned = 1.0, s.composed = 1.5;
  s.expert_product = s.expert_traffic = {1, 1, 1, 1}, s.fused_expert_product = 1.0;
  s.scan = 10.0, s.expert_waited = 0.5, s.context_waited = 0.5;
  s.omni_path = 0.5;
  s.contention = 0.5, s.gradients_waited = 0.5, s.straggler = 0.005, s.fixed = 5e-3 * 1_s;
}

/// A number that is fitted, and a pull to where it starts, so that what the rows do not tell stays.
struct Tuned {
  FitParameter parameter;
  std::function<double()> value;
  double stiffness = 0.00002;  ///< what a factor of 1.5 is worth in error

  double strangeness() const {
    const double off = std::log(value() / parameter.start) / std::log(1.5);
    return stiffness * off * off;
  }
};
Tuned tuned(double& number, double low, double high) {
  return {fit(number, low, high), [&number] { return number; }};
}
/// Kernels were measured by themselves, so that a step may move them a little only: 10 % are worth 0.1 % of error.
Tuned measured(double& number) {
  Tuned stiff = tuned(number, 0.8, 1.4);
  stiff.stiffness = 0.018;
  return stiff;
}
Tuned tuned(Seconds& number, Seconds low, Seconds high) {
  return {fit(number, low, high), [&number] { return number.value(); }};
}

/// One number for all software of GPUs, whose kernels for experts are the same.
Tuned of_gpus(std::array<double, estimate::StepCalibration::ways>& numbers, double low, double high) {
  double& first = numbers[fused];
  return {{first, low, high, [&numbers](double x) { numbers[fused] = numbers[compiled] = numbers[eager] = x; }},
          [&first] { return first; }};
}

struct FitBlock {
  std::vector<Tuned> numbers;
  std::function<bool(const TrainingRow&)> touches;
};

std::vector<FitBlock> fit_blocks(TrainingPredictor& predict) {
  estimate::StepCalibration& s = predict.steps;
  const auto of = [&predict](std::size_t family) {
    return [&predict, family](const TrainingRow& row) {
      return predict.family(row) == static_cast<estimate::StepFamily>(family);
    };
  };
  const auto run = [&predict](std::size_t way) {
    return [&predict, way](const TrainingRow& row) {
      const estimate::Fusion layers = row.software.fusion, loss = row.software.loss.value_or(layers);
      return predict.family(row) != estimate::StepFamily::tpu &&
             (static_cast<std::size_t>(layers) == way || static_cast<std::size_t>(loss) == way);
    };
  };
  // Element-wise kernels of Ampere were measured in other libraries only.
  const auto kernels = [&](std::size_t f) {
    FitBlock block{{measured(s.product[f]), measured(s.attention[f])}, of(f)};
    if (f == ampere) block.numbers.push_back(tuned(s.stream[f], 0.5, 1.5));
    return block;
  };
  const auto software = [&](std::size_t way) {
    FitBlock block{
        {tuned(s.pointwise[way], 1.0, 6.0), tuned(s.loss[way], 1.0, 10.0), tuned(s.launch[way], 1_us, 200_us)},
        run(way)};
    if (way == eager) block.numbers.push_back(tuned(s.composed, 0.7, 10.0));
    return block;
  };
  const auto casts = [&](std::size_t way) {
    return FitBlock{{tuned(s.cast[way], 0.1, 6.0)}, [&predict, way, runs = run(way)](const TrainingRow& row) {
                      return facts(row.compute).bits <= 8 &&
                             (way == way_of_tpu ? predict.family(row) == estimate::StepFamily::tpu : runs(row));
                    }};
  };
  // The same software overlaps tensor-parallel collectives on both families that have it.
  double& both = s.tensor_overlapped[hopper];
  const FitBlock overlapped{
      {{{both, 0.05, 1.0, [&s](double x) { s.tensor_overlapped[hopper] = s.tensor_overlapped[blackwell] = x; }},
        [&both] { return both; }}},
      [of](const TrainingRow& row) { return of(hopper)(row) || of(blackwell)(row); }};
  return {
      kernels(ampere),
      kernels(hopper),
      kernels(blackwell),
      // Nobody measured kernels of other chips by themselves.
      {{tuned(s.product[other], 0.7, 3.0), tuned(s.attention[other], 0.7, 3.0)}, of(other)},
      // Of TPUs nobody measured attention.
      {{measured(s.product[tpu]), tuned(s.attention[tpu], 0.3, 3.0), tuned(s.pointwise[way_of_tpu], 0.2, 3.0)},
       of(tpu)},
      {{tuned(s.first_flash, 0.5, 3.0)}, [](const TrainingRow& row) { return row.software.first_flash; }},
      {{tuned(s.plain_attention, 0.5, 3.0), tuned(s.unaligned, 0.5, 10.0)},
       [](const TrainingRow& row) { return !row.flash; }},
      software(fused),
      software(compiled),
      software(eager),
      casts(fused),
      casts(compiled),
      casts(way_of_tpu),
      {{tuned(s.beside_waited, 0.05, 1.0)},
       [](const TrainingRow& row) {
         return row.software.tensor_overlap != estimate::TensorOverlap::none && row.strategy.parallelism.tensor > 1;
       }},
      overlapped,
      {{tuned(s.tensor_overlapped[tpu], 0.05, 1.0)}, of(tpu)},
      {{tuned(s.contention, 0.01, 1.0)}, [](const TrainingRow& row) { return row.strategy.parallelism.fsdp > 1; }},
      {{of_gpus(s.expert_product, 0.8, 5.0), of_gpus(s.expert_traffic, 0.7, 20.0), tuned(s.expert_waited, 0.05, 1.0)},
       [of](const TrainingRow& row) { return estimate::has_experts(row.model) && !of(tpu)(row); }},
      {{tuned(s.fused_expert_product, 0.8, 5.0)}, [](const TrainingRow& row) { return row.software.fused_experts; }},
      {{tuned(s.expert_product[way_of_tpu], 0.8, 3.0), tuned(s.expert_traffic[way_of_tpu], 0.7, 20.0)},
       [of](const TrainingRow& row) { return estimate::has_experts(row.model) && of(tpu)(row); }},
      {{tuned(s.scan, 1.0, 200.0)}, [](const TrainingRow& row) { return estimate::has_state_spaces(row.model); }},
      {{tuned(s.context_waited, 0.05, 1.0)},
       [](const TrainingRow& row) { return row.strategy.parallelism.context > 1; }},
      {{tuned(s.gradients_waited, 0.01, 1.0)},
       [](const TrainingRow& row) { return row.overlap && row.strategy.parallelism.data > 1; }},
      {{tuned(s.omni_path, 0.1, 1.0)}, [](const TrainingRow& row) { return row.omni_path; }},
      {{tuned(s.straggler, 1e-4, 0.02), tuned(s.fixed, 10_us, 60000_us)}, [](const TrainingRow&) { return true; }}};
}

/// Starts from the best of a few values over the whole range, one number after the other: where a number has no effect
/// yet (a floor that nothing touches) the simplex would not find one.
void scan(const std::vector<Tuned>& numbers, std::vector<FitParameter>& parameters,
          const std::function<double()>& objective) {
  constexpr int steps = 6;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    FitParameter& parameter = parameters[i];
    double best = objective(), at = parameter.start;
    for (int step = 1; step < steps; ++step) {
      const double x = parameter.low * std::pow(parameter.high / parameter.low, static_cast<double>(step) / steps);
      parameter.set(x);
      if (const double value = objective(); value < best) best = value, at = x;
    }
    parameter.start = at;
    parameter.set(at);
  }
}

}  // namespace

void fit_step_times(const std::vector<TrainingRow>& rows, TrainingPredictor& predict) {
  estimate::StepCalibration& s = predict.steps;
  make_neutral(s);
  const std::vector<FitBlock> blocks = fit_blocks(predict);
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
          if (const Result<training::TrainingCost> cost = predict(*row)) mean.add(row->group, misfit(*cost, *row));
        double sum = mean.sum() / static_cast<double>(groups.groups());
        for (const Tuned& number : block.numbers) sum += number.strangeness();
        return sum;
      };
      if (round == 0) scan(block.numbers, parameters, objective);
      minimise(parameters, objective, 30 + 20 * static_cast<int>(parameters.size()));
    }
  // Families without steps of their own do as the mean of those that have.
  if (std::none_of(rows.begin(), rows.end(),
                   [&](const TrainingRow& row) { return predict.family(row) == estimate::StepFamily::other; }))
    s.product[other] = (s.product[ampere] + s.product[hopper] + s.product[blackwell]) / 3.0;
  s.tensor_overlapped[other] = s.tensor_overlapped[hopper];
}

}  // namespace assay::validate
