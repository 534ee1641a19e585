// The sets of single kernels and collectives: our own table, which is part of the catalogue, and third-party ones.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/lab/validate/rows/collective_rows.h"
#include "assay/lab/validate/rows/kernel_rows.h"
#include "assay/lab/validate/rows/tables.h"
#include "assay/lab/validate/sets/sets.h"

namespace assay::validate {
namespace {

/// Whether the way in which a question was measured is known: a table that no fit has seen is asked by default.
bool knows_way(const Question& question, const kernel::Harnesses& harnesses) {
  const std::string& way = question.own_way.back();
  return harnesses.contains(way) || std::find(std::begin(kernel::measured_ways), std::end(kernel::measured_ways),
                                              way) != std::end(kernel::measured_ways);
}

/// Asks all rows; `known` makes of a row what is not predicted.
template <class Rows, class Known>
Result<ValidationResult> asked(Rows rows, const ValidationInput& input, Known known) {
  ASSAY_TRY(harnesses, kernel::harnesses_of(input.catalogue));
  ValidationResult result;
  result.unanswered = std::move(rows.unanswered);
  std::vector<RowQuestion> questions;
  for (const auto& row : rows.rows) {
    questions.push_back({question_of(row), row.fold, known(row)});
    Question& question = questions.back().question;
    if (!question.own_way.empty() && !knows_way(question, harnesses)) question.own_way.clear();
  }
  add_answers(std::move(questions), input, result);
  return result;
}

Result<ValidationResult> run_kernels(KernelRows rows, const ValidationInput& input) {
  return asked(std::move(rows), input, [](const KernelRow& row) {
    const kernel::MatmulShape& product = row.kernel.product;
    std::string what = row.shape;
    if (row.kernel.kind == KernelKind::matmul)
      what = fmt::format("{}[{},{},{}]", name(row.kernel.format), product.m, product.n, product.k);
    if (product.batch > 1.0) what = fmt::format("{} x {}", product.batch, what);
    ValidationCase known{row.id, row.group, row.measured, Seconds(0), std::move(what)};
    known.traits = {row.chip, "", std::string(kernel_kind_names[static_cast<std::size_t>(row.kernel.kind)])};
    return known;
  });
}

/// Equal for two measurements of the same kernel.
std::string kernel_row_key(const KernelRow& row) {
  return fmt::format("{} {} {} {}x{}", row.group, row.shape, row.measured.value(), row.kernel.product.batch,
                     row.kernel.product.m);
}

Result<CsvTable> third_party(const ValidationInput& input, std::string_view file) {
  if (!input.data)
    return fail("--data", "this set is not part of the project", "give the directory that holds third_party/",
                Error::Kind::usage);
  return data_table(*input.data, fmt::format("third_party/{}", file));
}

Result<KernelRows> own_rows(const hardware::Catalogue& catalogue, const OwnTable& table) {
  ASSAY_TRY(own, catalogue_table(catalogue, table.file));
  KernelRows rows = read_own_ops(own, table.source);
  if (!table.fitted)
    for (KernelRow& row : rows.rows) row.fold = held_out;
  return rows;
}

Result<ValidationResult> run_h200_ops(const ValidationInput& input) {
  const auto read = [](const CsvTable& table) -> Result<KernelRows> {
    return read_own_ops(table, own_tables[0].source);
  };
  ASSAY_TRY(rows, measured_rows(input, own_tables[0].file, "h200_ops.csv", read, &kernel_row_key));
  return run_kernels(std::move(rows), input);
}

template <std::size_t table>
Result<ValidationResult> run_own(const ValidationInput& input) {
  ASSAY_TRY(rows, own_rows(input.catalogue, own_tables[table]));
  return run_kernels(std::move(rows), input);
}

Result<ValidationResult> run_third_party_kernels(const ValidationInput& input) {
  ASSAY_TRY(table, third_party(input, "kernels.csv"));
  ASSAY_TRY(rows, read_kernels(table, input.catalogue));
  return run_kernels(std::move(rows), input);
}

Result<ValidationResult> run_collectives(const ValidationInput& input) {
  ASSAY_TRY(table, third_party(input, "collectives.csv"));
  ASSAY_TRY(rows, read_collectives(table, input.catalogue));
  return asked(std::move(rows), input, [](const CollectiveRow& row) {
    ValidationCase known{row.id, row.group, row.measured, Seconds(0), row.shape};
    known.traits = {row.chip, "", row.across ? "across nodes" : "in a node"};
    return known;
  });
}

}  // namespace

std::vector<ValidationSet> kernel_sets() {
  return {
      {"h200-ops", "kernels that we measured on one H200: products, attention, memory-bound operations", false,
       &run_h200_ops},
      {"h200-random", "kernels of random shapes that we measured on one H200", false, &run_own<1>},
      {"h200-measure", "products, attention and copies that assay-measure-cuda measured on one H200", false,
       &run_own<2>},
      {"h200-experts", "products of experts that we measured on one H200", false, &run_own<3>},
      {"h200-products", "matrix products of random shapes that we measured on one H200, with the library's kernel",
       false, &run_own<4>},
      {"h200-odd", "matrix products of sizes that are no multiples of 64, measured on one H200", false, &run_own<5>},
      {"h200-heads", "attention of many head sizes, measured on one H200", false, &run_own<6>},
      {"kernels", "third-party tables of kernels, A100 to GB200 and TPU v6e (needs --data)", true,
       &run_third_party_kernels},
      {"collectives", "third-party sweeps of collectives, in a node and across nodes (needs --data)", true,
       &run_collectives}};
}

}  // namespace assay::validate
