// Lowers a program that is written as text to steps: the planner moves tensors between the shardings that were chosen,
// gradients come from lower/.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "assay/program/language/propagation.h"

namespace assay::language {

/// A tensor that no step makes, and what it holds.
struct GivenTensor {
  int tensor = -1;
  Value::Given kind = Value::Given::number;
  Fill fill;
  program::AxisList axes;  ///< of axis_index
};

struct NamedTensor {
  std::string name;
  int tensor = -1;
};

/// Where a step comes from.
struct Origin {
  int line = 0;
  bool inserted = false;  ///< nobody wrote it: it follows from shardings
};

struct Compiled {
  Graph graph;
  std::deque<std::string> names;  ///< that the program's tensors refer to
  program::Program program;
  std::vector<GivenTensor> given;
  std::vector<NamedTensor> results, gradients;
  std::vector<Origin> origins;     ///< by step
  std::optional<Error> too_large;  ///< why it is not executed, but planned and priced alone
};

/// Checks, shards and lowers a program. `prices` are over the mesh of the reading; `backward` adds the gradients of the
/// last result where the program names no tensor.
Result<Compiled> compile(const Source& source, const Syntax& syntax, Reading reading, const plan::Prices& prices,
                         bool backward);

/// A tensor and a step as people read them: what a device of a manual program holds is without the dimension of the
/// devices.
program::Tensor listed_tensor(const Compiled& compiled, int id);
std::string listed_text(const Compiled& compiled, const program::Step& step);

/// The mesh that a program declares.
program::Mesh mesh_of(const Syntax& syntax);

}  // namespace assay::language
