#include "assay/engine/kernels/elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "assay/base/index.h"
#include "assay/engine/kernels/activations.h"

namespace assay::engine {
namespace {

using program::Function;
using Values = std::array<double, 3>;
using X = const Values&;

/// A function of elements and its derivative by each operand; steps are flat almost everywhere.
struct ElementFunction {
  Function function;
  double (*value)(X x);
  double (*slope)(X x, std::size_t by);
};
using By = std::size_t;
constexpr double flat(X, By) { return 0.0; }

constexpr ElementFunction element_functions[] = {
    {Function::copy, [](X x) { return x[0]; }, [](X, By) { return 1.0; }},
    {Function::negate, [](X x) { return -x[0]; }, [](X, By) { return -1.0; }},
    {Function::exp, [](X x) { return std::exp(x[0]); }, [](X x, By) { return std::exp(x[0]); }},
    {Function::log, [](X x) { return std::log(x[0]); }, [](X x, By) { return 1.0 / x[0]; }},
    {Function::sqrt, [](X x) { return std::sqrt(x[0]); }, [](X x, By) { return 0.5 / std::sqrt(x[0]); }},
    {Function::rsqrt, [](X x) { return 1.0 / std::sqrt(x[0]); },
     [](X x, By) { return -0.5 / (x[0] * std::sqrt(x[0])); }},
    {Function::square, [](X x) { return x[0] * x[0]; }, [](X x, By) { return 2.0 * x[0]; }},
    {Function::absolute, [](X x) { return std::abs(x[0]); }, [](X x, By) { return x[0] < 0.0 ? -1.0 : 1.0; }},
    {Function::floor, [](X x) { return std::floor(x[0]); }, flat},
    {Function::sine, [](X x) { return std::sin(x[0]); }, [](X x, By) { return std::cos(x[0]); }},
    {Function::cosine, [](X x) { return std::cos(x[0]); }, [](X x, By) { return -std::sin(x[0]); }},
    {Function::tanh, [](X x) { return std::tanh(x[0]); },
     [](X x, By) { return 1.0 - std::tanh(x[0]) * std::tanh(x[0]); }},
    {Function::sigmoid, [](X x) { return sigmoid(x[0]); },
     [](X x, By) { return sigmoid(x[0]) * (1.0 - sigmoid(x[0])); }},
    {Function::relu, [](X x) { return std::max(0.0, x[0]); }, [](X x, By) { return x[0] > 0.0 ? 1.0 : 0.0; }},
    {Function::gelu, [](X x) { return gelu(x[0]); }, [](X x, By) { return gelu_slope(x[0]); }},
    {Function::silu, [](X x) { return silu(x[0]); }, [](X x, By) { return silu_slope(x[0]); }},
    {Function::add, [](X x) { return x[0] + x[1]; }, [](X, By) { return 1.0; }},
    {Function::subtract, [](X x) { return x[0] - x[1]; }, [](X, By by) { return by == 0 ? 1.0 : -1.0; }},
    {Function::multiply, [](X x) { return x[0] * x[1]; }, [](X x, By by) { return x[1 - by]; }},
    {Function::divide, [](X x) { return x[0] / x[1]; },
     [](X x, By by) { return by == 0 ? 1.0 / x[1] : -x[0] / (x[1] * x[1]); }},
    {Function::modulo, [](X x) { return x[0] - x[1] * std::floor(x[0] / x[1]); },
     [](X x, By by) { return by == 0 ? 1.0 : -std::floor(x[0] / x[1]); }},
    {Function::maximum, [](X x) { return std::max(x[0], x[1]); },
     [](X x, By by) { return x[0] == x[1]                 ? 0.5
                             : (x[0] > x[1]) == (by == 0) ? 1.0
                                                          : 0.0; }},
    {Function::minimum, [](X x) { return std::min(x[0], x[1]); },
     [](X x, By by) { return x[0] == x[1]                 ? 0.5
                             : (x[0] < x[1]) == (by == 0) ? 1.0
                                                          : 0.0; }},
    {Function::less, [](X x) { return x[0] < x[1] ? 1.0 : 0.0; }, flat},
    {Function::at_most, [](X x) { return x[0] <= x[1] ? 1.0 : 0.0; }, flat},
    {Function::equal, [](X x) { return x[0] == x[1] ? 1.0 : 0.0; }, flat},
    {Function::select, [](X x) { return x[0] != 0.0 ? x[1] : x[2]; },
     [](X x, By by) { return by == 0                      ? 0.0
                             : (x[0] != 0.0) == (by == 1) ? 1.0
                                                          : 0.0; }},
};

constexpr bool has_every_function() {
  for (std::size_t i = 0; i < std::size(program::functions::table); ++i)
    if (element_functions[i].function != program::functions::table[i].function) return false;
  return std::size(element_functions) == std::size(program::functions::table);
}
static_assert(has_every_function(), "functions stand in the order of program::functions");

const ElementFunction& facts_of(Function function) { return element_functions[static_cast<std::size_t>(function)]; }

/// Calls back with every element's index and its index in each operand.
template <class F>
void each_element(const Shape& shape, const std::vector<SpreadOperand>& operands, F&& visit) {
  std::array<std::size_t, 3> places{};
  for (std::int64_t i = 0, n = element_count(shape); i < n; ++i) {
    for (std::size_t k = 0; k < operands.size(); ++k) {
      std::int64_t rest = i, place = 0;
      for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) place += rest % shape[d] * operands[k].strides[d];
      places[k] = at(place);
    }
    visit(at(i), places);
  }
}

Values values_at(const std::vector<SpreadOperand>& operands, const std::array<std::size_t, 3>& places) {
  Values x{};
  for (std::size_t k = 0; k < operands.size(); ++k) x[k] = operands[k].values->values[places[k]];
  return x;
}

/// The elements of a dimension lie `inner` apart, in `outer` groups.
struct Lines {
  std::int64_t outer = 1, size = 1, inner = 1;
};
Lines lines_of(const Shape& shape, std::size_t dim) {
  Lines lines;
  for (std::size_t d = 0; d < shape.size(); ++d)
    (d < dim ? lines.outer : d > dim ? lines.inner : lines.size) *= shape[d];
  return lines;
}

/// Copies `rows` rows of a dimension between arrays that are alike but for it.
void copy_rows(const Array& from, std::int64_t from_row, Array& to, std::int64_t to_row, std::int64_t rows,
               std::size_t dim) {
  const Lines a = lines_of(from.shape, dim), b = lines_of(to.shape, dim);
  for (std::int64_t o = 0; o < a.outer; ++o)
    std::copy_n(from.values.begin() + (o * a.size + from_row) * a.inner, rows * a.inner,
                to.values.begin() + (o * b.size + to_row) * b.inner);
}

}  // namespace

