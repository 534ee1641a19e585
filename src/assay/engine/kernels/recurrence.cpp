#include "assay/engine/kernels/recurrence.h"

#include <algorithm>
#include <cmath>

#include "assay/base/index.h"
#include "assay/engine/kernels/activations.h"
#include "assay/engine/kernels/recurrence_head.h"

namespace assay::engine::recurrent {
namespace {

/// The state of one head, [key_dim, values]: the token's values, plus a constant 1 if there is a normaliser.
using State = std::vector<double>;

/// The amount a token removes, per value.
std::vector<double> removed_values(const Token& token, const State& before) {
  const std::size_t values = token.value.size();
  std::vector<double> out(values, 0.0);
  for (std::size_t i = 0; !token.removed.empty() && i < before.size(); ++i)
    out[i % values] += before[i] * token.removed[i / values];
  return out;
}

State after(const Token& token, const State& before) {
  const std::size_t values = token.value.size();
  const std::vector<double> removed = removed_values(token, before);
  State out = before;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t n = i / values, v = i % values;
    out[i] = token.decay[n] * before[i] + token.weight * token.key[n] * token.value[v];
    if (!token.removal.empty()) out[i] -= token.removal[n] * removed[v];
  }
  return out;
}

/// The query's result from the state it reads.
std::vector<double> found(const Token& token, const State& before, const State& now) {
  const std::size_t values = token.value.size();
  std::vector<double> out(values, 0.0);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::size_t n = i / values, v = i % values;
    out[v] +=
        token.query[n] * (token.bonus.empty() ? now[i] : before[i] + token.bonus[n] * token.key[n] * token.value[v]);
  }
  return out;
}

/// The last value of a normalised result divides the others; for an mLSTM it is at least one.
double divisor(Kind kind, double normaliser) {
  return kind == Kind::mlstm ? std::max(std::abs(normaliser), 1.0) : normaliser;
}
double divisor_slope(Kind kind, double normaliser) {
  return kind != Kind::mlstm ? 1.0 : std::abs(normaliser) <= 1.0 ? 0.0 : normaliser > 0 ? 1.0 : -1.0;
}

}  // namespace
}  // namespace assay::engine::recurrent

