#include "assay/execute/recurrence_kernels.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace assay {
namespace {

using Kind = StateSpace::Kind;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(x)); }
double silu(double x) { return x * sigmoid(x); }
double silu_slope(double x) { return sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))); }

/// What one head does with one token.
struct Token {
  std::vector<double> decay, key, query, value;
  double weight = 1, skip = 0;
};

/// A vector of length one, or times a factor; and the gradient of the vector it was made from.
std::vector<double> unit(const double* x, std::int64_t n, double factor) {
  double squares = 1e-6;
  for (std::int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  std::vector<double> out(at(n));
  for (std::int64_t i = 0; i < n; ++i) out[at(i)] = factor * x[i] / std::sqrt(squares);
  return out;
}
void add_unit_grad(double* dx, const double* x, const std::vector<double>& dy, double factor) {
  double squares = 1e-6, along = 0;
  for (std::size_t i = 0; i < dy.size(); ++i) squares += x[i] * x[i], along += x[i] * dy[i];
  const double length = std::sqrt(squares);
  for (std::size_t i = 0; i < dy.size(); ++i) dx[i] += factor * (dy[i] - x[i] * along / squares) / length;
}

/// Where the inputs of a head lie, and what they mean for the recurrence.
class Head {
 public:
  Head(const std::vector<const Numbers*>& in, const RecurrencePlace& place, std::int64_t head)
      : in_(in), p_(place), head_(head) {
    tokens_ = in[0]->shape[1];
    local_heads_ = element_count(in[0]->shape) / (in[0]->shape[0] * tokens_ * p_.value_dim);
    delta_ = p_.kind == Kind::gated_delta;
    // Mamba 1 is one head for every channel, with a decay for every element of the state.
    wide_decay_ =
        p_.kind == Kind::mamba1 || (delta_ && element_count(in[4]->shape) > in[0]->shape[0] * tokens_ * local_heads_);
    key_head_ = (p_.first_head + head) / (p_.heads / p_.key_heads) - p_.first_key_head;
    key_rows_ = element_count(in[1]->shape) / (in[1]->shape[0] * tokens_ * p_.key_dim);
  }

  std::size_t value(std::int64_t b, std::int64_t t) const {
    return at(((b * tokens_ + t) * local_heads_ + head_) * p_.value_dim);
  }
  std::size_t key(std::int64_t b, std::int64_t t) const {
    return at(((b * tokens_ + t) * key_rows_ + key_head_) * p_.key_dim);
  }
  std::size_t scalar(std::int64_t b, std::int64_t t) const { return at((b * tokens_ + t) * local_heads_ + head_); }
  std::size_t decay(std::int64_t n) const { return wide_decay_ ? at(head_ * p_.key_dim + n) : at(head_); }
  bool is_delta() const { return delta_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t local_heads() const { return local_heads_; }

  Token token(std::int64_t b, std::int64_t t) const {
    Token out;
    out.decay.assign(at(p_.key_dim), 1.0);
    const auto row = [&](std::size_t i, std::size_t from, std::int64_t n) {
      return std::vector<double>(in_[i]->values.begin() + static_cast<std::ptrdiff_t>(from),
                                 in_[i]->values.begin() + static_cast<std::ptrdiff_t>(from) + n);
    };
    out.value = row(0, value(b, t), p_.value_dim);
    switch (p_.kind) {
      case Kind::mamba1:
      case Kind::mamba2: {
        out.key = row(1, key(b, t), p_.key_dim), out.query = row(2, key(b, t), p_.key_dim);
        out.weight = softplus(in_[3]->values[scalar(b, t)] + in_[5]->values[at(head_)]);
        for (std::int64_t n = 0; n < p_.key_dim; ++n)
          out.decay[at(n)] = std::exp(-std::exp(in_[4]->values[decay(n)]) * out.weight);
        out.skip = in_[6]->values[at(head_)];
        break;
      }
      case Kind::gated_delta: {
        out.query = unit(&in_[1]->values[key(b, t)], p_.key_dim, scale());
        out.key = unit(&in_[2]->values[key(b, t)], p_.key_dim, 1.0);
        out.weight = sigmoid(in_[3]->values[scalar(b, t)]);
        for (std::int64_t n = 0; n < p_.key_dim; ++n)
          out.decay[at(n)] = std::exp(-std::exp(in_[5]->values[at(head_)]) * softplus(raw_decay(b, t, n)));
        break;
      }
      case Kind::gated_linear: {
        const double decay = linear_decay(scalar(b, t));
        out.decay = {decay}, out.key = {std::sqrt(1.0 - decay * decay)}, out.query = {1.0};
        out.value[0] *= sigmoid(in_[1]->values[scalar(b, t)]);
        break;
      }
      case Kind::lightning:
        out.query = row(1, key(b, t), p_.key_dim), out.key = row(2, key(b, t), p_.key_dim);
        for (std::vector<double>* x : {&out.query, &out.key, &out.value})
          for (double& number : *x) number = silu(number);
        std::fill(out.decay.begin(), out.decay.end(), std::exp(-slope()));
        break;
      case Kind::gated_convolution:
        break;  // has no recurrence
    }
    return out;
  }

  /// From the gradients of what a token means to those of the inputs it was made from.
  void add_gradients(std::int64_t b, std::int64_t t, const Token& token, const Token& grad,
                     std::vector<Numbers>& out) const {
    const auto add_row = [&](std::size_t i, std::size_t from, const std::vector<double>& row) {
      for (std::size_t k = 0; k < row.size(); ++k) out[i].values[from + k] += row[k];
    };
    switch (p_.kind) {
      case Kind::mamba1:
      case Kind::mamba2: {
        add_row(0, value(b, t), grad.value);
        add_row(1, key(b, t), grad.key), add_row(2, key(b, t), grad.query);
        double d_step = grad.weight;
        for (std::int64_t n = 0; n < p_.key_dim; ++n) {
          const double rate = std::exp(in_[4]->values[decay(n)]), d = grad.decay[at(n)] * token.decay[at(n)];
          d_step -= d * rate;
          out[4].values[decay(n)] -= d * rate * token.weight;
        }
        const double d_dt = d_step * sigmoid(in_[3]->values[scalar(b, t)] + in_[5]->values[at(head_)]);
        out[3].values[scalar(b, t)] += d_dt, out[5].values[at(head_)] += d_dt;
        out[6].values[at(head_)] += grad.skip;
        break;
      }
      case Kind::gated_delta: {
        add_row(0, value(b, t), grad.value);
        add_unit_grad(&out[1].values[key(b, t)], &in_[1]->values[key(b, t)], grad.query, scale());
        add_unit_grad(&out[2].values[key(b, t)], &in_[2]->values[key(b, t)], grad.key, 1.0);
        out[3].values[scalar(b, t)] += grad.weight * token.weight * (1.0 - token.weight);
        const double rate = std::exp(in_[5]->values[at(head_)]);
        for (std::int64_t n = 0; n < p_.key_dim; ++n) {
          const double raw = raw_decay(b, t, n), d = grad.decay[at(n)] * token.decay[at(n)];
          out[5].values[at(head_)] -= d * rate * softplus(raw);
          const double d_raw = -d * rate * sigmoid(raw);
          out[4].values[decay_input(b, t, n)] += d_raw, out[6].values[decay(n)] += d_raw;
        }
        break;
      }
      case Kind::gated_linear: {
        const std::size_t i = scalar(b, t);
        const double gate = sigmoid(in_[1]->values[i]), x = in_[0]->values[i], open = sigmoid(in_[2]->values[i]);
        out[0].values[i] += grad.value[0] * gate;
        out[1].values[i] += grad.value[0] * x * gate * (1.0 - gate);
        // decay = exp(-c r softplus(A)), and the key is the root of 1 - decay squared.
        const double d = (grad.decay[0] - grad.key[0] * token.decay[0] / token.key[0]) * token.decay[0];
        const double raw = in_[3]->values[at(head_)];
        out[2].values[i] -= d * linear_rate * softplus(raw) * open * (1.0 - open);
        out[3].values[at(head_)] -= d * linear_rate * open * sigmoid(raw);
        break;
      }
      case Kind::gated_convolution:
        break;
      case Kind::lightning: {
        const auto add_silu = [&](std::size_t i, std::size_t from, const std::vector<double>& row) {
          for (std::size_t k = 0; k < row.size(); ++k)
            out[i].values[from + k] += row[k] * silu_slope(in_[i]->values[from + k]);
        };
        add_silu(0, value(b, t), grad.value), add_silu(1, key(b, t), grad.query), add_silu(2, key(b, t), grad.key);
        break;
      }
    }
  }

 private:
  static constexpr double linear_rate = 8.0;  // of Griffin (De et al. 2024, equation 4)
  double linear_decay(std::size_t i) const {
    return std::exp(-linear_rate * sigmoid(in_[2]->values[i]) * softplus(in_[3]->values[at(head_)]));
  }
  /// Of the gated delta rule: one for a head, or for each of its key dimensions.
  std::size_t decay_input(std::int64_t b, std::int64_t t, std::int64_t n) const {
    return wide_decay_ ? scalar(b, t) * at(p_.key_dim) + at(n) : scalar(b, t);
  }
  double raw_decay(std::int64_t b, std::int64_t t, std::int64_t n) const {
    return in_[4]->values[decay_input(b, t, n)] + in_[6]->values[decay(n)];
  }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(p_.key_dim)); }
  /// How fast a head of lightning attention forgets: the first ones within a token or two, the last ones hardly.
  double slope() const {
    return std::exp2(-8.0 * static_cast<double>(p_.first_head + head_ + 1) / static_cast<double>(p_.heads));
  }

  const std::vector<const Numbers*>& in_;
  const RecurrencePlace& p_;
  std::int64_t head_, tokens_, local_heads_, key_head_, key_rows_;
  bool wide_decay_, delta_;
};

