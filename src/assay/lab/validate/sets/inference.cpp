// The sets of inference: our own H200 steps, and published figures.
#include "assay/lab/validate/rows/inference_rows.h"

#include <fmt/format.h>

#include "assay/lab/validate/rows/measured_clusters.h"
#include "assay/lab/validate/rows/tables.h"
#include "assay/lab/validate/sets/sets.h"

namespace assay::validate {
namespace {

using Take = bool (*)(const InferenceRow&);

/// Equal for the same measurement in two tables.
std::string inference_row_key(const InferenceRow& row) { return fmt::format("{} {}", row.id, row.measured.value); }

void add_cases(const InferenceRows& rows, Take take, const ValidationInput& input, ValidationResult& result) {
  for (const UnansweredFigure& one : rows.unanswered) {
    InferenceRow stated;
    stated.figure = one.figure;
    if (take(stated)) result.unanswered.push_back(one);
  }
  Places places(input.catalogue);
  std::vector<RowQuestion> questions;
  for (const InferenceRow& row : rows.rows) {
    if (!take(row)) continue;
    questions.push_back({question_of(row), row.fold, {row.id, row.group, row.measured, {}, row.what}});
    if (const auto on = places.find(row.cluster, {}, row.id))
      questions.back().known.traits = step_traits(row.group, row.model, (*on)->cluster);
  }
  add_answers(std::move(questions), input, result);
}

template <Take take>
Result<ValidationResult> run_h200_infer(const ValidationInput& input) {
  const auto read = [&](const CsvTable& table) { return read_h200_infer(table, input.catalogue); };
  ASSAY_TRY(rows, measured_rows(input, "validation/h200_infer.csv", "h200_infer.csv", read, &inference_row_key));
  ValidationResult result;
  add_cases(rows, take, input, result);
  return result;
}

Result<ValidationResult> run_h200_decode(const ValidationInput& input) {
  const auto read = [&](const CsvTable& table) { return read_h200_decode(table, input.catalogue); };
  ASSAY_TRY(rows, measured_rows(input, "validation/h200_decode.csv", "h200_decode.csv", read, &inference_row_key));
  ValidationResult result;
  add_cases(
      rows, [](const InferenceRow&) { return true; }, input, result);
  return result;
}

template <Take take>
Result<ValidationResult> run_inference(const ValidationInput& input) {
  return published_cases(
      input, "validation/published_inference.csv", "inference.csv",
      [&](const CsvTable& table) { return read_inference(table, input.catalogue); }, &inference_row_key,
      [&](const InferenceRows& rows, ValidationResult& result) { add_cases(rows, take, input, result); });
}

bool is_prefill(const InferenceRow& row) { return row.figure == InferenceFigure::first_token; }
bool is_step(const InferenceRow& row) { return row.figure == InferenceFigure::step; }
bool is_server(const InferenceRow& row) { return row.figure == InferenceFigure::throughput; }
bool is_token(const InferenceRow& row) {
  return row.figure != InferenceFigure::first_token && row.figure != InferenceFigure::throughput;
}

}  // namespace

std::vector<ValidationSet> inference_sets() {
  return {{"h200-prefill", "prefill that we measured on one H200, eager software: seconds", false,
           &run_h200_infer<&is_prefill>, true},
          {"h200-decode", "decode steps that we measured on one H200, a well-built loop: seconds", false,
           &run_h200_decode, true},
          {"h200-static-cache", "decode steps on one H200 of software that copies keys and values for every head",
           false, &run_h200_infer<&is_step>, true},
          {"inference-tpot", "published time per output token, with --data also third-party: seconds", false,
           &run_inference<&is_token>, true},
          {"inference-ttft", "published time to the first token of an idle server: seconds", false,
           &run_inference<&is_prefill>, true},
          {"inference-throughput", "published throughput at the largest load: output tokens per second of the server",
           false, &run_inference<&is_server>, true}};
}

}  // namespace assay::validate
