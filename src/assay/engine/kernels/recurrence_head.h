// One head of a recurrence: where its inputs are, their meaning for a token, and the gradients of the inputs.
// Used only by kernels/recurrence.cpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "assay/engine/kernels/recurrence.h"

namespace assay::engine::recurrent {

using Kind = model::StateSpace::Kind;

/// One head's update for one token. All vectors have the key dimension, except the value.
struct Token {
  std::vector<double> decay, key, query, value;
  std::vector<double> removed, removal;  ///< read from the state to be removed, and where to remove it; empty: nothing
  std::vector<double> bonus;             ///< of the token itself, where the state is read before it; empty: after it
  double weight = 1, skip = 0;
};

/// A vector normalised to length one, or times a factor; and the gradient of the original vector.
inline std::vector<double> unit(const double* x, std::int64_t n, double factor) {
  double squares = 1e-6;
  for (std::int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  std::vector<double> out(at(n));
  for (std::int64_t i = 0; i < n; ++i) out[at(i)] = factor * x[i] / std::sqrt(squares);
  return out;
}
inline void add_unit_grad(double* dx, const double* x, const std::vector<double>& dy, double factor) {
  double squares = 1e-6, along = 0;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    squares += x[i] * x[i];
    along += x[i] * dy[i];
  }
  const double length = std::sqrt(squares);
  for (std::size_t i = 0; i < dy.size(); ++i) dx[i] += factor * (dy[i] - x[i] * along / squares) / length;
}

/// Whether the state has a normaliser in addition to the values.
inline bool has_normaliser(Kind kind) { return kind == Kind::rwkv4 || kind == Kind::mlstm; }

/// Gates of an mLSTM are soft-capped at this value (gate_soft_cap of xLSTM 7B).
inline constexpr double soft_cap = 15.0;
inline double capped(double x) { return soft_cap * std::tanh(x / soft_cap); }
inline double capped_slope(double x) { return 1.0 - std::tanh(x / soft_cap) * std::tanh(x / soft_cap); }

/// Where the inputs of a head are, and their meaning for the recurrence.
class Head {
 public:
  Head(const std::vector<const Array*>& in, const RecurrencePlace& place, std::int64_t head)
      : in_(in), p_(place), head_(head) {
    tokens_ = in[0]->shape[1];
    local_heads_ = element_count(in[0]->shape) / (in[0]->shape[0] * tokens_ * p_.value_dim);
    // Mamba 1 is one head for every channel, with a decay for every element of the state.
    wide_decay_ = p_.kind == Kind::mamba1 || (p_.kind == Kind::gated_delta &&
                                              element_count(in[4]->shape) > in[0]->shape[0] * tokens_ * local_heads_);
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
    if (has_normaliser(p_.kind)) out.value.push_back(1.0);
    switch (p_.kind) {
      case Kind::mamba1:
      case Kind::mamba2: {
        out.key = row(1, key(b, t), p_.key_dim);
        out.query = row(2, key(b, t), p_.key_dim);
        out.weight = softplus(in_[3]->values[scalar(b, t)] + in_[5]->values[at(head_)]);
        for (std::int64_t n = 0; n < p_.key_dim; ++n)
          out.decay[at(n)] = std::exp(-std::exp(in_[4]->values[decay(n)]) * out.weight);
        out.skip = in_[6]->values[at(head_)];
        break;
      }
      case Kind::gated_delta:
        fill_gated_delta(b, t, out);
        break;
      case Kind::gated_linear: {
        const double decay = linear_decay(scalar(b, t));
        out.decay = {decay};
        out.key = {std::sqrt(1.0 - decay * decay)};
        out.query = {1.0};
        out.value[0] *= sigmoid(in_[1]->values[scalar(b, t)]);
        break;
      }
      case Kind::lightning:
        out.query = row(1, key(b, t), p_.key_dim);
        out.key = row(2, key(b, t), p_.key_dim);
        for (std::vector<double>* x : {&out.query, &out.key, &out.value})
          for (double& number : *x) number = silu(number);
        std::fill(out.decay.begin(), out.decay.end(), std::exp(-slope()));
        break;
      case Kind::rwkv4:
        out.key = {std::exp(in_[1]->values[scalar(b, t)])};
        out.query = {1.0};
        out.decay = {std::exp(-std::exp(in_[2]->values[at(head_)]))};
        out.bonus = {std::exp(in_[3]->values[at(head_)])};
        break;
      case Kind::rwkv5:
        out.query = row(1, key(b, t), p_.key_dim);
        out.key = row(2, key(b, t), p_.key_dim);
        out.decay = row(3, rwkv5_decay(b, t), p_.key_dim);
        for (double& number : out.decay) number = std::exp(-std::exp(number));
        out.bonus = row(4, at(head_ * p_.key_dim), p_.key_dim);
        break;
      case Kind::rwkv7:
        out.query = row(1, key(b, t), p_.key_dim);
        out.key = row(2, key(b, t), p_.key_dim);
        fill_rwkv7(b, t, out);
        break;
      case Kind::mlstm:
        out.query = row(1, key(b, t), p_.key_dim);
        out.key = row(2, key(b, t), p_.key_dim);
        for (double& number : out.query) number *= scale();
        out.weight = std::exp(capped(in_[3]->values[scalar(b, t)]));
        std::fill(out.decay.begin(), out.decay.end(), sigmoid(capped(in_[4]->values[scalar(b, t)])));
        break;
      case Kind::gated_convolution:
        break;  // has no recurrence
    }
    return out;
  }

