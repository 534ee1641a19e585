// The text of a program, and errors that point at a character of it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "assay/base/result.h"

namespace assay::language {

/// A program as it was written. `name` is what errors call it: a file, or "program".
struct Source {
  std::string name;
  std::string text;

  /// 1 for the first line.
  int line_of(std::size_t at) const;
  /// "program.assay:3:14", the rule with the line and a caret below the character, and the remedy.
  tl::unexpected<Error> error(std::size_t at, std::string_view what, std::string hint) const;
};

}  // namespace assay::language
