// Regular expressions as tokenizers use them to cut text: letters, classes with kinds of Unicode, groups, repetition,
// looking ahead. Matching tries alternatives in order, as in Perl.
#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/text/letters.h"

namespace assay::engine {

class Pattern {
 public:
  /// Fails with what is not understood; the caller knows the place.
  static Result<Pattern> parse(std::string_view text, const Letters& letters);

  /// How many letters from `start` on match; nothing if it does not match there.
  std::optional<std::size_t> match(const std::vector<char32_t>& text, std::size_t start) const;

  struct Alternatives;

 private:
  std::shared_ptr<const Alternatives> whole_;  ///< shared, so that patterns are values; nobody changes it
};

}  // namespace assay::engine
