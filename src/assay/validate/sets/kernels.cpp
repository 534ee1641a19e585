// The sets of single kernels and collectives: our own table, which is part of the catalogue, and third-party ones.
#include <fmt/format.h>

#include <map>

#include "assay/base/text.h"
#include "assay/validate/rows/collective_rows.h"
#include "assay/validate/rows/kernel_rows.h"
#include "assay/validate/rows/tables.h"
#include "assay/validate/sets/sets.h"

namespace assay::validate {
namespace {

/// Chips with their calibrations, each read once.
class Chips {
 public:
  explicit Chips(const hardware::Catalogue& catalogue) : catalogue_(&catalogue) {}

  struct Entry {
    hardware::Chip chip;
    std::optional<hardware::ChipCalibration> calibration;
  };
  Result<const Entry*> find(const std::string& id) {
    if (const auto known = entries_.find(id); known != entries_.end()) return &known->second;
    ASSAY_TRY(chip, catalogue_->chip(id, "chip"));
    ASSAY_TRY(calibration, hardware::calibration_of(chip, *catalogue_));
    return &entries_.emplace(id, Entry{std::move(chip), std::move(calibration)}).first->second;
  }

 private:
  const hardware::Catalogue* catalogue_;
  std::map<std::string, Entry> entries_;
};

/// The calibrations and harnesses that predict kernels and collectives.
struct Numbers {
  Chips chips;
  Harnesses harnesses;

  static Result<Numbers> make(const hardware::Catalogue& catalogue) {
    ASSAY_TRY(harnesses, harnesses_of(catalogue));
    return Numbers{Chips(catalogue), std::move(harnesses)};
  }
};

Result<ValidationResult> run_kernels(KernelRows rows, const ValidationInput& input) {
  ASSAY_TRY(numbers, by_fold(input, &Numbers::make));
  ValidationResult result;
  result.unanswered = std::move(rows.unanswered);
  for (const KernelRow& row : rows.rows) {
    auto& [chips, harnesses] = numbers[row.fold];
    ASSAY_TRY(entry, chips.find(row.chip));
    const auto harness = harnesses.find(row.source);
    const bool known = harness != harnesses.end();
    std::optional<Seconds> predicted;
    if (entry->calibration && known) predicted = predict(row, entry->chip, entry->calibration->values, harness->second);
    if (!predicted) {
      result.unanswered.push_back({row.id, row.group,
                                   known ? fmt::format("{} has no calibration for this", row.chip)
                                         : fmt::format("no harness of {} in validation/harness.toml", row.source)});
      continue;
    }
    std::string what = row.shape;
    if (row.kind == KernelKind::matmul)
      what = fmt::format("{}[{},{},{}]", name(row.compute), row.matmul.m, row.matmul.n, row.matmul.k);
    if (row.matmul.batch > 1.0) what = fmt::format("{} x {}", row.matmul.batch, what);
    const auto& spread = entry->calibration->values.spread;
    result.cases.push_back({row.id,
                            row.group,
                            row.measured,
                            *predicted,
                            std::move(what),
                            input.fitted_to(row.fold),
                            spread ? spread_of(*spread, row.kind) : 0.0,
                            {row.chip, "", std::string(kernel_kind_names[static_cast<std::size_t>(row.kind)])}});
  }
  return result;
}

/// Equal for two measurements of the same kernel.
std::string kernel_row_key(const KernelRow& row) {
  return fmt::format("{} {} {} {}x{}", row.group, row.shape, row.measured.value(), row.matmul.batch, row.matmul.m);
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
  ASSAY_TRY(numbers, by_fold(input, &Numbers::make));
  ValidationResult result;
  result.unanswered = std::move(rows.unanswered);
  for (const CollectiveRow& row : rows.rows) {
    auto& [chips, harnesses] = numbers[row.fold];
    ASSAY_TRY(entry, chips.find(row.chip));
    const auto harness = harnesses.find(row.source);
    if (!entry->calibration || !entry->calibration->values.collective || harness == harnesses.end()) {
      result.unanswered.push_back({row.id, row.group, fmt::format("{} has no calibration for this", row.chip)});
      continue;
    }
    result.cases.push_back({row.id,
                            row.group,
                            row.measured,
                            predict(row, *entry->calibration->values.collective, harness->second),
                            row.shape,
                            input.fitted_to(row.fold),
                            entry->calibration->values.spread ? entry->calibration->values.spread->collective : 0.0,
                            {row.chip, "", row.across ? "across nodes" : "in a node"}});
  }
  return result;
}

}  // namespace

ValidationSet h200_ops_set() {
  return {"h200-ops", "kernels that we measured on one H200: products, attention, memory-bound operations", false,
          &run_h200_ops};
}
ValidationSet h200_random_set() {
  return {"h200-random", "kernels of random shapes that we measured on one H200", false, &run_own<1>};
}
ValidationSet h200_measure_set() {
  return {"h200-measure", "products, attention and copies that assay-measure-cuda measured on one H200", false,
          &run_own<2>};
}
ValidationSet h200_experts_set() {
  return {"h200-experts", "products of experts that we measured on one H200", false, &run_own<3>};
}
ValidationSet h200_products_set() {
  return {"h200-products", "matrix products of random shapes that we measured on one H200, with the library's kernel",
          false, &run_own<4>};
}
ValidationSet kernels_set() {
  return {"kernels", "third-party tables of kernels, A100 to GB200 and TPU v6e (needs --data)", true,
          &run_third_party_kernels};
}
ValidationSet collectives_set() {
  return {"collectives", "third-party sweeps of collectives, in a node and across nodes (needs --data)", true,
          &run_collectives};
}

}  // namespace assay::validate
