// The fit of catalogue/steps/training.toml to measured steps: which rows it uses, and the file it writes.
#include "assay/lab/fit/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "assay/base/parallel.h"
#include "assay/hardware/calibration.h"
#include "assay/lab/fit/fold_fits.h"
#include "assay/lab/fit/unseen.h"
#include "assay/lab/validate/rows/tables.h"

namespace assay::validate {
namespace {

constexpr std::size_t training_rows_of_group = 10;

/// At most this many rows of each group, spread evenly over the table.
std::vector<TrainingRow> thinned(const std::map<std::string, std::vector<const TrainingRow*>>& groups) {
  std::vector<TrainingRow> out;
  for (const auto& [group, members] : groups) {
    const std::size_t n = std::min(training_rows_of_group, members.size());
    for (std::size_t i = 0; i < n; ++i) out.push_back(*members[i * members.size() / n]);
  }
  return out;
}

template <class Take>
std::vector<TrainingRow> chosen(const std::vector<TrainingRow>& all, Take take) {
  std::map<std::string, std::vector<const TrainingRow*>> groups;
  for (const TrainingRow& row : all)
    if (take(row)) groups[row.group].push_back(&row);
  return thinned(groups);
}

double misfit_of(double predicted, double measured) {
  return std::min(most_misfit, std::abs(std::log(predicted / measured)));
}

}  // namespace

double misfit(const training::TrainingCost& cost, const TrainingRow& row) {
  return misfit_of(cost.estimate.value(), row.measured->value());
}

double GroupMean::sum() const {
  double total = 0.0;
  for (const auto& [group, sums] : groups_) total += sums.first / sums.second;
  return total;
}

namespace {

/// The steps of all tables, our own ones first.
struct StepRows {
  std::vector<TrainingRow> rows;
  std::size_t own = 0;
};
Result<StepRows> all_step_rows(const FitInput& input) {
  ASSAY_TRY(own_table, catalogue_table(input.catalogue, "validation/h200_train.csv"));
  ASSAY_TRY(rows, read_h200_train(own_table, input.catalogue));
  const std::size_t own = rows.rows.size();
  const auto take = [&](const CsvTable& table) -> Result<void> {
    ASSAY_TRY(more, read_training(table, input.catalogue));
    std::move(more.rows.begin(), more.rows.end(), std::back_inserter(rows.rows));
    return {};
  };
  ASSAY_TRY(published, catalogue_table(input.catalogue, "validation/published_training.csv"));
  ASSAY_CHECK(take(published));
  if (input.data) {
    ASSAY_TRY(table, data_table(*input.data, "third_party/training.csv"));
    ASSAY_CHECK(take(table));
  }
  return StepRows{std::move(rows.rows), own};
}

std::vector<TrainingRow> seen(std::vector<TrainingRow> rows, const FitInput& input) {
  std::erase_if(rows, [&](const TrainingRow& row) { return !input.sees(row.fold); });
  return rows;
}

}  // namespace

Result<std::vector<TrainingRow>> step_rows(const FitInput& input) {
  ASSAY_TRY(all, all_step_rows(input));
  return seen(std::move(all.rows), input);
}

std::vector<TrainingRow> rows_for_times(const std::vector<TrainingRow>& all) {
  return chosen(all, [](const TrainingRow& row) { return row.typical && row.measured; });
}

std::vector<TrainingRow> rows_for_memory(const std::vector<TrainingRow>& all) {
  return chosen(all, [](const TrainingRow& row) { return row.trusted && row.peak; });
}

double step_misfit(const std::vector<TrainingRow>& rows, TrainingPredictor& predict) {
  GroupMean mean;
  for (const TrainingRow& row : rows)
    if (const Result<training::TrainingCost> cost = predict(row); cost && is_possible(row, *cost))
      mean.add(row.group, misfit(*cost, row));
  return mean.mean();
}

double memory_misfit(const std::vector<TrainingRow>& rows, TrainingPredictor& predict) {
  GroupMean mean;
  for (const TrainingRow& row : rows) {
    const Result<training::TrainingCost> cost = predict(row);
    if (!cost || !is_possible(row, *cost)) continue;
    mean.add(row.group, misfit_of(peak_memory(cost->memory, row.view).value(), row.peak->value()));
    if (row.reserved)
      mean.add(row.group + " reserved", misfit_of(cost->memory.reserved().value(), row.reserved->value()));
  }
  return mean.mean();
}

namespace {

/// Our own steps are of one chip and one program: they say as much about others as one group does.
std::string interval_group(const TrainingRow& row) { return row.framework.empty() ? "own" : row.group; }
std::string source_of(const TrainingRow& row) {
  const std::string group = interval_group(row);
  return group.substr(0, group.find(','));
}

/// Intervals from the errors of held-out rows: each is predicted by a fit made without its fold (cross-conformal
/// prediction). None of `left_out` counts, and no row of a chip whose family that fit has not seen.
Result<void> add_intervals(std::span<const hardware::Catalogue> catalogues,
                           const FoldFits<numbers::StepCalibration>& fits, std::size_t left_out,
                           const std::vector<TrainingRow>& timed, const std::vector<TrainingRow>& held,
                           numbers::StepCalibration& steps) {
  std::vector<numbers::Residual> times, peaks;
  FamiliesSeen seen;
  ASSAY_TRY(places, TrainingPredictor::make(catalogues[left_out]));
  for (const TrainingRow& row : timed) seen.add(places.family(row), source_of(row));
  for (std::size_t fold = 0; fold < folds; ++fold) {
    if (fold == left_out) continue;
    ASSAY_TRY(predict, TrainingPredictor::make(catalogues[fold]));
    predict.steps = fits[fold];
    const auto residual = [&](const TrainingRow& row, double predicted, double measured, bool of_memory) {
      const hardware::Cluster& cluster = *predict.cluster(row);
      const numbers::Family* family = predict.family(row);
      return numbers::Residual{
          interval_group(row),
          std::log(predicted / measured),
          of_memory ? numbers::memory_classes(family, cluster) : numbers::step_classes(family, cluster, row.model),
          numbers::step_coordinates(cluster, row.model, row.sequence),
          cluster.chip.architecture,
          fmt::format("{} on {}", source_of(row), cluster.chip.id)};
    };
    for (const TrainingRow& row : timed) {
      if (row.fold != fold || !seen.without(predict.family(row), source_of(row))) continue;
      if (const Result<training::TrainingCost> cost = predict(row); cost && is_possible(row, *cost))
        times.push_back(residual(row, cost->estimate.value(), row.measured->value(), false));
    }
    for (const TrainingRow& row : held) {
      if (row.fold != fold) continue;
      if (const Result<training::TrainingCost> cost = predict(row); cost && is_possible(row, *cost))
        peaks.push_back(residual(row, peak_memory(cost->memory, row.view).value(), row.peak->value(), true));
    }
  }
  steps.time_intervals = numbers::interval_classes(times, hardware::spread_coverage);
  // Plans leave as much memory free as the interval says: of fewer groups, the two worst would decide for all.
  constexpr std::size_t fewest_of_memory = 10;
  steps.memory_intervals = numbers::interval_classes(peaks, hardware::spread_coverage, fewest_of_memory);
  return {};
}

Result<numbers::StepCalibration> fitted_to(const std::vector<TrainingRow>& rows, const FitInput& input) {
  ASSAY_TRY(ranges, training_ranges_of(input.catalogue));
  ASSAY_TRY(predict, TrainingPredictor::make(input.catalogue));
  fit_step_times(rows_for_times(rows), ranges, predict);
  fit_step_memory(rows_for_memory(rows), ranges, predict);
  return predict.steps;
}

Result<numbers::StepCalibration> fitted_training_steps(const FitInput& input) {
  ASSAY_TRY(rows, step_rows(input));
  return fitted_to(rows, input);
}

}  // namespace

Result<ValidationResult> steps_without_chips(const hardware::Catalogue& catalogue,
                                             const std::optional<std::string>& data) {
  ASSAY_TRY(all, all_step_rows({catalogue, data}));
  std::vector<TrainingRow>& rows = all.rows;
  for (TrainingRow& row : rows)
    if (row.fold != held_out) row.fold = fold_of(row.cluster.substr(0, row.cluster.find(':')));
  std::array<std::optional<Result<numbers::StepCalibration>>, folds> fitted;
  parallel_for(fitted.size(), 1, [&](std::size_t fold) {
    const FitInput input{catalogue, data, fold};
    fitted[fold] = fitted_to(seen(rows, input), input);
  });
  ASSAY_TRY(shipped, TrainingPredictor::make(catalogue));
  ValidationResult result;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    ASSAY_TRY(numbers, std::move(*fitted[fold]));
    ASSAY_TRY(predict, TrainingPredictor::make(catalogue));
    predict.steps = std::move(numbers);
    for (std::size_t i = all.own; i < rows.size(); ++i) {
      const TrainingRow& row = rows[i];
      if (row.fold != fold || !row.measured) continue;
      const Result<training::TrainingCost> cost = predict(row);
      if (!cost) {
        result.unanswered.push_back({row.id, row.group, cost.error().what});
        continue;
      }
      ValidationCase one{row.id, row.group, *row.measured, Seconds(cost->estimate), row.what};
      const hardware::Cluster& cluster = *predict.cluster(row);
      one.traits = step_traits(row.group, row.model, cluster);
      one.without = {numbers::step_classes(predict.family(row), cluster, row.model), cluster.chip.id};
      if (const auto* found = numbers::interval_of(shipped.steps.time_intervals, one.without.classes))
        one.spread = found->spread;
      result.cases.push_back(std::move(one));
    }
  }
  return result;
}

