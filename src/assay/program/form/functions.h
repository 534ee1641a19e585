// Functions of elements: the one list of those that a `map` step computes. A new one is a row here and one in
// engine/kernels/elements.cpp.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay::program {

enum class Function : std::uint8_t {
  copy,
  negate,
  exp,
  log,
  sqrt,
  rsqrt,
  square,
  absolute,
  floor,
  sine,
  cosine,
  tanh,
  sigmoid,
  relu,
  gelu,
  silu,
  add,
  subtract,
  multiply,
  divide,
  modulo,
  maximum,
  minimum,
  less,
  at_most,
  equal,
  select  ///< the second where the first is not zero, else the third
};
inline constexpr std::size_t function_count = 27;

struct FunctionFacts {
  Function function;
  std::string_view name;  ///< in programs and listings
  int operands;
  std::string_view symbol = {};  ///< written between its operands, if it has one
};

namespace functions {

using enum Function;

inline constexpr std::array<FunctionFacts, function_count> table{{
    {copy, "copy", 1},
    {negate, "negate", 1},
    {exp, "exp", 1},
    {log, "log", 1},
    {sqrt, "sqrt", 1},
    {rsqrt, "rsqrt", 1},
    {square, "square", 1},
    {absolute, "abs", 1},
    {floor, "floor", 1},
    {sine, "sin", 1},
    {cosine, "cos", 1},
    {tanh, "tanh", 1},
    {sigmoid, "sigmoid", 1},
    {relu, "relu", 1},
    {gelu, "gelu", 1},
    {silu, "silu", 1},
    {add, "add", 2, "+"},
    {subtract, "subtract", 2, "-"},
    {multiply, "multiply", 2},
    {divide, "divide", 2, "/"},
    {modulo, "modulo", 2, "%"},
    {maximum, "maximum", 2},
    {minimum, "minimum", 2},
    {less, "less", 2, "<"},
    {at_most, "at_most", 2, "<="},
    {equal, "equal", 2, "=="},
    {select, "where", 3},
}};

constexpr bool is_complete() {
  for (std::size_t i = 0; i < function_count; ++i)
    if (table[i].function != static_cast<Function>(i) || table[i].name.empty()) return false;
  return true;
}
static_assert(is_complete());

}  // namespace functions

constexpr const FunctionFacts& facts(Function function) { return functions::table[static_cast<std::size_t>(function)]; }

}  // namespace assay::program
