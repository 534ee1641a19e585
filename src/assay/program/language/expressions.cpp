// Names, operators and products.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/program/language/typing.h"

namespace assay::language {
namespace {

constexpr std::size_t most_values = 1000;

bool are_whole(const Graph& graph, const std::vector<int>& in) {
  return std::all_of(in.begin(), in.end(), [&](int id) { return graph.value(id).has_whole_numbers; });
}

bool gives_whole_numbers(program::Function function) {
  using enum program::Function;
  return function == floor || function == less || function == at_most || function == equal;
}

bool keeps_whole_numbers(program::Function function) {
  using enum program::Function;
  return function == copy || function == negate || function == add || function == subtract || function == multiply ||
         function == modulo || function == maximum || function == minimum || function == select || function == square;
}

/// Whether a has all dimensions of b.
bool includes(const Dims& a, const Dims& b) {
  return std::all_of(b.begin(), b.end(), [&](const Dim& dim) { return find_dim(a, dim.id) >= 0; });
}

}  // namespace

std::string Typing::shape_text(int id) const {
  std::string text;
  for (const Dim& dim : graph_.value(id).dims)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", dim_name(dim.id), dim.size);
  return "[" + text + "]";
}

Result<int> Typing::add(Value value) {
  const std::size_t most_rank = is_manual() && !value.ends ? 4 : 5;
  if (value.dims.size() > most_rank)
    return source_.error(
        value.at, fmt::format("the tensor has {} dimensions, at most {} are executed", value.dims.size(), most_rank),
        is_manual() ? "the devices are a dimension too" : "");
  if (graph_.values.size() == most_values)
    return source_.error(value.at, fmt::format("the program computes more than {} tensors", most_values),
                         "repeat less");
  if (value.name.empty()) value.name = target_;
  graph_.values.push_back(std::move(value));
  return static_cast<int>(graph_.values.size()) - 1;
}

int Typing::number(double number, std::size_t at) {
  Value value;
  value.name = exact_number(number);
  value.at = at;
  value.given = Value::Given::number;
  value.fill.kind = Fill::Kind::constant;
  value.fill.constant = number;
  value.has_whole_numbers = true;
  graph_.values.push_back(std::move(value));
  return static_cast<int>(graph_.values.size()) - 1;
}

Result<int> Typing::named(const Expression& name) {
  if (const auto found = names_.find(name.text); found != names_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [each, id] : names_) known.push_back(each);
  const bool is_dim = std::find(graph_.dim_names.begin(), graph_.dim_names.end(), name.text) != graph_.dim_names.end();
  return source_.error(
      name.at, fmt::format("unknown tensor {}", in_quotes(name.text)),
      is_dim ? fmt::format("it is a dimension; its numbers are iota({})", name.text) : suggestion(name.text, known));
}

Result<int> Typing::value_of(const Expression& expression, const Wanted& wanted) {
  if (graph_.values.size() >= most_values)
    return source_.error(expression.at, fmt::format("the program computes more than {} tensors", most_values),
                         "repeat less");
  switch (expression.kind) {
    case Expression::Kind::number:
      return number(expression.number, expression.at);
    case Expression::Kind::name:
      return named(expression);
    case Expression::Kind::call:
      return call(expression, wanted);
    case Expression::Kind::operation:
      return operation(expression, wanted);
    case Expression::Kind::arrow:
      break;
  }
  return source_.error(expression.at, "-> stands in rename and ppermute only", "e.g. rename(x, S -> T)");
}

Result<int> Typing::operation(const Expression& expression, const Wanted& wanted) {
  if (expression.text == "*") return product(expression, wanted);
  const bool swaps = expression.text == ">" || expression.text == ">=";
  const std::string symbol = !swaps ? expression.text : expression.text == ">" ? "<" : "<=";
  ASSAY_TRY(left, value_of(expression.operands[0], wanted));
  ASSAY_TRY(right, value_of(expression.operands[1], wanted));
  for (const program::FunctionFacts& each : program::functions::table)
    if (each.symbol == symbol)
      return mapped(expression.at, each.function, swaps ? std::vector{right, left} : std::vector{left, right}, wanted);
  throw InternalError("an operator without a function");
}

void Typing::collect_factors(const Expression& expression, std::vector<const Expression*>& out) const {
  if (expression.kind != Expression::Kind::operation || expression.text != "*") return out.push_back(&expression);
  for (const Expression& operand : expression.operands) collect_factors(operand, out);
}

Result<int> Typing::product(const Expression& expression, const Wanted& wanted) {
  std::vector<const Expression*> factors;
  collect_factors(expression, factors);
  std::vector<int> values;
  for (const Expression* factor : factors) {
    ASSAY_TRY(value, value_of(*factor, wanted));
    values.push_back(value);
  }
  int sum = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    Wanted kept = wanted;  // and what later factors need
    for (std::size_t later = i + 1; kept && later < values.size(); ++later)
      for (const Dim& dim : graph_.value(values[later]).dims)
        if (std::find(kept->begin(), kept->end(), dim.id) == kept->end()) kept->push_back(dim.id);
    ASSAY_TRY(next, product_of(expression.at, sum, values[i], kept));
    sum = next;
  }
  return sum;
}