namespace assay::engine {

std::vector<Array> recurrence(const std::vector<const Array*>& in, const RecurrencePlace& place, Array* carried) {
  using recurrent::after, recurrent::divisor, recurrent::found, recurrent::has_normaliser;
  using recurrent::Head, recurrent::Kind, recurrent::State, recurrent::Token;
  const bool apart = place.kind == Kind::rwkv7;
  std::vector<Array> out(apart ? 2 : 1, zeros(in[0]->shape));
  const std::int64_t heads = Head(in, place, 0).local_heads(), sequences = in[0]->shape[0];
  const std::size_t values = at(place.value_dim);
  const std::int64_t columns = place.value_dim + (has_normaliser(place.kind) ? 1 : 0);
  if (carried && carried->values.empty()) *carried = zeros({heads, sequences, place.key_dim, columns});
  for (std::int64_t h = 0; h < heads; ++h) {
    const Head head(in, place, h);
    for (std::int64_t b = 0; b < in[0]->shape[0]; ++b) {
      State state(at(place.key_dim * columns), 0.0);
      double* const kept = carried ? &carried->values[at(h * sequences + b) * state.size()] : nullptr;
      if (kept) std::copy_n(kept, state.size(), state.begin());
      for (std::int64_t t = 0; t < head.tokens(); ++t) {
        const Token token = head.token(b, t);
        const State now = after(token, state);
        std::vector<double> result = found(token, state, now);
        if (has_normaliser(place.kind))
          for (std::size_t v = 0; v < values; ++v) result[v] /= divisor(place.kind, result[values]);
        for (std::size_t v = 0; v < values; ++v) {
          out[0].values[head.value(b, t) + v] = result[v];
          out.back().values[head.value(b, t) + v] += token.skip * token.value[v];
        }
        state = now;
      }
      if (kept) std::copy(state.begin(), state.end(), kept);
    }
  }
  return out;
}

std::vector<Array> recurrence_grad(const std::vector<const Array*>& dy, const std::vector<const Array*>& in,
                                   const RecurrencePlace& place) {
  using recurrent::after, recurrent::divisor, recurrent::found, recurrent::has_normaliser;
  using recurrent::divisor_slope, recurrent::removed_values;
  using recurrent::Head, recurrent::State, recurrent::Token;
  std::vector<Array> out;
  for (const Array* x : in) out.push_back(zeros(x->shape));
  const std::int64_t heads = Head(in, place, 0).local_heads();
  const std::size_t values = at(place.value_dim), keys = at(place.key_dim);
  const std::size_t columns = values + (has_normaliser(place.kind) ? 1 : 0);
  for (std::int64_t h = 0; h < heads; ++h) {
    const Head head(in, place, h);
    for (std::int64_t b = 0; b < in[0]->shape[0]; ++b) {
      // States before each token, forward; then their gradients, backward.
      std::vector<State> states{State(keys * columns, 0.0)};
      for (std::int64_t t = 0; t < head.tokens(); ++t) states.push_back(after(head.token(b, t), states.back()));
      State grad(keys * columns, 0.0);
      for (std::int64_t t = head.tokens(); t-- > 0;) {
        const Token token = head.token(b, t);
        const State &before = states[at(t)], &now = states[at(t) + 1];
        const std::vector<double> removed = removed_values(token, before);
        const double* arriving = &dy.front()->values[head.value(b, t)];
        std::vector<double> d(arriving, arriving + values);
        if (has_normaliser(place.kind)) {
          const std::vector<double> result = found(token, before, now);
          const double below = divisor(place.kind, result[values]);
          double d_below = 0;
          for (std::size_t v = 0; v < values; ++v) {
            d_below -= d[v] * result[v] / (below * below);
            d[v] /= below;
          }
          d.push_back(d_below * divisor_slope(place.kind, result[values]));
        }
        Token g;
        g.decay.assign(keys, 0.0);
        g.key = g.query = g.removed = g.removal = g.bonus = g.decay;
        g.value.assign(columns, 0.0);
        g.weight = 0;
        g.skip = 0;
        State earlier(grad.size(), 0.0);  // gradient of the state before the token
        std::vector<double> d_removed(columns, 0.0);
        const bool reads_before = !token.bonus.empty();
        for (std::size_t i = 0; i < grad.size(); ++i) {
          const std::size_t n = i / columns, v = i % columns;
          if (reads_before) {
            const double own = token.bonus[n] * token.key[n] * token.value[v];
            g.query[n] += (before[i] + own) * d[v];
            g.bonus[n] += token.query[n] * token.key[n] * token.value[v] * d[v];
            g.key[n] += token.query[n] * token.bonus[n] * token.value[v] * d[v];
            g.value[v] += token.query[n] * token.bonus[n] * token.key[n] * d[v];
            earlier[i] += token.query[n] * d[v];
          } else {
            g.query[n] += now[i] * d[v];
            grad[i] += token.query[n] * d[v];
          }
          g.weight += grad[i] * token.key[n] * token.value[v];
          g.key[n] += token.weight * grad[i] * token.value[v];
          g.value[v] += token.weight * grad[i] * token.key[n];
          g.decay[n] += grad[i] * before[i];
          earlier[i] += grad[i] * token.decay[n];
          if (token.removal.empty()) continue;
          g.removal[n] -= grad[i] * removed[v];
          d_removed[v] -= grad[i] * token.removal[n];
        }
        for (std::size_t i = 0; !token.removed.empty() && i < grad.size(); ++i) {
          g.removed[i / columns] += before[i] * d_removed[i % columns];
          earlier[i] += token.removed[i / columns] * d_removed[i % columns];
        }
        for (std::size_t v = 0; v < values; ++v) {
          const double beside = dy.back()->values[head.value(b, t) + v];
          g.value[v] += token.skip * beside;
          g.skip += beside * token.value[v];
        }
        head.add_gradients(b, t, token, g, out);
        grad = std::move(earlier);
      }
    }
  }
  return out;
}

}  // namespace assay::engine
