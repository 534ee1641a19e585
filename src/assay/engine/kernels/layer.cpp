#include "assay/engine/kernels/layer.h"

#include <algorithm>
#include <cmath>

#include "assay/base/index.h"
#include "assay/base/result.h"
#include "assay/engine/kernels/activations.h"

namespace assay::engine {
namespace {

/// Rows of `width` values.
std::int64_t row_count(const Array& x, std::int64_t width) {
  return static_cast<std::int64_t>(x.values.size()) / width;
}

Array with_width(const Array& like, std::int64_t width) {
  Shape shape = like.shape;
  shape.back() = width;
  return zeros(shape);
}

/// 1 / deviation and mean of a row.
struct RowFacts {
  double inverse = 1, mean = 0;
};
RowFacts facts_of(const Array& sums, std::int64_t row, const NormShape& shape) {
  const auto n = static_cast<double>(shape.whole);
  const double mean = shape.mean ? sums.values[at(2 * row + 1)] / n : 0.0;
  return {1.0 / std::sqrt(sums.values[at(2 * row)] / n - mean * mean + shape.epsilon), mean};
}

/// The scale of an element of a row.
std::size_t scale_of(std::int64_t row, std::int64_t i, const NormShape& shape) {
  return at(row % shape.rows_per_scale * shape.local + i);
}

/// Copies `count` values of every row from one column to another column of another array.
void copy_columns(const Array& from, std::int64_t from_column, Array& to, std::int64_t to_column, std::int64_t count) {
  const std::int64_t a = from.shape.back(), b = to.shape.back();
  for (std::int64_t row = 0; row < row_count(to, b); ++row)
    std::copy_n(from.values.begin() + row * a + from_column, count, to.values.begin() + row * b + to_column);
}

}  // namespace

Array embed(const Array& tokens, const Array& table, const Extent& rows) {
  const std::int64_t width = element_count(table.shape) / rows.size;
  Array out = zeros({std::ssize(tokens.values), width});
  for (std::size_t i = 0; i < tokens.values.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(tokens.values[i]) - rows.start;
    if (row >= 0 && row < rows.count)
      std::copy_n(table.values.begin() + row * width, width, out.values.begin() + static_cast<std::int64_t>(i) * width);
  }
  return out;
}

Array embed_grad(const Array& d_rows, const Array& tokens, const Extent& rows) {
  const std::int64_t width = std::ssize(d_rows.values) / std::max<std::int64_t>(1, std::ssize(tokens.values));
  Array out = zeros({rows.size, width});
  for (std::size_t i = 0; i < tokens.values.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(tokens.values[i]) - rows.start;
    if (row < 0 || row >= rows.count) continue;
    for (std::int64_t d = 0; d < width; ++d) out.values[at(row * width + d)] += d_rows.values[i * at(width) + at(d)];
  }
  return out;
}

Array norm_sums(const Array& x, const NormShape& shape) {
  const std::int64_t rows = row_count(x, shape.local);
  Array out = zeros({rows, 2});
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < shape.local; ++i) {
      const double value = x.values[at(r * shape.local + i)];
      out.values[at(2 * r)] += value * value;
      out.values[at(2 * r + 1)] += value;
    }
  return out;
}

Array norm(const Array& x, const Array* scale, const Array* bias, const Array& sums, const NormShape& shape) {
  Array out = x;
  for (std::int64_t r = 0; r < row_count(x, shape.local); ++r) {
    const RowFacts row = facts_of(sums, r, shape);
    for (std::int64_t i = 0; i < shape.local; ++i) {
      double& value = out.values[at(r * shape.local + i)];
      const std::size_t own = scale_of(r, i, shape);
      value = (value - row.mean) * row.inverse * (scale ? scale->values[own] : 1.0) + (bias ? bias->values[own] : 0.0);
    }
  }
  return out;
}

Array norm_grad_sums(const Array& dy, const Array& x, const Array* scale, const Array& sums, const NormShape& shape) {
  const std::int64_t rows = row_count(x, shape.local);
  Array out = zeros({rows, 2});
  for (std::int64_t r = 0; r < rows; ++r) {
    const RowFacts row = facts_of(sums, r, shape);
    for (std::int64_t i = 0; i < shape.local; ++i) {
      const std::size_t k = at(r * shape.local + i);
      const double g = dy.values[k] * (scale ? scale->values[scale_of(r, i, shape)] : 1.0);
      out.values[at(2 * r)] += g * (x.values[k] - row.mean) * row.inverse;
      out.values[at(2 * r + 1)] += g;
    }
  }
  return out;
}

