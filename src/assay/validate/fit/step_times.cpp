// The fit of the times in catalogue/steps/training.toml: all numbers at once, each by the rows it affects.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "assay/validate/fit/steps.h"

namespace assay::validate {
namespace {

constexpr int fit_rounds = 10;
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

/// A fitted number, the rows it affects, and a pull towards its start value for when they do not determine it.
struct Tuned {
  FitParameter parameter;
  std::function<double()> value;
  Touches touches;
  double stiffness = 0.00002;  ///< error cost of a factor of 1.5

  double off() const { return std::log(value() / parameter.start) / std::log(1.5); }
  double strangeness() const { return stiffness * off() * off(); }
};
Tuned tuned(double& number, const FitRange<double>& range, Touches touches) {
  Tuned out{fit(number, range), [&number] { return number; }, std::move(touches)};
  if (range.pull > 0.0) out.stiffness = range.pull;
  return out;
}
Tuned tuned(Seconds& number, const FitRange<Seconds>& range, Touches touches) {
  return {fit(number, range), [&number] { return number.value(); }, std::move(touches)};
}

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
void add_families(TrainingPredictor& predict, const TrainingRanges& ranges, std::vector<Tuned>& numbers) {
  estimate::StepCalibration& s = predict.steps;
  for (std::size_t f = 0; f < s.families.size(); ++f) {
    const estimate::Family& family = s.families[f];
    if (!family.training) continue;
    const Touches rows = rows_of(predict, {f});
    numbers.push_back(tuned(s.product[f], family.training->product, rows));
    numbers.push_back(tuned(s.attention[f], family.training->attention, rows));
    numbers.push_back(tuned(s.stream[f], family.training->pointwise, rows));
    if (family.compiled_whole) numbers.push_back(tuned(s.pointwise[xla], ranges.pointwise_xla, rows));
  }
}

/// Element-wise work, launches and casts by software.
void add_software(estimate::StepCalibration& s, const TrainingRanges& ranges, std::vector<Tuned>& numbers) {
  const auto narrow = [](const TrainingRow& row) { return facts(row.compute).bits <= 8; };
  for (const std::size_t way : {fused, compiled, eager}) {
    const Touches runs = rows_run(way);
    numbers.push_back(tuned(s.launch[way], ranges.launch, runs));
    if (way != fused) continue;  // of the others, the bytes of each kind are counted
    numbers.push_back(tuned(s.pointwise[way], ranges.pointwise, runs));
    numbers.push_back(tuned(s.loss[way], ranges.loss, runs));
    numbers.push_back(
        tuned(s.cast[way], ranges.cast, [narrow, runs](const TrainingRow& row) { return narrow(row) && runs(row); }));
  }
  numbers.push_back(tuned(s.cast[xla], ranges.cast_xla,
                          [narrow](const TrainingRow& row) { return narrow(row) && row.compiled_whole; }));
}

void add_experts(estimate::StepCalibration& s, const TrainingRanges& ranges, std::vector<Tuned>& numbers) {
  const auto routed = [](bool whole) {
    return [whole](const TrainingRow& row) { return estimate::has_experts(row.model) && row.compiled_whole == whole; };
  };
  numbers.push_back(tuned(s.routing_launches, ranges.routing_launches, routed(false)));
  numbers.push_back(tuned(s.compiled_expert_traffic, ranges.expert_traffic_xla, routed(true)));
}

std::vector<Tuned> fitted_numbers(const TrainingRanges& ranges, TrainingPredictor& predict) {
  estimate::StepCalibration& s = predict.steps;
  std::vector<Tuned> numbers;
  const auto plain = [](const TrainingRow& row) { return !row.software.flash; };
  const auto any = [](const TrainingRow&) { return true; };
  add_families(predict, ranges, numbers);
  numbers.push_back(
      tuned(s.first_flash, ranges.first_flash, [](const TrainingRow& row) { return row.software.step.first_flash; }));
  numbers.push_back(tuned(s.plain_attention, ranges.plain_attention, plain));
  numbers.push_back(tuned(s.unaligned, ranges.unaligned, plain));
  add_software(s, ranges, numbers);
  add_experts(s, ranges, numbers);
  numbers.push_back(
      tuned(s.scan, ranges.scan, [](const TrainingRow& row) { return estimate::has_state_spaces(row.model); }));
  numbers.push_back(tuned(s.straggler, ranges.straggler, any));
  numbers.push_back(tuned(s.fixed, ranges.fixed, any));
  std::erase_if(numbers, [](const Tuned& number) { return !(number.parameter.low < number.parameter.high); });
  return numbers;
}

/// The fit of all numbers at once: the misfits as linear functions of the numbers' logarithms, near where they are, are
/// minimised within a distance; then again from there.
class StepFit {
 public:
  StepFit(const std::vector<TrainingRow>& rows, std::vector<Tuned> numbers, TrainingPredictor& predict)
      : rows_(rows), numbers_(std::move(numbers)), predict_(predict) {
    std::map<std::string, double> members;
    for (const TrainingRow& row : rows_) members[row.group] += 1.0;
    for (const TrainingRow& row : rows_) open_.push_back(!row.states_recompute);
    for (const TrainingRow& row : rows_)
      weights_.push_back(1.0 / members[row.group] / static_cast<double>(members.size()));
    for (const Tuned& number : numbers_) {
      touched_.emplace_back();
      for (std::size_t i = 0; i < rows_.size(); ++i)
        if (number.touches(rows_[i])) touched_.back().push_back(i);
    }
  }