/// The state of one head, [key_dim, value_dim].
using State = std::vector<double>;

/// The state after decay, and what is written into it besides the key's weight.
void step_forward(const Token& token, bool delta, State& state, std::vector<double>& written) {
  const std::size_t values = token.value.size();
  for (std::size_t i = 0; i < state.size(); ++i) state[i] *= token.decay[i / values];
  written = token.value;
  for (std::size_t i = 0; delta && i < state.size(); ++i) written[i % values] -= state[i] * token.key[i / values];
}

}  // namespace

Numbers recurrence(const std::vector<const Numbers*>& in, const RecurrencePlace& place, Numbers* carried) {
  Numbers out = zeros<double>(in[0]->shape);
  const std::int64_t heads = Head(in, place, 0).local_heads(), sequences = in[0]->shape[0];
  const std::size_t values = at(place.value_dim);
  if (carried && carried->values.empty()) *carried = zeros<double>({heads, sequences, place.key_dim, place.value_dim});
  for (std::int64_t h = 0; h < heads; ++h) {
    const Head head(in, place, h);
    for (std::int64_t b = 0; b < in[0]->shape[0]; ++b) {
      State state(at(place.key_dim) * values, 0.0);
      double* const kept = carried ? &carried->values[at(h * sequences + b) * state.size()] : nullptr;
      if (kept) std::copy_n(kept, state.size(), state.begin());
      std::vector<double> written;
      for (std::int64_t t = 0; t < head.tokens(); ++t) {
        const Token token = head.token(b, t);
        step_forward(token, head.is_delta(), state, written);
        double* y = &out.values[head.value(b, t)];
        for (std::size_t i = 0; i < state.size(); ++i) {
          state[i] += token.weight * token.key[i / values] * written[i % values];
          y[i % values] += state[i] * token.query[i / values];
        }
        for (std::size_t v = 0; v < values; ++v) y[v] += token.skip * token.value[v];
      }
      if (kept) std::copy(state.begin(), state.end(), kept);
    }
  }
  return out;
}