Array mapped(Function function, const Shape& shape, const std::vector<SpreadOperand>& operands) {
  Array out = zeros(shape);
  const auto value = facts_of(function).value;
  each_element(shape, operands, [&](std::size_t i, const std::array<std::size_t, 3>& places) {
    out.values[i] = value(values_at(operands, places));
  });
  return out;
}

Array mapped_grad(Function function, const Array& dy, const std::vector<SpreadOperand>& operands, std::size_t which) {
  Array out = zeros(operands[which].values->shape);
  const auto slope = facts_of(function).slope;
  each_element(dy.shape, operands, [&](std::size_t i, const std::array<std::size_t, 3>& places) {
    out.values[places[which]] += dy.values[i] * slope(values_at(operands, places), which);
  });
  return out;
}

Array spread(const Shape& shape, const SpreadOperand& operand) { return mapped(Function::copy, shape, {operand}); }

void add_spread(Array& x, const Array& bias, const Shape& strides) {
  each_element(x.shape, {{&bias, strides}},
               [&](std::size_t i, const std::array<std::size_t, 3>& places) { x.values[i] += bias.values[places[0]]; });
}

Array summed_up(const Array& x, std::int64_t elements, const Shape& strides) {
  Array out = zeros({elements});
  each_element(x.shape, {{&out, strides}},
               [&](std::size_t i, const std::array<std::size_t, 3>& places) { out.values[places[0]] += x.values[i]; });
  return out;
}

Array largest_of(const Array& x, std::int64_t elements, const Shape& strides) {
  Array out{{elements}, std::vector<double>(at(elements), -std::numeric_limits<double>::infinity())};
  each_element(x.shape, {{&out, strides}}, [&](std::size_t i, const std::array<std::size_t, 3>& places) {
    out.values[places[0]] = larger(out.values[places[0]], x.values[i]);
  });
  return out;
}

Array largest_grad(const Array& dy, const Array& x, const Shape& strides) {
  const Array most = largest_of(x, static_cast<std::int64_t>(dy.values.size()), strides);
  std::vector<double> sharing(dy.values.size(), 0.0);
  const std::vector<SpreadOperand> reduced{{&most, strides}};
  each_element(x.shape, reduced, [&](std::size_t i, const std::array<std::size_t, 3>& places) {
    sharing[places[0]] += x.values[i] == most.values[places[0]] ? 1.0 : 0.0;
  });
  Array out = zeros(x.shape);
  each_element(x.shape, reduced, [&](std::size_t i, const std::array<std::size_t, 3>& places) {
    if (x.values[i] == most.values[places[0]]) out.values[i] = dy.values[places[0]] / sharing[places[0]];
  });
  return out;
}

Array softmax(const Array& x, std::size_t dim) {
  const Lines lines = lines_of(x.shape, dim);
  Array out = x;
  for (std::int64_t o = 0; o < lines.outer; ++o)
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const auto element = [&](std::int64_t row) -> double& {
        return out.values[at((o * lines.size + row) * lines.inner + i)];
      };
      double most = -std::numeric_limits<double>::infinity(), sum = 0.0;
      for (std::int64_t row = 0; row < lines.size; ++row) most = std::max(most, element(row));
      for (std::int64_t row = 0; row < lines.size; ++row) sum += element(row) = std::exp(element(row) - most);
      for (std::int64_t row = 0; row < lines.size; ++row) element(row) /= sum;
    }
  return out;
}

Array softmax_grad(const Array& dy, const Array& x, std::size_t dim) {
  const Lines lines = lines_of(x.shape, dim);
  Array out = softmax(x, dim);
  for (std::int64_t o = 0; o < lines.outer; ++o)
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const auto place = [&](std::int64_t row) { return at((o * lines.size + row) * lines.inner + i); };
      double sum = 0.0;
      for (std::int64_t row = 0; row < lines.size; ++row) sum += out.values[place(row)] * dy.values[place(row)];
      for (std::int64_t row = 0; row < lines.size; ++row) out.values[place(row)] *= dy.values[place(row)] - sum;
    }
  return out;
}

Array chunk_of(const Array& x, std::size_t dim, std::int64_t size, std::int64_t index) {
  Shape shape = x.shape;
  shape[dim] = size;
  Array out = zeros(shape);
  if (index >= 0 && index < x.shape[dim] / size) copy_rows(x, index * size, out, 0, size, dim);
  return out;
}

Array put_into(const Shape& shape, const Array& chunk, std::size_t dim, std::int64_t index) {
  Array out = zeros(shape);
  const std::int64_t size = chunk.shape[dim];
  if (index >= 0 && index < shape[dim] / size) copy_rows(chunk, 0, out, index * size, size, dim);
  return out;
}

}  // namespace assay::engine
