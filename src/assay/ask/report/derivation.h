// Which part of a derivation an answer shows.
#pragma once
#include <functional>
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

/// How much each given number moves the results at `roots`: exact, from one pass over the record back to front. Rows
/// {result, input, value, elasticity, source}, where the elasticity says by how many percent the result changes for
/// one percent of the input; the strongest first, of those that count. Maxima follow their winner.
Items moving_inputs(const Ledger& ledger, const std::vector<int>& roots,
                    const std::function<bool(const Node&)>& counts);
/// Maxima and minima on the way to a result whose loser is within `near` of the winner: {result, wins, next, apart},
/// the nearest first. Beyond that change of an input another one moves the result.
Items near_kinks(const Ledger& ledger, const std::vector<int>& roots, double near, std::size_t most);

/// Adds both to the results of an answer that has a derivation, and to its screen: all that is given, and of these the
/// figures of files and options.
void add_derivatives(Response& response);

}  // namespace assay::report
