// Recurrences against other ways to write them, and their gradients against finite differences, with numbers large
// enough that every branch is taken.
#include "assay/engine/kernels/recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace assay::engine {
namespace {

using Kind = model::StateSpace::Kind;

constexpr std::int64_t batch = 2, steps = 5, head_count = 2;

struct Case {
  RecurrencePlace place;
  std::vector<Array> in;

  std::vector<const Array*> inputs() const {
    std::vector<const Array*> out;
    for (const Array& x : in) out.push_back(&x);
    return out;
  }
};

Case made(Kind kind, std::int64_t key_dim, std::int64_t value_dim, const std::vector<Shape>& shapes, double spread) {
  Case out;
  out.place = {kind, 0, 0, head_count, head_count, key_dim, value_dim};
  for (const Shape& shape : shapes) {
    out.in.push_back(random_reals(shape, 11 + out.in.size()));
    for (double& value : out.in.back().values) value *= spread;
  }
  return out;
}

Case rwkv4() {
  const Shape each{batch, steps, head_count};
  return made(Kind::rwkv4, 1, 1, {each, each, {head_count}, {head_count}}, 2.0);
}

Case mlstm() {
  const Shape keys{batch, steps, head_count, 3}, gate{batch, steps, head_count};
  return made(Kind::mlstm, 3, 2, {{batch, steps, head_count * 2}, keys, keys, gate, gate}, 2.0);
}

std::vector<Case> cases() {
  const Shape values{batch, steps, head_count * 2}, keys{batch, steps, head_count, 3};
  return {rwkv4(), mlstm(), made(Kind::rwkv5, 3, 2, {values, keys, keys, {head_count, 3}, {head_count, 3}}, 1.0),
          made(Kind::rwkv5, 3, 2, {values, keys, keys, keys, {head_count, 3}}, 1.0),
          made(Kind::rwkv7, 3, 2, {values, keys, keys, keys, keys, {head_count, 3, 3}}, 1.0)};
}

// Every earlier token has the weight exp(k - (t - 1 - i) exp(A)), the token itself exp(k + bonus).
TEST(Recurrence, Rwkv4IsAWeightedAverage) {
  const Case c = rwkv4();
  const Array y = recurrence(c.inputs(), c.place).front();
  const auto at = [&](std::int64_t b, std::int64_t t, std::int64_t h) {
    return static_cast<std::size_t>((b * steps + t) * head_count + h);
  };
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < head_count; ++h)
      for (std::int64_t t = 0; t < steps; ++t) {
        const auto head = static_cast<std::size_t>(h);
        double sum = 0, weights = 0;
        for (std::int64_t i = 0; i <= t; ++i) {
          const double k = c.in[1].values[at(b, i, h)], past = static_cast<double>(t - 1 - i);
          const double w = std::exp(i < t ? k - past * std::exp(c.in[2].values[head]) : k + c.in[3].values[head]);
          sum += w * c.in[0].values[at(b, i, h)];
          weights += w;
        }
        EXPECT_NEAR(y.values[at(b, t, h)], sum / weights, 1e-12);
      }
}

// As kernels compute it: scaled by the largest exponent so far (Beck et al. 2024).
TEST(Recurrence, AnMlstmIsItsStabilisedForm) {
  const Case c = mlstm();
  const Array y = recurrence(c.inputs(), c.place).front();
  const auto cap = [](double x) { return 15.0 * std::tanh(x / 15.0); };
  bool above = false, below = false;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < head_count; ++h) {
      double state[3][2] = {}, normaliser[3] = {}, most = 0;
      for (std::int64_t t = 0; t < steps; ++t) {
        const auto row = static_cast<std::size_t>((b * steps + t) * head_count + h);
        const double input = cap(c.in[3].values[row]), forget = -std::log1p(std::exp(-cap(c.in[4].values[row])));
        const double next = std::max(forget + most, input);
        const double keep = std::exp(forget + most - next), write = std::exp(input - next);
        most = next;
        double found[2] = {}, norm = 0;
        for (std::size_t n = 0; n < 3; ++n) {
          const double k = c.in[2].values[3 * row + n], q = c.in[1].values[3 * row + n] / std::sqrt(3.0);
          normaliser[n] = keep * normaliser[n] + write * k;
          norm += q * normaliser[n];
          for (std::size_t v = 0; v < 2; ++v) {
            state[n][v] = keep * state[n][v] + write * k * c.in[0].values[2 * row + v];
            found[v] += q * state[n][v];
          }
        }
        (std::abs(norm) > std::exp(-most) ? above : below) = true;
        for (std::size_t v = 0; v < 2; ++v)
          EXPECT_NEAR(y.values[2 * row + v], found[v] / std::max(std::abs(norm), std::exp(-most)), 1e-12);
      }
    }
  EXPECT_TRUE(above && below);
}

/// One number of an input of heads [b, s, h, 3], or of weights [h, 3].
double number(const Array& x, std::int64_t b, std::int64_t t, std::int64_t h, std::size_t n) {
  const std::int64_t row = x.shape.size() == 2 ? h : (b * steps + t) * head_count + h;
  return x.values[3 * static_cast<std::size_t>(row) + n];
}

