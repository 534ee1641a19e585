// Kinds of letters by Unicode, from catalogue/texts/letters.txt.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"

namespace assay::engine {

/// Ranges of code points in order, both ends included.
using LetterRanges = std::vector<std::pair<char32_t, char32_t>>;

class Letters {
 public:
  static Result<const Letters*> of(const hardware::Catalogue& catalogue);

  /// "Lu", "N", "space", "joined" (letters that a normal form may join or replace); "L" is all that start with it.
  /// Empty where there is no such kind.
  LetterRanges ranges(std::string_view kind) const;
  bool is(std::string_view kind, char32_t letter) const;

 private:
  std::map<std::string, LetterRanges, std::less<>> kinds_;
};

bool holds(const LetterRanges& ranges, char32_t letter);

/// Valid UTF-8 as code points.
std::vector<char32_t> code_points(std::string_view text);

}  // namespace assay::engine
