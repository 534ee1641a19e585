#include "assay/engine/kernels/shift.h"

#include "assay/base/index.h"
#include "assay/engine/kernels/activations.h"

namespace assay::engine {
namespace {

/// Calls back with the indices (output, input, weight) of every product of a convolution.
template <class F>
void each_tap(const Array& x, std::int64_t width, F&& visit) {
  const std::int64_t tokens = x.shape[1], channels = x.shape[2];
  for (std::int64_t b = 0; b < x.shape[0]; ++b)
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t j = 0; j < width; ++j)
        if (const std::int64_t from = t - width + 1 + j; from >= 0)
          for (std::int64_t c = 0; c < channels; ++c)
            visit(at((b * tokens + t) * channels + c), at((b * tokens + from) * channels + c), at(c * width + j));
}

Array convolution_sums(const Array& x, const Array& weights, const Array* bias) {
  Array sums = zeros(x.shape);
  const std::size_t channels = at(x.shape[2]);
  each_tap(x, weights.shape[1], [&](std::size_t y, std::size_t from, std::size_t w) {
    sums.values[y] += x.values[from] * weights.values[w];
  });
  for (std::size_t i = 0; bias && i < sums.values.size(); ++i) sums.values[i] += bias->values[i % channels];
  return sums;
}

}  // namespace

Array convolve(const Array& x, const Array& weights, const Array* bias, Array* before) {
  const std::int64_t reach = weights.shape[1] - 1, tokens = x.shape[1];
  Array out;
  if (before) {
    if (before->values.empty()) *before = zeros({x.shape[0], reach, x.shape[2]});
    const std::vector<Array> both{*before, x};
    const Array all = joined(both, 1);
    out = part(convolution_sums(all, weights, bias), 1, reach, tokens);
    *before = part(all, 1, tokens, reach);
  } else {
    out = convolution_sums(x, weights, bias);
  }
  for (double& value : out.values) value = silu(value);
  return out;
}

std::vector<Array> convolve_grad(const Array& dy, const Array& x, const Array& weights, const Array* bias) {
  Array d = convolution_sums(x, weights, bias);
  for (std::size_t i = 0; i < d.values.size(); ++i) d.values[i] = dy.values[i] * silu_slope(d.values[i]);
  std::vector<Array> out{zeros(x.shape), zeros(weights.shape)};
  each_tap(x, weights.shape[1], [&](std::size_t y, std::size_t from, std::size_t w) {
    out[0].values[from] += d.values[y] * weights.values[w];
    out[1].values[w] += d.values[y] * x.values[from];
  });
  if (!bias) return out;
  out.push_back(zeros(bias->shape));
  for (std::size_t i = 0; i < d.values.size(); ++i) out[2].values[i % at(x.shape[2])] += d.values[i];
  return out;
}

Array shifted(const Array& x, const Array* edges, std::int64_t part, Array* last) {
  Array out = zeros(x.shape);
  const std::size_t tokens = at(x.shape[1]), channels = at(x.shape[2]);
  if (last && last->values.empty()) *last = zeros({x.shape[0], 1, x.shape[2]});
  for (std::size_t b = 0; b < at(x.shape[0]); ++b)
    for (std::size_t c = 0; c < channels; ++c) {
      double& first = out.values[b * tokens * channels + c];
      if (edges && part > 0) first = edges->values[(b * at(edges->shape[1]) + at(part - 1)) * channels + c];
      if (last) first = last->values[b * channels + c];
      for (std::size_t t = 1; t < tokens; ++t)
        out.values[(b * tokens + t) * channels + c] = x.values[(b * tokens + t - 1) * channels + c];
    }
  if (last) *last = edge(x);
  return out;
}

std::vector<Array> shifted_grad(const Array& dy, std::int64_t part, std::int64_t parts) {
  std::vector<Array> out{zeros(dy.shape)};
  const std::size_t tokens = at(dy.shape[1]), channels = at(dy.shape[2]);
  if (parts > 0) out.push_back(zeros({dy.shape[0], parts, dy.shape[2]}));
  for (std::size_t b = 0; b < at(dy.shape[0]); ++b)
    for (std::size_t c = 0; c < channels; ++c) {
      if (parts > 0 && part > 0)
        out[1].values[(b * at(parts) + at(part - 1)) * channels + c] = dy.values[b * tokens * channels + c];
      for (std::size_t t = 1; t < tokens; ++t)
        out[0].values[(b * tokens + t - 1) * channels + c] = dy.values[(b * tokens + t) * channels + c];
    }
  return out;
}

Array edge(const Array& x) { return part(x, 1, x.shape[1] - 1, 1); }

Array edge_grad(const Array& dy, const Shape& shape) {
  Array out = zeros(shape);
  copy_block(dy, Shape(3, 0), dy.shape, out, {0, shape[1] - 1, 0});
  return out;
}

namespace {

/// Calls back with (index in x, index in the weights) of every channel of a token, for one of `count` mixtures.
template <class F>
void each_mixture(const Array& x, const Array& weights, std::size_t count, std::size_t which, F&& visit) {
  const std::size_t channels = at(x.shape.back());
  const bool of_tokens = weights.values.size() == count * x.values.size();
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::size_t row = of_tokens ? i / channels * count + which : which;
    visit(i, row * channels + i % channels);
  }
}

}  // namespace

std::vector<Array> mixes(const Array& x, const Array& y, const Array& weights, std::int64_t count) {
  std::vector<Array> out(at(count), x);
  for (std::size_t n = 0; n < out.size(); ++n)
    each_mixture(x, weights, out.size(), n, [&](std::size_t i, std::size_t w) {
      out[n].values[i] += weights.values[w] * (y.values[i] - x.values[i]);
    });
  return out;
}

std::vector<Array> mixes_grad(const std::vector<const Array*>& dy, const Array& x, const Array& y,
                              const Array& weights) {
  std::vector<Array> out{zeros(x.shape), zeros(x.shape), zeros(weights.shape)};
  for (std::size_t n = 0; n < dy.size(); ++n)
    each_mixture(x, weights, dy.size(), n, [&](std::size_t i, std::size_t w) {
      const double d = dy[n]->values[i], moved = d * weights.values[w];
      out[0].values[i] += d - moved;
      out[1].values[i] += moved;
      out[2].values[w] += d * (y.values[i] - x.values[i]);
    });
  return out;
}

}  // namespace assay::engine