std::array<Array, 3> norm_grad(const Array& dy, const Array& x, const Array* scale, const Array& sums,
                               const Array& grad_sums, const NormShape& shape) {
  Array dx = zeros(x.shape), d_scale = zeros({shape.local * shape.rows_per_scale}), d_bias = d_scale;
  const auto n = static_cast<double>(shape.whole);
  for (std::int64_t r = 0; r < row_count(x, shape.local); ++r) {
    const RowFacts row = facts_of(sums, r, shape);
    const double along = grad_sums.values[at(2 * r)] / n;
    const double shift = shape.mean ? grad_sums.values[at(2 * r + 1)] / n : 0.0;
    for (std::int64_t i = 0; i < shape.local; ++i) {
      const std::size_t k = at(r * shape.local + i);
      const double unit = (x.values[k] - row.mean) * row.inverse;
      const double g = dy.values[k] * (scale ? scale->values[scale_of(r, i, shape)] : 1.0);
      dx.values[k] = row.inverse * (g - shift - unit * along);
      d_scale.values[scale_of(r, i, shape)] += dy.values[k] * unit;
      d_bias.values[scale_of(r, i, shape)] += dy.values[k];
    }
  }
  return {std::move(dx), std::move(d_scale), std::move(d_bias)};
}

Array rotate(const Array& x, std::int64_t start, std::int64_t rotated, bool backwards, const model::Rotary& rotary) {
  Array out = x;
  std::vector<double> frequencies = rotary.frequencies;
  for (std::int64_t i = std::ssize(frequencies); i < rotated / 2; ++i)
    frequencies.push_back(std::pow(rotary_base, -2.0 * static_cast<double>(i) / static_cast<double>(rotated)));
  const std::int64_t width = x.shape.back(), half = rotated / 2, tokens = x.shape[1];
  const std::int64_t per_token = element_count(x.shape) / (x.shape[0] * tokens * width);
  for (std::int64_t row = 0; row < row_count(x, width); ++row) {
    const auto position = static_cast<double>(start + row / per_token % tokens);
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = (backwards ? -1.0 : 1.0) * position * frequencies[at(i)];
      const double along = rotary.amplitude * std::cos(angle), across = rotary.amplitude * std::sin(angle);
      const std::size_t a = at(row * width + width - rotated + i), b = a + at(half);
      out.values[a] = x.values[a] * along - x.values[b] * across;
      out.values[b] = x.values[a] * across + x.values[b] * along;
    }
  }
  return out;
}

Array activate(const Array& up, const Array* gate, model::Nonlinearity function) {
  if (function == model::Nonlinearity::usual) function = gate ? model::Nonlinearity::silu : model::Nonlinearity::gelu;
  Array out = gate ? *gate : up;
  for (double& value : out.values) value = nonlinear(value, function);
  for (std::size_t i = 0; gate && i < out.values.size(); ++i) out.values[i] *= up.values[i];
  return out;
}

std::pair<Array, Array> activate_grad(const Array& dy, const Array& up, const Array* gate) {
  Array d_up = dy, d_gate = gate ? dy : Array{};
  for (std::size_t i = 0; i < dy.values.size(); ++i) {
    if (!gate) {
      d_up.values[i] *= gelu_slope(up.values[i]);
      continue;
    }
    const double g = gate->values[i], s = sigmoid(g);
    d_up.values[i] *= g * s;
    d_gate.values[i] *= up.values[i] * s * (1.0 + g * (1.0 - s));
  }
  return {std::move(d_up), std::move(d_gate)};
}

Array gated(const Array& x, const Array& gate) {
  Array out = x;
  const std::size_t width = at(x.shape.back());
  for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] *= sigmoid(gate.values[i / width]);
  return out;
}

std::pair<Array, Array> gated_grad(const Array& dy, const Array& x, const Array& gate) {
  Array dx = gated(dy, gate), d_gate = zeros(gate.shape);
  const std::size_t width = at(x.shape.back());
  for (std::size_t i = 0; i < dy.values.size(); ++i) {
    const double s = sigmoid(gate.values[i / width]);
    d_gate.values[i / width] += dy.values[i] * x.values[i] * s * (1.0 - s);
  }
  return {std::move(dx), std::move(d_gate)};
}

Array placed(const Array& x, const Array& table, std::int64_t start) {
  Array out = x;
  const std::int64_t tokens = x.shape[1], width = x.shape[2];
  for (std::int64_t i = 0; i < element_count(x.shape); ++i)
    out.values[at(i)] += table.values[at((start + i / width % tokens) * width + i % width)];
  return out;
}

Array placed_grad(const Array& dy, std::int64_t rows, std::int64_t start) {
  const std::int64_t tokens = dy.shape[1], width = dy.shape[2];
  Array out = zeros({rows, width});
  for (std::int64_t i = 0; i < element_count(dy.shape); ++i)
    out.values[at((start + i / width % tokens) * width + i % width)] += dy.values[at(i)];
  return out;
}

