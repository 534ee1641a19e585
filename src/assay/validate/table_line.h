// Columns that tables of training and inference have in common: a row's model and its hardware.
#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "assay/model/transformer.h"
#include "assay/validate/csv.h"

namespace assay {

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

/// Why a row cannot be asked for; nothing where it can.
using Why = std::optional<std::string>;

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// "MLA q_lora=1536 kv_lora=512 ...": the number behind a name; 0 where it is not there.
std::int64_t noted(std::string_view notes, std::string_view name);

/// The catalogue's chip of an accelerator as the tables name it.
std::optional<std::string_view> chip_of(std::string_view accelerator);

/// The model that the columns describe; `vocabulary` stands in where they do not state it.
Why read_model_columns(const TableLine& in, std::int64_t vocabulary, Transformer& model);

}  // namespace assay
