// Columns shared by tables of training and inference: a row's model.
#pragma once
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/lab/validate/rows/csv.h"
#include "assay/lab/validate/rows/csv_schema.h"
#include "assay/model/model_names.h"
#include "assay/model/transformer.h"

namespace assay::validate {

/// One row of a table, column by column.
struct TableLine {
  const CsvTable& table;
  std::size_t row;
  std::string_view text(std::string_view column) const { return table.text(row, column); }
  double number(std::string_view column, double missing = 0.0) const { return table.number(row, column, missing); }
  std::int64_t count(std::string_view column, std::int64_t missing = 0) const {
    return static_cast<std::int64_t>(std::llround(number(column, static_cast<double>(missing))));
  }
};

/// "MLA q_lora=1536 kv_lora=512 ...": the number after a name; 0 if it is absent.
std::int64_t noted(std::string_view notes, std::string_view name);

/// The catalogue's models by the names used in tables, each read once.
class KnownModels {
 public:
  static Result<KnownModels> make(const hardware::Catalogue& catalogue);
  const model::Transformer* find(std::string_view name);
  /// A configuration as requests write it; nullptr if it has a fault.
  const model::Transformer* written(const std::string& text);

 private:
  explicit KnownModels(const hardware::Catalogue& catalogue) : catalogue_(catalogue), names_(catalogue) {}
  /// A name without its last word, if that says how the weights were tuned or stored, or when; else nothing:
  /// "Llama-2-70b-chat" is "Llama-2-70b".
  std::string_view without_ending(std::string_view name) const;

  const hardware::Catalogue& catalogue_;
  model::ModelNames names_;
  std::vector<std::string> beginnings_, endings_;  ///< of names that the catalogue's do not have
  std::map<std::string, std::optional<model::Transformer>, std::less<>> read_;
};

/// The columns of a model.
std::span<const Field> model_fields();
/// A row's model: as a request names it, and what that means.
struct RowModel {
  std::string named;  ///< an id of the catalogue, or a configuration
  model::Transformer model;
};
/// The catalogue's model of the row's name, with the vocabulary that the columns state; what the columns describe if
/// there is none, or if they contradict it. `vocabulary` is the default if they do not state it.
Why read_model(const TableLine& in, std::int64_t vocabulary, KnownModels& known, RowModel& out);

}  // namespace assay::validate