std::vector<Array> split(const std::vector<const Array*>& in, const std::vector<std::int64_t>& widths) {
  if (in.size() == 1 && widths.size() == 2) {
    Array a = with_width(*in[0], widths[0]), b = with_width(*in[0], widths[1]);
    copy_columns(*in[0], 0, a, 0, widths[0]);
    copy_columns(*in[0], widths[0], b, 0, widths[1]);
    return {std::move(a), std::move(b)};
  }
  if (in.size() != 2) throw InternalError("a split of more than two arrays");
  const std::int64_t first = in[0]->shape.back(), second = in[1]->shape.back();
  if (widths.size() == 1) {
    Array out = with_width(*in[0], first + second);
    copy_columns(*in[0], 0, out, 0, first);
    copy_columns(*in[1], 0, out, first, second);
    return {std::move(out)};
  }
  const std::int64_t plain = widths[0] - second, heads = in[0]->shape[2];
  Array k = with_width(*in[0], widths[0]), v = with_width(*in[0], widths[1]);
  copy_columns(*in[0], 0, k, 0, plain);
  copy_columns(*in[0], plain, v, 0, widths[1]);
  for (std::int64_t row = 0; row < row_count(k, widths[0]); ++row)
    std::copy_n(in[1]->values.begin() + row / heads * second, second, k.values.begin() + row * widths[0] + plain);
  return {std::move(k), std::move(v)};
}

std::vector<Array> split_grad(const std::vector<const Array*>& in, const std::vector<std::int64_t>& widths) {
  if (widths.size() == 1) return split(in, {in[0]->shape.back() + in[1]->shape.back()});
  if (in.size() == 1) return split(in, widths);
  const Array &dk = *in[0], &dv = *in[1];
  const std::int64_t place = widths[1], plain = dk.shape.back() - place, heads = dk.shape[2];
  Array d_both = with_width(dk, widths[0]), d_place = zeros({dk.shape[0], dk.shape[1], place});
  copy_columns(dk, 0, d_both, 0, plain);
  copy_columns(dv, 0, d_both, plain, dv.shape.back());
  for (std::int64_t row = 0; row < row_count(dk, dk.shape.back()); ++row)
    for (std::int64_t i = 0; i < place; ++i)
      d_place.values[at(row / heads * place + i)] += dk.values[at(row * dk.shape.back() + plain + i)];
  return {std::move(d_both), std::move(d_place)};
}

Array loss_sums(const Array& logits, const Array& targets, const Extent& vocabulary) {
  // No maximum is subtracted: logits of the small models that run here stay far from overflow, and plain sums can be
  // added over devices.
  Array out = with_width(logits, 2);
  for (std::int64_t row = 0; row < row_count(logits, vocabulary.size); ++row) {
    for (std::int64_t i = 0; i < vocabulary.count; ++i)
      out.values[at(2 * row)] += std::exp(logits.values[at(row * vocabulary.size + i)]);
    const std::int64_t target = static_cast<std::int64_t>(targets.values[at(row)]) - vocabulary.start;
    if (target >= 0 && target < vocabulary.count)
      out.values[at(2 * row + 1)] = logits.values[at(row * vocabulary.size + target)];
  }
  return out;
}

Array loss(const Array& sums) {
  Array out = zeros({sums.shape[0], sums.shape[1]});
  for (std::size_t i = 0; i < out.values.size(); ++i)
    out.values[i] = std::log(sums.values[2 * i]) - sums.values[2 * i + 1];
  return out;
}

Array loss_grad(const Array& logits, const Array& targets, const Array& sums, const Extent& vocabulary, double tokens) {
  Array out = zeros(logits.shape);
  for (std::int64_t row = 0; row < row_count(logits, vocabulary.size); ++row) {
    const std::int64_t target = static_cast<std::int64_t>(targets.values[at(row)]) - vocabulary.start;
    for (std::int64_t i = 0; i < vocabulary.count; ++i) {
      const std::size_t k = at(row * vocabulary.size + i);
      out.values[k] = (std::exp(logits.values[k]) / sums.values[at(2 * row)] - (i == target ? 1.0 : 0.0)) / tokens;
    }
  }
  return out;
}

Array best_of_part(const Array& logits, const Extent& vocabulary) {
  Array out = with_width(logits, 2);
  for (std::int64_t row = 0; row < row_count(logits, vocabulary.size); ++row) {
    const auto first = logits.values.begin() + row * vocabulary.size;
    const auto best = std::max_element(first, first + vocabulary.count);
    out.values[at(2 * row)] = *best;
    out.values[at(2 * row + 1)] = static_cast<double>(vocabulary.start + (best - first));
  }
  return out;
}

Array best_of_all(const Array& parts) {
  Array out = zeros({parts.shape[0], parts.shape[1]});
  const std::int64_t width = parts.shape.back();
  for (std::int64_t row = 0; row < row_count(parts, width); ++row) {
    std::int64_t best = 0;
    for (std::int64_t i = 2; i < width; i += 2)
      if (parts.values[at(row * width + i)] > parts.values[at(row * width + best)]) best = i;
    out.values[at(row)] = parts.values[at(row * width + best + 1)];
  }
  return out;
}

}  // namespace assay::engine