  /// Converts gradients of a token's update into gradients of the inputs it was computed from.
  void add_gradients(std::int64_t b, std::int64_t t, const Token& token, Token grad, std::vector<Array>& out) const {
    if (has_normaliser(p_.kind)) grad.value.pop_back();
    switch (p_.kind) {
      case Kind::mamba1:
      case Kind::mamba2:
        return add_mamba(b, t, token, grad, out);
      case Kind::gated_delta:
        return add_gated_delta(b, t, token, grad, out);
      case Kind::gated_linear:
        return add_gated_linear(b, t, token, grad, out);
      case Kind::gated_convolution:
        return;  // has no recurrence
      case Kind::lightning:
        return add_lightning(b, t, grad, out);
      case Kind::rwkv4:
        return add_rwkv4(b, t, token, grad, out);
      case Kind::rwkv5:
        return add_rwkv5(b, t, token, grad, out);
      case Kind::rwkv7:
        return add_rwkv7(b, t, token, grad, out);
      case Kind::mlstm:
        return add_mlstm(b, t, token, grad, out);
    }
  }

 private:
  static constexpr double linear_rate = 8.0;                // of Griffin (De et al. 2024, equation 4)
  static constexpr double rwkv7_rate = 0.6065306597126334;  // exp(-1/2) (Peng et al. 2025)
  double linear_decay(std::size_t i) const {
    return std::exp(-linear_rate * sigmoid(in_[2]->values[i]) * softplus(in_[3]->values[at(head_)]));
  }
  /// For the gated delta rule: one per head, or one per key dimension.
  std::size_t decay_input(std::int64_t b, std::int64_t t, std::int64_t n) const {
    return wide_decay_ ? scalar(b, t) * at(p_.key_dim) + at(n) : scalar(b, t);
  }
  double raw_decay(std::int64_t b, std::int64_t t, std::int64_t n) const {
    return in_[4]->values[decay_input(b, t, n)] + in_[6]->values[decay(n)];
  }
  /// For RWKV 5, the same for all tokens; for RWKV 6, the token's own.
  std::size_t rwkv5_decay(std::int64_t b, std::int64_t t) const {
    return element_count(in_[3]->shape) == element_count(in_[4]->shape) ? at(head_ * p_.key_dim) : key(b, t);
  }
  double key_scale(std::int64_t n, std::int64_t which) const {
    return in_[5]->values[at((head_ * p_.key_dim + n) * 3 + which)];
  }
  std::vector<double> scaled_key(const std::vector<double>& key) const {
    std::vector<double> out = key;
    for (std::size_t n = 0; n < out.size(); ++n) out[n] *= key_scale(static_cast<std::int64_t>(n), 0);
    return out;
  }
  std::vector<double> removed_key(const std::vector<double>& key) const {
    return unit(scaled_key(key).data(), p_.key_dim, 1.0);
  }