  /// Starts each number at the best of a few values over its range: no slope tells of a floor that never applies.
  void scan() {
    constexpr int steps = 6;
    settle();
    residuals_ = residuals();
    for (std::size_t j = 0; j < numbers_.size(); ++j) {
      const FitParameter& parameter = numbers_[j].parameter;
      double at = numbers_[j].value(), best = objective(residuals_);
      std::vector<double> found = residuals_;
      for (int step = 1; step < steps; ++step) {
        const double x = parameter.low * std::pow(parameter.high / parameter.low, static_cast<double>(step) / steps);
        parameter.set(x);
        std::vector<double> tried = residuals_;
        for (const std::size_t i : touched_[j]) tried[i] = residual(i);
        if (const double value = objective(tried); value < best) {
          best = value;
          at = x;
          found = tried;
        }
      }
      parameter.set(at);
      residuals_ = found;
    }
  }

  void run(int rounds) {
    double reach = 0.3;
    for (int round = 0; round < rounds && reach > 0.003; ++round) {
      settle();
      residuals_ = residuals();
      const double before = objective(residuals_);
      const std::vector<double> from = values(), step = best_step(slopes(), reach);
      set(from, step, 1.0);
      double after = objective(residuals());
      if (!(after < before)) {
        set(from, step, 0.3);
        after = objective(residuals());
        reach *= 0.4;
      }
      if (!(after < before)) set(from, step, 0.0);
    }
  }

 private:
  using Row = std::vector<double>;

  /// What is recomputed follows from memory and hardly from the numbers: where rows do not say it, it is decided before
  /// each step.
  void settle() {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      TrainingRow& row = rows_[i];
      if (!open_[i]) continue;
      row.states_recompute = false;
      if (const Result<lower::Recompute> policy = predict_.recompute(row)) row.strategy.recompute = *policy;
      row.states_recompute = true;
    }
  }

  double residual(std::size_t i) {
    const Result<training::TrainingCost> cost = predict_(rows_[i]);
    if (!cost || !is_possible(rows_[i], *cost)) return std::nan("");
    return std::log(cost->estimate / *rows_[i].measured);
  }
  Row residuals() {
    Row out;
    for (std::size_t i = 0; i < rows_.size(); ++i) out.push_back(residual(i));
    return out;
  }
  double objective(const Row& residuals) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (!std::isnan(residuals[i])) sum += weights_[i] * std::min(most_misfit, std::abs(residuals[i]));
    for (const Tuned& number : numbers_) sum += number.strangeness();
    return sum;
  }
  Row values() const {
    Row out;
    for (const Tuned& number : numbers_) out.push_back(std::log(number.value()));
    return out;
  }
  void set(const Row& from, const Row& step, double share) {
    for (std::size_t j = 0; j < numbers_.size(); ++j) {
      const FitParameter& parameter = numbers_[j].parameter;
      parameter.set(std::clamp(std::exp(from[j] + share * step[j]), parameter.low, parameter.high));
    }
  }

