// A program as it is written: declarations and statements, before names and sizes are known to fit.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/program/language/source.h"

namespace assay::language {

struct Word {
  std::string text;
  std::size_t at = 0;
};

/// "B_XY", "B_dp+fsdp": a dimension and the mesh axes that split it, both as written.
struct WrittenDim {
  Word name;
  Word axes;  ///< empty: none
};

/// "h[B_X, F]", "h[B, F] {U_X}", "h".
struct WrittenTensor {
  Word name;
  bool has_dims = false;
  std::vector<WrittenDim> dims;
  bool has_braces = false;  ///< {}: sharded exactly as written, even without a subscript
  Word partial;             ///< axes of partial sums; empty: none

  /// Whether its sharding is given, rather than left to be found.
  bool is_pinned() const {
    bool any = has_braces;
    for (const WrittenDim& dim : dims) any = any || !dim.axes.text.empty();
    return any;
  }
};

struct Expression {
  enum class Kind { number, name, call, operation, arrow };
  Kind kind = Kind::number;
  std::size_t at = 0;
  std::string text;  ///< a name, a function or an operator
  double number = 0;
  std::vector<Expression> operands;
};

/// The values of an input.
struct Fill {
  enum class Kind { random, iota, constant, literal };
  Kind kind = Kind::random;
  std::uint64_t seed = 0;
  std::int64_t below = 0;  ///< whole numbers from 0 to below it; 0: numbers between -1 and 1
  double constant = 0;
  std::vector<double> literal;
  std::size_t at = 0;
  Word below_dim = {};  ///< a dimension whose size is `below`
};

struct Statement {
  enum class Kind { input, assign, loop, function, result, gradients, expect };
  Kind kind = Kind::assign;
  std::size_t at = 0;
  WrittenTensor target;
  std::optional<Expression> value;  ///< of a function: what it returns
  Fill fill;
  Word counter;  ///< of a loop; empty: none
  std::int64_t first = 0, last = 0;
  std::vector<Word> parameters;  ///< of a function
  std::vector<Statement> body;
};

enum class Mode { automatic, explicit_types, manual };

struct SizedName {
  Word name;
  std::int64_t size = 1;
};

struct Syntax {
  std::vector<SizedName> mesh, dims;
  Mode mode = Mode::automatic;
  Word dtype;  ///< empty: bf16
  std::vector<Statement> statements;
};

/// Reads a program; the first mistake is an error that points at its character.
Result<Syntax> parse(const Source& source);

std::string_view name(Mode mode);

}  // namespace assay::language