std::vector<Numbers> recurrence_grad(const Numbers& dy, const std::vector<const Numbers*>& in,
                                     const RecurrencePlace& place) {
  std::vector<Numbers> out;
  for (const Numbers* x : in) out.push_back(zeros<double>(x->shape));
  const std::int64_t heads = Head(in, place, 0).local_heads();
  const std::size_t values = at(place.value_dim), keys = at(place.key_dim);
  for (std::int64_t h = 0; h < heads; ++h) {
    const Head head(in, place, h);
    for (std::int64_t b = 0; b < in[0]->shape[0]; ++b) {
      // States before each token, forward; then their gradients, backward.
      std::vector<State> before;
      State state(keys * values, 0.0);
      std::vector<double> written;
      for (std::int64_t t = 0; t < head.tokens(); ++t) {
        before.push_back(state);
        const Token token = head.token(b, t);
        step_forward(token, head.is_delta(), state, written);
        for (std::size_t i = 0; i < state.size(); ++i)
          state[i] += token.weight * token.key[i / values] * written[i % values];
      }
      State grad(keys * values, 0.0);
      for (std::int64_t t = head.tokens(); t-- > 0;) {
        const Token token = head.token(b, t);
        State decayed = before[at(t)];
        step_forward(token, head.is_delta(), decayed, written);
        const double* d = &dy.values[head.value(b, t)];
        Token g;
        g.decay.assign(keys, 0.0), g.key = g.query = g.decay, g.value.assign(values, 0.0);
        g.weight = 0, g.skip = 0;
        std::vector<double> d_written(values, 0.0);
        for (std::size_t i = 0; i < grad.size(); ++i) {
          const std::size_t n = i / values, v = i % values;
          const double after = decayed[i] + token.weight * token.key[n] * written[v];
          g.query[n] += after * d[v];
          grad[i] += token.query[n] * d[v];
          g.weight += grad[i] * token.key[n] * written[v];
          g.key[n] += token.weight * grad[i] * written[v];
          d_written[v] += token.weight * grad[i] * token.key[n];
        }
        for (std::size_t v = 0; v < values; ++v) {
          g.value[v] = d_written[v] + token.skip * d[v];
          g.skip += d[v] * token.value[v];
        }
        for (std::size_t i = 0; i < grad.size(); ++i) {
          const std::size_t n = i / values, v = i % values;
          if (head.is_delta()) {
            g.key[n] -= decayed[i] * d_written[v];
            grad[i] -= token.key[n] * d_written[v];
          }
          g.decay[n] += grad[i] * before[at(t)][i];
          grad[i] *= token.decay[n];
        }
        head.add_gradients(b, t, token, g, out);
      }
    }
  }
  return out;
}

