// A program whose names, dimensions and sizes fit: values in the order in which they are computed, loops unrolled. In a
// manual program, dimensions are those of one device.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/program/form/program.h"
#include "assay/program/language/syntax.h"

namespace assay::language {

/// A dimension of a value: which one, and its size there. A chunk of a tensor has smaller ones.
struct Dim {
  int id = 0;
  std::int64_t size = 1;

  friend bool operator==(const Dim&, const Dim&) = default;
};
using Dims = std::vector<Dim>;
/// The index of a dimension, or -1.
int find_dim(const Dims& dims, int id);
double element_count(const Dims& dims);

/// A collective that a manual program calls.
struct Call {
  program::Collective kind = program::Collective::all_reduce;
  program::AxisList axes;
  int split = -1, join = -1;  ///< positions of the dimension that gets smaller, and of the one that grows
  int permutation = -1;       ///< in Graph::permutations
  bool returns = false;       ///< of a ragged exchange: rows go back
};

struct Value {
  enum class Given { no, input, number, iota, axis_index, gradient };

  std::string name;
  std::size_t at = 0;  ///< in the source
  Dims dims;
  Given given = Given::no;
  Fill fill;               ///< of an input or a number
  program::AxisList axes;  ///< of axis_index
  program::Op op = program::Op::map;
  int detail = -1;  ///< as Step::detail; of a gradient, the input whose it is
  std::vector<int> in;
  std::optional<Call> call;                 ///< instead of an operation
  bool ends = false;                        ///< a result: moves its operand, and computes nothing
  bool has_whole_numbers = false;           ///< and therefore no gradient
  std::optional<program::Sharding> pinned;  ///< as written
};

struct Graph {
  program::Mesh mesh;
  Mode mode = Mode::automatic;
  Dtype dtype = Dtype::bf16;
  std::vector<std::string> dim_names;
  std::vector<Value> values;
  std::vector<program::Permutation> permutations;  ///< each followed by its inverse
  std::vector<int> results;                        ///< values that end, in the order of the program
  int loss = -1;                                   ///< whose gradients are asked for

  const Value& value(int id) const { return values[static_cast<std::size_t>(id)]; }
};

/// Which run of a program a graph is of.
enum class Reading {
  sharded,   ///< on its mesh
  unsharded  ///< on one device, without shardings; what `expect` says takes the place of what was computed
};

/// Checks a program and unrolls its loops.
Result<Graph> graph_of(const Source& source, const Syntax& syntax, Reading reading);

/// The tensor of a value with some sharding, as plans and listings have it.
program::Tensor tensor_of(const Graph& graph, const Value& value, const program::Sharding& sharding);

}  // namespace assay::language