Result<std::vector<std::string>> fit_steps(std::span<const hardware::Catalogue> catalogues,
                                           const std::optional<std::string>& data) {
  ASSAY_TRY(fits, fits_without_folds<numbers::StepCalibration>(
                      catalogues, data, [](const FitInput& input) { return fitted_training_steps(input); }));
  std::vector<std::string> texts;
  for (std::size_t left_out = 0; left_out <= held_out; ++left_out) {
    const FitInput input{catalogues[left_out], data, left_out};
    ASSAY_TRY(rows, step_rows(input));
    const std::vector<TrainingRow> timed = rows_for_times(rows), held = rows_for_memory(rows);
    ASSAY_TRY(predict, TrainingPredictor::make(input.catalogue));
    predict.steps = fits[left_out];
    ASSAY_CHECK(add_intervals(catalogues, fits, left_out, timed, held, predict.steps));
    texts.push_back(fmt::format(
        "# What whole training steps cost beyond their kernels: docs/validation.md has the formulas and the error.\n"
        "[source.fit]\n"
        "title = \"fit to {}\"\n"
        "command = \"assay validate training --fit catalogue --data DIR\"\n"
        "date = 2026-11-19\n"
        "rows = \"{} times, {} peaks of memory\"\n"
        "error = \"mean absolute, groups alike: {:.1f} % of times, {:.1f} % of peaks\"\n",
        input.what(), timed.size(), held.size(), 100.0 * step_misfit(timed, predict),
        100.0 * memory_misfit(held, predict)));
    texts.back() += numbers::steps_text(predict.steps, "fit");
  }
  return texts;
}

}  // namespace assay::validate
