// Chooses the shardings of a whole program: every value's own, and those that operations need of their operands.
// Automatic: a beam search over the values in order; the cost is that of all movements, as the planner prices them,
// those of gradients where the program asks for them, and of the arithmetic at the rate of the prices; where prices are
// bytes, no product is computed twice to save some. A tensor that was
// moved once is there for later operations. Explicit: a sharding follows from those of the operands alone, or the line
// says it.
#pragma once
#include "assay/program/language/graph.h"
#include "assay/program/plan/planner.h"

namespace assay::language {

/// How one value is computed.
struct Choice {
  std::vector<program::Sharding> in;  ///< in which its operands are needed
  program::Sharding made;             ///< follows from the operation
  program::Sharding kept;             ///< after partial sums ended, or as the line says
};

struct Choices {
  std::vector<Choice> values;
  double cost = 0;  ///< of all movements and arithmetic, in the unit of the prices
};

/// For programs that are automatic or explicit. An ambiguous operation of an explicit program is an error that names
/// the choices.
Result<Choices> choose_shardings(const Source& source, const Graph& graph, const plan::Prices& prices);

}  // namespace assay::language
