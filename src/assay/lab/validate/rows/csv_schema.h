// What columns of tables may contain. A field that cannot be read makes its row unanswered; nothing is guessed.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "assay/lab/validate/rows/csv.h"

namespace assay::validate {

/// Why a row cannot be predicted; empty if it can.
using Why = std::optional<std::string>;

/// A column and its valid fields: a number, or one of a few words.
struct Field {
  enum class Kind {
    count,   ///< a whole number from 1 up
    whole,   ///< the same, or 0
    ways,    ///< a count of parts; 0 and "none" are one part
    amount,  ///< any number above 0
    level,   ///< the same, or 0
    yes_no,  ///< y or n
    words
  };
  std::string_view column;
  Kind kind;
  std::string_view words = {};  ///< separated by |; a final * matches any ending
  std::string_view unit = {};   ///< that may stand after the number, its spellings separated by |
};

/// Rewrites the fields of these columns as the readers expect them: numbers without the column's unit and without
/// commas between thousands, words in lower case, nothing where a field says that it is not stated ("n/a").
void tidy(CsvTable& table, std::span<const Field> fields);

/// A part of a plan as tables write it together with others, and its column.
struct NamedWays {
  std::string_view name, column;
};
/// Spreads "TP8 PP4" or "tp=8,pp=4", which stands in `column`, over the columns that it names. Nothing changes where
/// the text says anything else, or contradicts one of these columns.
void spread_ways(CsvTable& table, std::string_view column, std::span<const NamedWays> known);

/// The first of these fields that is stated but cannot be read, with its column and text.
Why unread(const CsvTable& table, std::size_t row, std::span<const Field> fields);

}  // namespace assay::validate
