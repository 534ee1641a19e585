// What columns of tables may contain. A field that cannot be read makes its row unanswered; nothing is guessed.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "assay/validate/rows/csv.h"

namespace assay::validate {

/// Why a row cannot be predicted; empty if it can.
using Why = std::optional<std::string>;

/// A column and its valid fields: a number, or one of a few words.
struct Field {
  enum class Kind {
    count,   ///< a whole number from 1 up
    whole,   ///< the same, or 0
    amount,  ///< any number above 0
    level,   ///< the same, or 0
    words
  };
  std::string_view column;
  Kind kind;
  std::string_view words = {};  ///< separated by |; a final * matches any ending
};

/// The first of these fields that is stated but cannot be read, with its column and text.
Why unread(const CsvTable& table, std::size_t row, std::span<const Field> fields);

}  // namespace assay::validate
