// The fit of catalogue/steps/serving.toml to measured figures.
#include "assay/lab/fit/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "assay/base/parallel.h"
#include "assay/lab/fit/fold_fits.h"
#include "assay/lab/fit/minimise.h"
#include "assay/lab/fit/ranges.h"
#include "assay/lab/fit/unseen.h"
#include "assay/lab/validate/rows/measured_clusters.h"
#include "assay/lab/validate/rows/tables.h"

namespace assay::validate {
namespace {

/// The rows of a group are similar: at most this many are used, spread evenly over the table.
constexpr std::size_t serving_rows_of_group = 12;
/// Errors are capped: rows that are far off are wrong for some other reason.
constexpr double most_serving_misfit = 0.5;
constexpr int serving_fit_rounds = 16;

std::vector<InferenceRow> sample(std::vector<InferenceRow> rows, const FitInput& input) {
  std::map<std::string, std::vector<InferenceRow>> groups;
  for (InferenceRow& row : rows)
    if (input.sees(row.fold) && row.typical && row.figure != InferenceFigure::throughput)
      groups[fmt::format("{}, {}", row.group, static_cast<int>(row.figure))].push_back(std::move(row));
  std::vector<InferenceRow> out;
  for (auto& [group, members] : groups) {
    const std::size_t n = std::min(serving_rows_of_group, members.size());
    for (std::size_t i = 0; i < n; ++i) {
      out.push_back(std::move(members[i * members.size() / n]));
      out.back().group = group;
    }
  }
  return out;
}

/// What is left out as a whole: the sources of rows, or their chips.
enum class FoldsOver : std::uint8_t { sources, chips };
std::string chip_of(const InferenceRow& row) { return row.cluster.substr(0, row.cluster.find(':')); }

Result<std::vector<InferenceRow>> all_rows(const FitInput& input, FoldsOver over) {
  std::vector<InferenceRow> rows;
  const auto take = [&](InferenceRows& more) {
    std::move(more.rows.begin(), more.rows.end(), std::back_inserter(rows));
  };
  ASSAY_TRY(prompts_table, catalogue_table(input.catalogue, "validation/h200_infer.csv"));
  ASSAY_TRY(prompts, read_h200_infer(prompts_table, input.catalogue));
  take(prompts);
  ASSAY_TRY(steps_table, catalogue_table(input.catalogue, "validation/h200_decode.csv"));
  ASSAY_TRY(steps, read_h200_decode(steps_table, input.catalogue));
  take(steps);
  ASSAY_TRY(published_table, catalogue_table(input.catalogue, "validation/published_inference.csv"));
  ASSAY_TRY(published, read_inference(published_table, input.catalogue));
  take(published);
  if (input.data) {
    ASSAY_TRY(table, data_table(*input.data, "third_party/inference.csv"));
    ASSAY_TRY(others, read_inference(table, input.catalogue));
    take(others);
  }
  for (InferenceRow& row : rows)
    if (over == FoldsOver::chips && row.fold != held_out) row.fold = fold_of(chip_of(row));
  return rows;
}

/// For numbers that rows may not determine: a factor of 1.5 from the start costs 0.03 % of error. One that was measured
/// in another way says itself what it costs.
constexpr double serving_stiffness = 0.0003;

double residual_of(const InferenceRow& row, InferencePredictor& predict) {
  const Result<Seconds> seconds = predict(row);
  if (!seconds) throw InternalError("a row that was prepared has no prediction");
  return std::log(seconds->value() / row.measured.value);
}

/// Groups have equal weight.
std::vector<double> weights_of(const std::vector<InferenceRow>& rows) {
  std::map<std::string, double> members;
  for (const InferenceRow& row : rows) members[row.group] += 1.0;
  std::vector<double> weights;
  for (const InferenceRow& row : rows)
    weights.push_back(1.0 / members[row.group] / static_cast<double>(members.size()));
  return weights;
}

/// The weighted mean error of rows.
double serving_misfit(const std::vector<InferenceRow>& rows, InferencePredictor& predict) {
  const std::vector<double> weights = weights_of(rows);
  double sum = 0.0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    sum += weights[i] * std::min(most_serving_misfit, std::abs(residual_of(rows[i], predict)));
  return sum;
}

/// The rows used by a fit: those whose sequences fit in memory, since engines handle the others differently, and that
/// are not faster than possible.
Result<std::vector<InferenceRow>> fitted_rows(const FitInput& input, InferencePredictor& predict,
                                              FoldsOver over = FoldsOver::sources) {
  ASSAY_TRY(all, all_rows(input, over));
  std::vector<InferenceRow> rows = sample(std::move(all), input);
  std::erase_if(
      rows, [&](const InferenceRow& row) { return !predict.fits(row) || !predict.is_possible(row) || !predict(row); });
  return rows;
}

Result<numbers::ServingCalibration> fitted_serving_steps(const FitInput& input, FoldsOver over = FoldsOver::sources) {
  ASSAY_TRY(ranges, serving_ranges_of(input.catalogue));
  ASSAY_TRY(predict, InferencePredictor::make(input.catalogue));
  // Numbers counted in software stay.
  numbers::ServingCalibration steps(predict.steps.families);
  steps.code = predict.steps.code;
  steps.kernels = predict.steps.kernels;
  steps.pointwise = predict.steps.pointwise;
  predict.steps = std::move(steps);
  std::vector<TunedNumber> numbers = bind_numbers(
      predict.steps, ranges, serving_stiffness, [](auto& all, auto& visitor) { numbers::visit_serving(all, visitor); });
  ASSAY_TRY(rows, fitted_rows(input, predict, over));
  const FittedRows fitted{
      weights_of(rows), [&](std::size_t i) { return residual_of(rows[i], predict); }, {}, most_serving_misfit};
  find_rows(fitted, numbers);
  fit_at_once(numbers, fitted, serving_fit_rounds);
  return predict.steps;
}

/// Intervals from the errors of held-out rows: each is predicted by a fit made without its fold (cross-conformal
/// prediction). None of `left_out` counts, and no row of a chip whose family that fit has not seen.
Result<void> add_intervals(std::span<const hardware::Catalogue> catalogues,
                           const FoldFits<numbers::ServingCalibration>& fits, std::size_t left_out,
                           const std::vector<InferenceRow>& rows, numbers::ServingCalibration& steps) {
  std::vector<numbers::Residual> prefill, decode;
  FamiliesSeen seen;
  ASSAY_TRY(places, InferencePredictor::make(catalogues[left_out]));
  for (const InferenceRow& row : rows) {
    ASSAY_TRY(cluster, places.cluster(row));
    seen.add(places.steps.family(cluster->chip), row.source);
  }
  for (std::size_t fold = 0; fold < folds; ++fold) {
    if (fold == left_out) continue;
    ASSAY_TRY(predict, InferencePredictor::make(catalogues[fold]));
    predict.steps = fits[fold];
    for (const InferenceRow& row : rows) {
      if (row.fold != fold) continue;
      const Result<Seconds> seconds = predict(row);
      if (!seconds || !predict.is_possible(row)) continue;
      const hardware::Cluster& cluster = **predict.cluster(row);
      if (!seen.without(predict.steps.family(cluster.chip), row.source)) continue;
      (row.figure == InferenceFigure::first_token ? prefill : decode)
          .push_back({row.group, std::log(seconds->value() / row.measured.value),
                      numbers::serving_classes(predict.steps.family(cluster.chip), row.model),
                      numbers::serving_coordinates(static_cast<double>(cluster.chips()), row.model, row.batch,
                                                   static_cast<double>(row.prompt + row.output)),
                      cluster.chip.architecture, fmt::format("{} on {}", row.source, cluster.chip.id)});
    }
  }
  steps.prefill_intervals = numbers::interval_classes(prefill, hardware::spread_coverage);
  steps.decode_intervals = numbers::interval_classes(decode, hardware::spread_coverage);
  return {};
}

}  // namespace

Result<std::vector<std::string>> fit_serving(std::span<const hardware::Catalogue> catalogues,
                                             const std::optional<std::string>& data) {
  ASSAY_TRY(fits, fits_without_folds<numbers::ServingCalibration>(
                      catalogues, data, [](const FitInput& input) { return fitted_serving_steps(input); }));
  std::vector<std::string> texts;
  for (std::size_t left_out = 0; left_out <= held_out; ++left_out) {
    const FitInput input{catalogues[left_out], data, left_out};
    ASSAY_TRY(predict, InferencePredictor::make(input.catalogue));
    predict.steps = fits[left_out];
    ASSAY_TRY(rows, fitted_rows(input, predict));
    ASSAY_CHECK(add_intervals(catalogues, fits, left_out, rows, predict.steps));
    texts.push_back(fmt::format(
        "# What whole prefill and decode steps cost beyond their kernels: docs/validation.md has the formulas and the "
        "error.\n"
        "[source.fit]\n"
        "title = \"fit to {}\"\n"
        "command = \"assay validate inference-tpot --fit catalogue --data DIR\"\n"
        "date = 2026-11-19\n"
        "rows = \"{} figures\"\n"
        "error = \"mean absolute, groups alike: {:.1f} %\"\n",
        input.what(), rows.size(), 100.0 * serving_misfit(rows, predict)));
    texts.back() += numbers::serving_steps_text(predict.steps, "fit");
  }
  return texts;
}

namespace {

/// The chips with rows in fits.
FamiliesSeen chips_seen(const std::vector<InferenceRow>& rows, InferencePredictor& predict) {
  FamiliesSeen seen;
  for (const InferenceRow& row : rows) {
    if (row.fold == held_out || !row.typical || row.figure == InferenceFigure::throughput) continue;
    if (const auto cluster = predict.cluster(row)) seen.add(predict.steps.family((*cluster)->chip), chip_of(row));
  }
  return seen;
}

/// What is known of a row whose whole chip no fit saw. If no other has rows of the family of its chip, it has no class,
/// as chips of families without measured steps have no interval.
void add_left_out(const InferenceRow& row, const hardware::Cluster& cluster, const FamiliesSeen& seen,
                  const numbers::ServingCalibration& shipped, ValidationCase& one) {
  const numbers::Family* family = shipped.family(cluster.chip);
  one.traits = step_traits(row.group, row.model, cluster);
  one.without = {numbers::serving_classes(seen.without(family, chip_of(row)) ? family : nullptr, row.model),
                 cluster.chip.id};
}

/// Throughputs follow from a search for the best batch, so that requests predict them with these numbers.
void add_throughputs(std::vector<RowQuestion> questions, const numbers::ServingCalibration& numbers,
                     const hardware::Catalogue& catalogue, const AskWith& ask_with, ValidationResult& result) {
  hardware::Catalogue with = catalogue;
  with.put("steps/serving.toml",
           "[source.fit]\ntitle = \"fit without whole chips\"\n" + numbers::serving_steps_text(numbers, "fit"));
  add_answers(std::move(questions), ValidationInput(with, std::nullopt, true, ask_with(with)), result);
}

}  // namespace

Result<WithoutChips> without_chips(const hardware::Catalogue& catalogue, const std::optional<std::string>& data,
                                   const AskWith& ask_with) {
  std::array<std::optional<Result<numbers::ServingCalibration>>, folds> fitted;
  parallel_for(fitted.size(), 1, [&](std::size_t fold) {
    fitted[fold] = fitted_serving_steps({catalogue, data, fold}, FoldsOver::chips);
  });
  ASSAY_TRY(rows, all_rows({catalogue, data}, FoldsOver::chips));
  ASSAY_TRY(shipped, numbers::serving_steps_of(catalogue));
  WithoutChips results;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    ASSAY_TRY(numbers, std::move(*fitted[fold]));
    ASSAY_TRY(predict, InferencePredictor::make(catalogue));
    predict.steps = std::move(numbers);
    const FamiliesSeen seen = chips_seen(rows, predict);
    std::vector<RowQuestion> questions;
    for (const InferenceRow& row : rows) {
      const bool first = row.figure == InferenceFigure::first_token;
      if (row.fold != fold || row.source == "own") continue;
      if (row.figure == InferenceFigure::throughput) {
        if (!ask_with) continue;
        ASSAY_TRY(cluster, predict.cluster(row));
        questions.push_back({question_of(row), held_out, {row.id, row.group, row.measured, {}, row.what}});
        add_left_out(row, *cluster, seen, shipped, questions.back().known);
        continue;
      }
      ValidationResult& result = first ? results.first_tokens : results.tokens;
      const Result<Seconds> seconds = predict(row);
      if (!seconds) {
        result.unanswered.push_back({row.id, row.group, seconds.error().what});
        continue;
      }
      ValidationCase one{row.id, row.group, row.measured, *seconds, row.what};
      const hardware::Cluster& cluster = **predict.cluster(row);
      add_left_out(row, cluster, seen, shipped, one);
      if (const auto* found =
              numbers::interval_of(first ? shipped.prefill_intervals : shipped.decode_intervals, one.without.classes))
        one.spread = found->spread;
      result.cases.push_back(std::move(one));
    }
    if (!questions.empty())
      add_throughputs(std::move(questions), predict.steps, catalogue, ask_with, results.throughputs);
  }
  // Answers with these numbers have no intervals: those of decoding hold, as in requests.
  for (ValidationCase& one : results.throughputs.cases)
    if (const auto* found = numbers::interval_of(shipped.decode_intervals, one.without.classes))
      one.spread = found->spread;
  return results;
}

}  // namespace assay::validate
