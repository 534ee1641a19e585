// What columns of tables may hold: a field that is there but not understood makes its row unanswered, never a guess.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "assay/validate/rows/csv.h"

namespace assay::validate {

/// Why a row cannot be asked for; nothing where it can.
using Why = std::optional<std::string>;

/// A column and what its fields may be. Where a number is wanted, some words may stand instead.
struct Field {
  enum class Kind {
    count,   ///< a whole number from 1 on
    whole,   ///< or 0
    amount,  ///< any number above 0
    level,   ///< or 0
    words
  };
  std::string_view column;
  Kind kind;
  std::string_view words = {};  ///< with | between them; one that ends in * is only the beginning
};

/// The first of these fields that is stated and not understood, with its column and text.
Why unread(const CsvTable& table, std::size_t row, std::span<const Field> fields);

}  // namespace assay::validate
