// Words, numbers and symbols of a program. Newlines end statements, except inside brackets; so do semicolons. A #
// begins a comment.
#pragma once
#include <string_view>
#include <vector>

#include "assay/program/language/source.h"

namespace assay::language {

struct Token {
  enum class Kind { word, number, symbol, end_of_line, end };
  Kind kind = Kind::end;
  std::string_view text;
  std::size_t at = 0;
  double value = 0;  ///< of a number

  bool is(std::string_view symbol) const { return kind == Kind::symbol && text == symbol; }
  bool is_word(std::string_view word) const { return kind == Kind::word && text == word; }
};

/// The tokens of a program, the last one of kind `end`. They refer to the source.
Result<std::vector<Token>> tokens_of(const Source& source);

}  // namespace assay::language