  void fill_gated_delta(std::int64_t b, std::int64_t t, Token& out) const {
    out.query = unit(&in_[1]->values[key(b, t)], p_.key_dim, scale());
    out.key = unit(&in_[2]->values[key(b, t)], p_.key_dim, 1.0);
    out.weight = sigmoid(in_[3]->values[scalar(b, t)]);
    for (std::int64_t n = 0; n < p_.key_dim; ++n)
      out.decay[at(n)] = std::exp(-std::exp(in_[5]->values[at(head_)]) * softplus(raw_decay(b, t, n)));
    out.removed = out.removal = out.key;  // the decayed state's value for the key
    for (std::size_t n = 0; n < out.key.size(); ++n) {
      out.removed[n] *= out.decay[n];
      out.removal[n] *= out.weight;
    }
  }
  /// From its queries and keys.
  void fill_rwkv7(std::int64_t b, std::int64_t t, Token& out) const {
    out.removed = removed_key(out.key);
    out.removal = out.removed;
    for (std::int64_t n = 0; n < p_.key_dim; ++n) {
      const double rate = sigmoid(in_[4]->values[key(b, t) + at(n)]);
      out.decay[at(n)] = std::exp(-rwkv7_rate * sigmoid(in_[3]->values[key(b, t) + at(n)]));
      out.removal[at(n)] *= rate;
      out.key[at(n)] *= 1.0 + (rate - 1.0) * key_scale(n, 1);
      out.skip += out.query[at(n)] * out.key[at(n)] * key_scale(n, 2);
    }
  }