  /// By number, of the rows it touches.
  std::vector<Row> slopes() {
    constexpr double aside = 0.03;
    std::vector<Row> out;
    for (std::size_t j = 0; j < numbers_.size(); ++j) {
      const double at = numbers_[j].value();
      const double sign = at * std::exp(aside) <= numbers_[j].parameter.high ? 1.0 : -1.0;
      numbers_[j].parameter.set(at * std::exp(sign * aside));
      Row& slope = out.emplace_back(rows_.size(), 0.0);
      for (const std::size_t i : touched_[j])
        if (const double moved = residual(i); !std::isnan(moved) && !std::isnan(residuals_[i]))
          slope[i] = (moved - residuals_[i]) / (sign * aside);
      numbers_[j].parameter.set(at);
    }
    return out;
  }

  /// The least weighted sum of absolute values by squares that are weighted anew; no number moves further than `reach`
  /// or beyond its bounds.
  Row best_step(const std::vector<Row>& slopes, double reach) const {
    const std::size_t n = numbers_.size();
    Row step(n, 0.0), left = residuals_;
    constexpr double smooth = 0.004;
    for (int round = 0; round < 40; ++round) {
      std::vector<Row> matrix(n, Row(n + 1, 0.0));
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        if (std::isnan(left[i]) || std::abs(residuals_[i]) > most_misfit) continue;
        const double weight = weights_[i] / std::max(smooth, std::abs(left[i]));
        for (std::size_t j = 0; j < n; ++j) {
          if (slopes[j][i] == 0.0) continue;
          for (std::size_t k = 0; k < n; ++k) matrix[j][k] += weight * slopes[j][i] * slopes[k][i];
          matrix[j][n] -= weight * slopes[j][i] * residuals_[i];
        }
      }
      constexpr double per_log = 2.0 / (0.405465 * 0.405465);  // of the pull, by the logarithm of 1.5
      for (std::size_t j = 0; j < n; ++j) {
        matrix[j][j] += numbers_[j].stiffness * per_log + 1e-9;
        matrix[j][n] -= numbers_[j].stiffness * per_log * numbers_[j].off() * 0.405465;
      }
      step = within(matrix, reach);
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        left[i] = residuals_[i];
        for (std::size_t j = 0; j < n; ++j) left[i] += slopes[j][i] * step[j];
      }
    }
    return step;
  }

  /// Solves for a step inside of its box, one coordinate after the other.
  Row within(const std::vector<Row>& matrix, double reach) const {
    const std::size_t n = numbers_.size();
    Row step(n, 0.0);
    for (int round = 0; round < 60; ++round)
      for (std::size_t j = 0; j < n; ++j) {
        double rest = matrix[j][n];
        for (std::size_t k = 0; k < n; ++k)
          if (k != j) rest -= matrix[j][k] * step[k];
        const double at = std::log(numbers_[j].value());
        const double low = std::max(-reach, std::log(numbers_[j].parameter.low) - at),
                     high = std::min(reach, std::log(numbers_[j].parameter.high) - at);
        step[j] = std::clamp(rest / matrix[j][j], std::min(low, 0.0), std::max(high, 0.0));
      }
    return step;
  }

  std::vector<TrainingRow> rows_;
  std::vector<Tuned> numbers_;
  TrainingPredictor& predict_;
  Row weights_, residuals_;
  std::vector<std::vector<std::size_t>> touched_;
  std::vector<char> open_;  ///< by row: 1 where it does not say what is recomputed
};

}  // namespace

void fit_step_times(const std::vector<TrainingRow>& rows, const TrainingRanges& ranges, TrainingPredictor& predict) {
  start_steps(ranges, predict.steps);
  StepFit search(rows, fitted_numbers(ranges, predict), predict);
  search.scan();
  search.run(fit_rounds);
}

}  // namespace assay::validate
