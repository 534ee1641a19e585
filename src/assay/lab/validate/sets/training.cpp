// The sets of whole training steps: our own H200 steps and published ones, with time and peak memory separate.
#include <fmt/format.h>

#include "assay/lab/validate/rows/measured_clusters.h"
#include "assay/lab/validate/rows/tables.h"
#include "assay/lab/validate/rows/training_rows.h"
#include "assay/lab/validate/sets/sets.h"

namespace assay::validate {
namespace {

/// Equal for the same measurement in two tables.
std::string training_row_key(const TrainingRow& row) {
  return fmt::format("{} {}", row.id, row.measured ? row.measured->value() : 0.0);
}

/// What is known of a row before it is asked.
ValidationCase known_case(const TrainingRow& row, StepFigure figure, Places& places) {
  ValidationCase known{row.id,
                       row.group,
                       figure == StepFigure::time ? AnyQuantity(*row.measured) : AnyQuantity(*row.peak),
                       {},
                       row.what};
  if (const auto on = places.find(row.cluster, row.changes, row.id))
    known.traits = step_traits(row.group, row.model, (*on)->cluster);
  return known;
}

void add_cases(const TrainingRows& rows, StepFigure figure, const ValidationInput& input, ValidationResult& result) {
  for (const UnansweredStep& one : rows.unanswered)
    if (figure == StepFigure::time ? one.time : one.memory) result.unanswered.push_back(one);
  Places places(input.catalogue);
  std::vector<RowQuestion> questions;
  for (const TrainingRow& row : rows.rows)
    if (figure == StepFigure::time ? row.measured.has_value() : row.peak.has_value())
      questions.push_back({question_of(row, figure), row.fold, known_case(row, figure, places)});
  add_answers(std::move(questions), input, result);
}

template <StepFigure figure>
Result<ValidationResult> run_h200_train(const ValidationInput& input) {
  const auto read = [&](const CsvTable& table) { return read_h200_train(table, input.catalogue); };
  ASSAY_TRY(rows, measured_rows(input, "validation/h200_train.csv", "h200_train.csv", read, &training_row_key));
  ValidationResult result;
  add_cases(rows, figure, input, result);
  return result;
}

template <StepFigure figure>
Result<ValidationResult> run_training(const ValidationInput& input) {
  return published_cases(
      input, "validation/published_training.csv", "training.csv",
      [&](const CsvTable& table) { return read_training(table, input.catalogue); }, &training_row_key,
      [&](const TrainingRows& rows, ValidationResult& result) { add_cases(rows, figure, input, result); });
}

}  // namespace

std::vector<ValidationSet> training_sets() {
  return {{"h200-train", "training steps that we measured on one H200: seconds", false,
           &run_h200_train<StepFigure::time>, true},
          {"h200-train-memory", "the same steps: peak memory", false, &run_h200_train<StepFigure::memory>, true},
          {"training", "published training steps, A100 to GB200 and TPUs, with --data also third-party ones: seconds",
           false, &run_training<StepFigure::time>, true},
          {"training-memory", "the same steps: peak memory", false, &run_training<StepFigure::memory>, true}};
}

}  // namespace assay::validate
