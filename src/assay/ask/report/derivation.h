// Which part of a derivation an answer shows.
#pragma once
#include <string_view>
#include <vector>

#include "assay/ask/report/response.h"
#include "assay/base/result.h"

namespace assay::report {

/// Three levels of a long derivation for an empty text, every level for "all", else the part at a path: names joined
/// with dots, each the nearest one below the one before. A name may stop after any of its words; blanks may be
/// underscores.
Result<void> choose_derivation(std::string_view path, Response& response);

/// The lines that texts show, and how many they leave out.
struct ShownDerivation {
  std::vector<DerivationLine> lines;
  std::size_t left_out = 0;
};
ShownDerivation shown_derivation(const Response& response);

}  // namespace assay::report