Result<int> Typing::product_of(std::size_t at, int left, int right, const Wanted& wanted) {
  const Dims a = graph_.value(left).dims, b = graph_.value(right).dims;
  if (!wanted && !includes(a, b) && !includes(b, a))
    return source_.error(
        at,
        fmt::format("which dimensions does the product of {} and {} sum over?", shape_text(left), shape_text(right)),
        "give the dimensions of the result on the left: NAME[B, F] = ...");
  Dims kept;
  std::string summed;
  const auto consider = [&](const Dim& dim) {
    const bool keeps = !wanted || std::find(wanted->begin(), wanted->end(), dim.id) != wanted->end();
    if (keeps && find_dim(kept, dim.id) < 0) kept.push_back(dim);
    if (!keeps) summed = dim_name(dim.id);
    return keeps || (find_dim(a, dim.id) >= 0 && find_dim(b, dim.id) >= 0);
  };
  for (const Dims* dims : {&a, &b})
    for (const Dim& dim : *dims)
      if (!consider(dim))
        return source_.error(
            at, fmt::format("dimension {} is in only one operand and not in the result", dim_name(dim.id)),
            fmt::format("keep it in the result, sum it first: sum(..., {}), or give an inner product its own line",
                        dim_name(dim.id)));
  if (summed.empty()) return mapped(at, program::Function::multiply, {left, right}, wanted);
  for (const Dim& dim : a)
    if (const int other = find_dim(b, dim.id); other >= 0 && b[static_cast<std::size_t>(other)].size != dim.size)
      return source_.error(at,
                           fmt::format("{} is {} on the left and {} on the right of the product", dim_name(dim.id),
                                       dim.size, b[static_cast<std::size_t>(other)].size),
                           "both need the same part of the dimension");
  Value value;
  value.at = at;
  value.op = program::Op::product;
  value.in = {left, right};
  for (int id : *wanted)
    if (const int place = find_dim(kept, id); place >= 0) value.dims.push_back(kept[static_cast<std::size_t>(place)]);
  return add(std::move(value));
}

Result<int> Typing::mapped(std::size_t at, program::Function function, std::vector<int> in, const Wanted& wanted) {
  Dims dims;
  for (int id : in)
    for (const Dim& dim : graph_.value(id).dims) {
      const int place = find_dim(dims, dim.id);
      if (place < 0)
        dims.push_back(dim);
      else if (dims[static_cast<std::size_t>(place)].size != dim.size)
        return source_.error(at,
                             fmt::format("{} is {} in one operand and {} in the other", dim_name(dim.id),
                                         dims[static_cast<std::size_t>(place)].size, dim.size),
                             is_manual() ? "one of them is split over devices: gather it, or split the other"
                                         : "one of them is a chunk");
    }
  // Loops add to a zero at first. Left out, it lets them add up partial sums.
  if (function == program::Function::add)
    for (const std::size_t k : {0, 1}) {
      const Value& zero = graph_.value(in[k]);
      const bool is_zero =
          zero.given == Value::Given::number && zero.fill.kind == Fill::Kind::constant && zero.fill.constant == 0.0;
      const Dims& other = graph_.value(in[1 - k]).dims;
      const bool keeps_order = !wanted || std::equal(other.begin(), other.end(), wanted->begin(), wanted->end(),
                                                     [](const Dim& have, int id) { return have.id == id; });
      if (is_zero && keeps_order && other.size() == dims.size()) return in[1 - k];
    }
  Value value;
  value.at = at;
  value.op = program::Op::map;
  value.detail = static_cast<int>(function);
  for (int id : wanted.value_or(std::vector<int>{}))  // in the order of the line, if it has one
    if (const int place = find_dim(dims, id); place >= 0) value.dims.push_back(dims[static_cast<std::size_t>(place)]);
  if (value.dims.size() != dims.size()) value.dims = dims;
  const bool alike = std::all_of(in.begin(), in.end(), [&](int id) { return graph_.value(id).dims == value.dims; });
  if (function == program::Function::add && alike) {  // sums of partial sums may stay partial
    value.op = program::Op::add;
    value.detail = -1;
  }
  value.has_whole_numbers = gives_whole_numbers(function) || (keeps_whole_numbers(function) && are_whole(graph_, in));
  value.in = std::move(in);
  return add(std::move(value));
}

}  // namespace assay::language
