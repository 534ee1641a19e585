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

double value_of(Function function, const Values& x) {
  switch (function) {
    case Function::copy:
      return x[0];
    case Function::negate:
      return -x[0];
    case Function::exp:
      return std::exp(x[0]);
    case Function::log:
      return std::log(x[0]);
    case Function::sqrt:
      return std::sqrt(x[0]);
    case Function::rsqrt:
      return 1.0 / std::sqrt(x[0]);
    case Function::square:
      return x[0] * x[0];
    case Function::absolute:
      return std::abs(x[0]);
    case Function::floor:
      return std::floor(x[0]);
    case Function::sine:
      return std::sin(x[0]);
    case Function::cosine:
      return std::cos(x[0]);
    case Function::tanh:
      return std::tanh(x[0]);
    case Function::sigmoid:
      return sigmoid(x[0]);
    case Function::relu:
      return std::max(0.0, x[0]);
    case Function::gelu:
      return gelu(x[0]);
    case Function::silu:
      return silu(x[0]);
    case Function::add:
      return x[0] + x[1];
    case Function::subtract:
      return x[0] - x[1];
    case Function::multiply:
      return x[0] * x[1];
    case Function::divide:
      return x[0] / x[1];
    case Function::modulo:
      return x[0] - x[1] * std::floor(x[0] / x[1]);
    case Function::maximum:
      return std::max(x[0], x[1]);
    case Function::minimum:
      return std::min(x[0], x[1]);
    case Function::less:
      return x[0] < x[1] ? 1.0 : 0.0;
    case Function::at_most:
      return x[0] <= x[1] ? 1.0 : 0.0;
    case Function::equal:
      return x[0] == x[1] ? 1.0 : 0.0;
    case Function::select:
      return x[0] != 0.0 ? x[1] : x[2];
  }
  return 0.0;
}

/// Of functions of one operand.
double slope_of_one(Function function, double x) {
  switch (function) {
    case Function::copy:
      return 1.0;
    case Function::negate:
      return -1.0;
    case Function::exp:
      return std::exp(x);
    case Function::log:
      return 1.0 / x;
    case Function::sqrt:
      return 0.5 / std::sqrt(x);
    case Function::rsqrt:
      return -0.5 / (x * std::sqrt(x));
    case Function::square:
      return 2.0 * x;
    case Function::absolute:
      return x < 0.0 ? -1.0 : 1.0;
    case Function::sine:
      return std::cos(x);
    case Function::cosine:
      return -std::sin(x);
    case Function::tanh:
      return 1.0 - std::tanh(x) * std::tanh(x);
    case Function::sigmoid:
      return sigmoid(x) * (1.0 - sigmoid(x));
    case Function::relu:
      return x > 0.0 ? 1.0 : 0.0;
    case Function::gelu:
      return gelu_slope(x);
    case Function::silu:
      return silu_slope(x);
    default:
      return 0.0;  // steps: flat almost everywhere
  }
}

/// The derivative by one operand.
double slope_of(Function function, const Values& x, std::size_t by) {
  switch (function) {
    case Function::add:
      return 1.0;
    case Function::subtract:
      return by == 0 ? 1.0 : -1.0;
    case Function::multiply:
      return x[1 - by];
    case Function::divide:
      return by == 0 ? 1.0 / x[1] : -x[0] / (x[1] * x[1]);
    case Function::modulo:
      return by == 0 ? 1.0 : -std::floor(x[0] / x[1]);
    case Function::maximum:
      return x[0] == x[1] ? 0.5 : (x[0] > x[1]) == (by == 0) ? 1.0 : 0.0;
    case Function::minimum:
      return x[0] == x[1] ? 0.5 : (x[0] < x[1]) == (by == 0) ? 1.0 : 0.0;
    case Function::select:
      return by == 0 ? 0.0 : (x[0] != 0.0) == (by == 1) ? 1.0 : 0.0;
    default:
      return by == 0 ? slope_of_one(function, x[0]) : 0.0;
  }
}

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
void copy_rows(const Numbers& from, std::int64_t from_row, Numbers& to, std::int64_t to_row, std::int64_t rows,
               std::size_t dim) {
  const Lines a = lines_of(from.shape, dim), b = lines_of(to.shape, dim);
  for (std::int64_t o = 0; o < a.outer; ++o)
    std::copy_n(from.values.begin() + (o * a.size + from_row) * a.inner, rows * a.inner,
                to.values.begin() + (o * b.size + to_row) * b.inner);
}

}  // namespace