namespace {

/// Calls back with (output, input, weight) of every product of a convolution, by their places.
template <class F>
void each_tap(const Numbers& x, std::int64_t width, F&& visit) {
  const std::int64_t tokens = x.shape[1], channels = x.shape[2];
  for (std::int64_t b = 0; b < x.shape[0]; ++b)
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t j = 0; j < width; ++j)
        if (const std::int64_t from = t - width + 1 + j; from >= 0)
          for (std::int64_t c = 0; c < channels; ++c)
            visit(at((b * tokens + t) * channels + c), at((b * tokens + from) * channels + c), at(c * width + j));
}

Numbers convolution_sums(const Numbers& x, const Numbers& weights, const Numbers* bias) {
  Numbers sums = zeros<double>(x.shape);
  const std::size_t channels = at(x.shape[2]);
  each_tap(x, weights.shape[1], [&](std::size_t y, std::size_t from, std::size_t w) {
    sums.values[y] += x.values[from] * weights.values[w];
  });
  for (std::size_t i = 0; bias && i < sums.values.size(); ++i) sums.values[i] += bias->values[i % channels];
  return sums;
}

}  // namespace

Numbers convolve(const Numbers& x, const Numbers& weights, const Numbers* bias, Numbers* before) {
  const std::int64_t reach = weights.shape[1] - 1, tokens = x.shape[1];
  Numbers out;
  if (before) {
    if (before->values.empty()) *before = zeros<double>({x.shape[0], reach, x.shape[2]});
    const std::vector<Numbers> both{*before, x};
    const Numbers all = joined(std::span<const Numbers>(both), 1);
    out = part(convolution_sums(all, weights, bias), 1, reach, tokens);
    *before = part(all, 1, tokens, reach);
  } else {
    out = convolution_sums(x, weights, bias);
  }
  for (double& value : out.values) value = silu(value);
  return out;
}

std::vector<Numbers> convolve_grad(const Numbers& dy, const Numbers& x, const Numbers& weights, const Numbers* bias) {
  Numbers d = convolution_sums(x, weights, bias);
  for (std::size_t i = 0; i < d.values.size(); ++i) d.values[i] = dy.values[i] * silu_slope(d.values[i]);
  std::vector<Numbers> out{zeros<double>(x.shape), zeros<double>(weights.shape)};
  each_tap(x, weights.shape[1], [&](std::size_t y, std::size_t from, std::size_t w) {
    out[0].values[from] += d.values[y] * weights.values[w];
    out[1].values[w] += d.values[y] * x.values[from];
  });
  if (!bias) return out;
  out.push_back(zeros<double>(bias->shape));
  for (std::size_t i = 0; i < d.values.size(); ++i) out[2].values[i % at(x.shape[2])] += d.values[i];
  return out;
}

}  // namespace assay
