// Figures that the field knows: each row holds its request, so that a reader can ask the same.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/lab/validate/rows/table_line.h"
#include "assay/lab/validate/rows/tables.h"
#include "assay/lab/validate/rows/training_rows.h"
#include "assay/lab/validate/sets/sets.h"

namespace assay::validate {
namespace {

/// The fold of a row of the published steps, which fits use; held out if no such row is named.
Result<std::size_t> fold_of_row(std::string_view id, const std::vector<TrainingRow>& steps, std::string_view where) {
  if (id.empty()) return held_out;
  const auto same = std::find_if(steps.begin(), steps.end(), [&](const TrainingRow& step) { return step.id == id; });
  if (same == steps.end()) return fail(std::string(where), "no published step is called " + in_quotes(id));
  return same->fold;
}

Result<ValidationResult> run_public(const ValidationInput& input) {
  constexpr std::string_view file = "validation/public.csv";
  ASSAY_TRY(table, catalogue_table(input.catalogue, file));
  ASSAY_TRY(published, catalogue_table(input.catalogue, "validation/published_training.csv"));
  ASSAY_TRY(steps, read_training(published, input.catalogue));
  ValidationResult result;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const TableLine row{table, i};
    const std::string where = fmt::format("{}:{}", file, table.line(i));
    ASSAY_TRY(fold, fold_of_row(row.text("same_as"), steps.rows, where));
    ASSAY_TRY(value, parse_quantity(row.text("published"), where));
    const std::string id(row.text("id")), what(row.text("what"));
    auto one = asked_case({{split(row.text("request"), ' '), {}, std::string(row.text("result"))},
                           fold,
                           {id, what, value, {}, std::string(row.text("explanation"))}},
                          input);
    if (one)
      result.cases.push_back(std::move(*one));
    else
      result.unanswered.push_back({id, what, one.error().what});
  }
  return result;
}

}  // namespace

std::vector<ValidationSet> public_sets() {
  return {{"public", "figures that the field knows, from papers and benchmarks; --requests prints their commands",
           false, &run_public, true}};
}

}  // namespace assay::validate