Numbers mapped(Function function, const Shape& shape, const std::vector<SpreadOperand>& operands) {
  Numbers out = zeros<double>(shape);
  each_element(shape, operands, [&](std::size_t i, const std::array<std::size_t, 3>& places) {
    out.values[i] = value_of(function, values_at(operands, places));
  });
  return out;
}

Numbers mapped_grad(Function function, const Numbers& dy, const std::vector<SpreadOperand>& operands,
                    std::size_t which) {
  Numbers out = zeros<double>(operands[which].values->shape);
  each_element(dy.shape, operands, [&](std::size_t i, const std::array<std::size_t, 3>& places) {
    out.values[places[which]] += dy.values[i] * slope_of(function, values_at(operands, places), which);
  });
  return out;
}

Numbers spread(const Shape& shape, const SpreadOperand& operand) { return mapped(Function::copy, shape, {operand}); }

Numbers largest_of(const Numbers& x, std::int64_t elements, const Shape& strides) {
  Numbers out{{elements}, std::vector<double>(at(elements), -std::numeric_limits<double>::infinity())};
  each_element(x.shape, {{&out, strides}}, [&](std::size_t i, const std::array<std::size_t, 3>& places) {
    out.values[places[0]] = std::max(out.values[places[0]], x.values[i]);
  });
  return out;
}

Numbers largest_grad(const Numbers& dy, const Numbers& x, const Shape& strides) {
  const Numbers most = largest_of(x, static_cast<std::int64_t>(dy.values.size()), strides);
  std::vector<double> sharing(dy.values.size(), 0.0);
  const std::vector<SpreadOperand> reduced{{&most, strides}};
  each_element(x.shape, reduced, [&](std::size_t i, const std::array<std::size_t, 3>& places) {
    sharing[places[0]] += x.values[i] == most.values[places[0]] ? 1.0 : 0.0;
  });
  Numbers out = zeros<double>(x.shape);
  each_element(x.shape, reduced, [&](std::size_t i, const std::array<std::size_t, 3>& places) {
    if (x.values[i] == most.values[places[0]]) out.values[i] = dy.values[places[0]] / sharing[places[0]];
  });
  return out;
}

Numbers softmax(const Numbers& x, std::size_t dim) {
  const Lines lines = lines_of(x.shape, dim);
  Numbers out = x;
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

Numbers softmax_grad(const Numbers& dy, const Numbers& x, std::size_t dim) {
  const Lines lines = lines_of(x.shape, dim);
  Numbers out = softmax(x, dim);
  for (std::int64_t o = 0; o < lines.outer; ++o)
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const auto place = [&](std::int64_t row) { return at((o * lines.size + row) * lines.inner + i); };
      double sum = 0.0;
      for (std::int64_t row = 0; row < lines.size; ++row) sum += out.values[place(row)] * dy.values[place(row)];
      for (std::int64_t row = 0; row < lines.size; ++row) out.values[place(row)] *= dy.values[place(row)] - sum;
    }
  return out;
}

Numbers chunk_of(const Numbers& x, std::size_t dim, std::int64_t size, std::int64_t index) {
  Shape shape = x.shape;
  shape[dim] = size;
  Numbers out = zeros<double>(shape);
  if (index >= 0 && index < x.shape[dim] / size) copy_rows(x, index * size, out, 0, size, dim);
  return out;
}

Numbers put_into(const Shape& shape, const Numbers& chunk, std::size_t dim, std::int64_t index) {
  Numbers out = zeros<double>(shape);
  const std::int64_t size = chunk.shape[dim];
  if (index >= 0 && index < shape[dim] / size) copy_rows(chunk, 0, out, index * size, size, dim);
  return out;
}

}  // namespace assay::engine