  // Gradients of the inputs, by kind of recurrence.
  static void add_row(std::vector<Array>& out, std::size_t i, std::size_t from, const std::vector<double>& row) {
    for (std::size_t k = 0; k < row.size(); ++k) out[i].values[from + k] += row[k];
  }
  void add_mamba(std::int64_t b, std::int64_t t, const Token& token, Token& grad, std::vector<Array>& out) const {
    add_row(out, 0, value(b, t), grad.value);
    add_row(out, 1, key(b, t), grad.key);
    add_row(out, 2, key(b, t), grad.query);
    double d_step = grad.weight;
    for (std::int64_t n = 0; n < p_.key_dim; ++n) {
      const double rate = std::exp(in_[4]->values[decay(n)]), d = grad.decay[at(n)] * token.decay[at(n)];
      d_step -= d * rate;
      out[4].values[decay(n)] -= d * rate * token.weight;
    }
    const double d_dt = d_step * sigmoid(in_[3]->values[scalar(b, t)] + in_[5]->values[at(head_)]);
    out[3].values[scalar(b, t)] += d_dt, out[5].values[at(head_)] += d_dt;
    out[6].values[at(head_)] += grad.skip;
  }
  void add_gated_delta(std::int64_t b, std::int64_t t, const Token& token, Token& grad, std::vector<Array>& out) const {
    for (std::size_t n = 0; n < token.key.size(); ++n) {
      grad.decay[n] += grad.removed[n] * token.key[n];
      grad.key[n] += grad.removed[n] * token.decay[n] + grad.removal[n] * token.weight;
      grad.weight += grad.removal[n] * token.key[n];
    }
    add_row(out, 0, value(b, t), grad.value);
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
  }
  void add_gated_linear(std::int64_t b, std::int64_t t, const Token& token, Token& grad,
                        std::vector<Array>& out) const {
    const std::size_t i = scalar(b, t);
    const double gate = sigmoid(in_[1]->values[i]), x = in_[0]->values[i], open = sigmoid(in_[2]->values[i]);
    out[0].values[i] += grad.value[0] * gate;
    out[1].values[i] += grad.value[0] * x * gate * (1.0 - gate);
    // decay = exp(-c r softplus(A)), and the key is the root of 1 - decay squared.
    const double d = (grad.decay[0] - grad.key[0] * token.decay[0] / token.key[0]) * token.decay[0];
    const double raw = in_[3]->values[at(head_)];
    out[2].values[i] -= d * linear_rate * softplus(raw) * open * (1.0 - open);
    out[3].values[at(head_)] -= d * linear_rate * open * sigmoid(raw);
  }
  void add_lightning(std::int64_t b, std::int64_t t, const Token& grad, std::vector<Array>& out) const {
    const auto add_silu = [&](std::size_t i, std::size_t from, const std::vector<double>& row) {
      for (std::size_t k = 0; k < row.size(); ++k)
        out[i].values[from + k] += row[k] * silu_slope(in_[i]->values[from + k]);
    };
    add_silu(0, value(b, t), grad.value);
    add_silu(1, key(b, t), grad.query);
    add_silu(2, key(b, t), grad.key);
  }
  void add_rwkv4(std::int64_t b, std::int64_t t, const Token& token, Token& grad, std::vector<Array>& out) const {
    add_row(out, 0, value(b, t), grad.value);
    out[1].values[scalar(b, t)] += grad.key[0] * token.key[0];
    out[2].values[at(head_)] += grad.decay[0] * token.decay[0] * std::log(token.decay[0]);
    out[3].values[at(head_)] += grad.bonus[0] * token.bonus[0];
  }
  void add_rwkv5(std::int64_t b, std::int64_t t, const Token& token, Token& grad, std::vector<Array>& out) const {
    add_row(out, 0, value(b, t), grad.value);
    add_row(out, 1, key(b, t), grad.query);
    add_row(out, 2, key(b, t), grad.key);
    for (std::size_t n = 0; n < token.key.size(); ++n)
      out[3].values[rwkv5_decay(b, t) + n] += grad.decay[n] * token.decay[n] * std::log(token.decay[n]);
    add_row(out, 4, at(head_ * p_.key_dim), grad.bonus);
  }
  void add_mlstm(std::int64_t b, std::int64_t t, const Token& token, Token& grad, std::vector<Array>& out) const {
    add_row(out, 0, value(b, t), grad.value);
    add_row(out, 2, key(b, t), grad.key);
    for (double& number : grad.query) number *= scale();
    add_row(out, 1, key(b, t), grad.query);
    const std::size_t i = scalar(b, t);
    const double forget = token.decay[0];
    out[3].values[i] += grad.weight * token.weight * capped_slope(in_[3]->values[i]);
    for (const double d : grad.decay) out[4].values[i] += d * forget * (1.0 - forget) * capped_slope(in_[4]->values[i]);
  }
  void add_rwkv7(std::int64_t b, std::int64_t t, const Token& token, Token& grad, std::vector<Array>& out) const {
    const std::size_t first = key(b, t);
    const std::vector<double> raw(in_[2]->values.begin() + static_cast<std::ptrdiff_t>(first),
                                  in_[2]->values.begin() + static_cast<std::ptrdiff_t>(first) + p_.key_dim);
    std::vector<double> d_scaled(raw.size(), 0.0);
    for (std::int64_t n = 0; n < p_.key_dim; ++n) {
      const std::size_t i = at(n), scales = at((head_ * p_.key_dim + n) * 3);
      const double rate = sigmoid(in_[4]->values[first + i]), open = sigmoid(in_[3]->values[first + i]);
      grad.query[i] += grad.skip * token.key[i] * key_scale(n, 2);
      grad.key[i] += grad.skip * token.query[i] * key_scale(n, 2);
      out[5].values[scales + 2] += grad.skip * token.query[i] * token.key[i];
      out[1].values[first + i] += grad.query[i];
      out[2].values[first + i] += grad.key[i] * (1.0 + (rate - 1.0) * key_scale(n, 1));
      out[5].values[scales + 1] += grad.key[i] * raw[i] * (rate - 1.0);
      const double d_rate = grad.key[i] * raw[i] * key_scale(n, 1) + grad.removal[i] * token.removed[i];
      out[4].values[first + i] += d_rate * rate * (1.0 - rate);
      out[3].values[first + i] -= grad.decay[i] * token.decay[i] * rwkv7_rate * open * (1.0 - open);
      grad.removed[i] += grad.removal[i] * rate;
    }
    add_unit_grad(d_scaled.data(), scaled_key(raw).data(), grad.removed, 1.0);
    for (std::int64_t n = 0; n < p_.key_dim; ++n) {
      out[2].values[first + at(n)] += d_scaled[at(n)] * key_scale(n, 0);
      out[5].values[at((head_ * p_.key_dim + n) * 3)] += d_scaled[at(n)] * raw[at(n)];
    }
    for (std::size_t v = 0; v < grad.value.size(); ++v) out[0].values[value(b, t) + v] += grad.value[v];
  }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(p_.key_dim)); }
  /// How fast a head of lightning attention forgets: the first heads within a token or two, the last hardly at all.
  double slope() const {
    return std::exp2(-8.0 * static_cast<double>(p_.first_head + head_ + 1) / static_cast<double>(p_.heads));
  }

  const std::vector<const Array*>& in_;
  const RecurrencePlace& p_;
  std::int64_t head_, tokens_, local_heads_, key_head_, key_rows_;
  bool wide_decay_;
};

}  // namespace assay::engine::recurrent