// y = r' (S + diag(u) k v'), then S <- diag(exp(-exp(w))) S + k v' (Peng et al. 2024).
TEST(Recurrence, Rwkv5And6AreTheirDefinition) {
  for (const Case& c : {cases()[2], cases()[3]}) {
    const Array y = recurrence(c.inputs(), c.place).front();
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < head_count; ++h) {
        double state[3][2] = {};
        for (std::int64_t t = 0; t < steps; ++t)
          for (std::size_t v = 0; v < 2; ++v) {
            const std::size_t at = 2 * static_cast<std::size_t>((b * steps + t) * head_count + h) + v;
            const auto of = [&](std::size_t input, std::size_t n) { return number(c.in[input], b, t, h, n); };
            double expected = 0;
            for (std::size_t n = 0; n < 3; ++n) {
              const double written = of(2, n) * c.in[0].values[at];
              expected += of(1, n) * (state[n][v] + of(4, n) * written);
              state[n][v] = std::exp(-std::exp(of(3, n))) * state[n][v] + written;
            }
            EXPECT_NEAR(y.values[at], expected, 1e-12);
          }
      }
  }
}

// S <- S (diag(w) - kk' (a kk)) + v' k as a product of matrices, values by keys; the bonus is a result of its own
// (Peng et al. 2025).
TEST(Recurrence, Rwkv7IsItsDefinition) {
  const Case c = cases()[4];
  const std::vector<Array> y = recurrence(c.inputs(), c.place);
  ASSERT_EQ(y.size(), 2U);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < head_count; ++h) {
      double state[2][3] = {};
      for (std::int64_t t = 0; t < steps; ++t) {
        const auto of = [&](std::size_t input, std::size_t n) { return number(c.in[input], b, t, h, n); };
        const auto scale = [&](std::size_t n, std::size_t which) {
          return c.in[5].values[(static_cast<std::size_t>(h) * 3 + n) * 3 + which];
        };
        double unit[3], key[3], step[3][3], length = 1e-6, bonus = 0;
        for (std::size_t n = 0; n < 3; ++n) length += std::pow(of(2, n) * scale(n, 0), 2);
        for (std::size_t n = 0; n < 3; ++n) {
          unit[n] = of(2, n) * scale(n, 0) / std::sqrt(length);
          key[n] = of(2, n) * (1 + (sigmoid(of(4, n)) - 1) * scale(n, 1));
          bonus += of(1, n) * key[n] * scale(n, 2);
        }
        for (std::size_t m = 0; m < 3; ++m)
          for (std::size_t n = 0; n < 3; ++n)
            step[m][n] =
                (m == n ? std::exp(-std::exp(-0.5) * sigmoid(of(3, n))) : 0.0) - unit[m] * unit[n] * sigmoid(of(4, n));
        for (std::size_t v = 0; v < 2; ++v) {
          const std::size_t at = 2 * static_cast<std::size_t>((b * steps + t) * head_count + h) + v;
          double next[3] = {}, expected = 0;
          for (std::size_t n = 0; n < 3; ++n) {
            for (std::size_t m = 0; m < 3; ++m) next[n] += state[v][m] * step[m][n];
            next[n] += c.in[0].values[at] * key[n];
            expected += next[n] * of(1, n);
          }
          std::copy(next, next + 3, state[v]);
          EXPECT_NEAR(y[0].values[at], expected, 1e-12);
          EXPECT_NEAR(y[1].values[at], bonus * c.in[0].values[at], 1e-12);
        }
      }
    }
}

TEST(Recurrence, GradientsAreFiniteDifferences) {
  constexpr double step = 1e-6;
  for (const Case& c : cases()) {
    const std::vector<Array> results = recurrence(c.inputs(), c.place);
    std::vector<Array> weights;  // of the results in what is differentiated
    for (const Array& result : results) weights.push_back(random_reals(result.shape, 7 + weights.size()));
    const auto total = [&](const Case& with) {
      const std::vector<Array> made_now = recurrence(with.inputs(), with.place);
      double sum = 0;
      for (std::size_t r = 0; r < weights.size(); ++r)
        for (std::size_t i = 0; i < weights[r].values.size(); ++i) sum += weights[r].values[i] * made_now[r].values[i];
      return sum;
    };
    std::vector<const Array*> dy;
    for (const Array& w : weights) dy.push_back(&w);
    const std::vector<Array> gradients = recurrence_grad(dy, c.inputs(), c.place);
    ASSERT_EQ(gradients.size(), c.in.size());
    for (std::size_t n = 0; n < c.in.size(); ++n)
      for (std::size_t i = 0; i < c.in[n].values.size(); ++i) {
        Case more = c, less = c;
        more.in[n].values[i] += step;
        less.in[n].values[i] -= step;
        const double expected = (total(more) - total(less)) / (2 * step);
        EXPECT_NEAR(gradients[n].values[i], expected, 1e-7 * std::max(1.0, std::abs(expected)))
            << static_cast<int>(c.place.kind) << ", input " << n << ", " << i;
      }
  }
}

}  // namespace
}  // namespace assay::engine
