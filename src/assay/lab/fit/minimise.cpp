#include "assay/lab/fit/minimise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace assay::validate {
namespace {

using Point = std::vector<double>;

struct Vertex {
  Point at;
  double value = 0;
};

class Simplex {
 public:
  Simplex(const std::vector<FitParameter>& parameters, const std::function<double()>& objective)
      : parameters_(parameters), objective_(objective) {}

  /// One run from `start` with edges of `size` in the logarithm.
  Vertex run(const Point& start, double size, int evaluations) {
    const std::size_t n = start.size();
    std::vector<Vertex> all{{start, evaluate(start)}};
    for (std::size_t i = 0; i < n; ++i) {
      Point p = start;
      const double up = std::log(parameters_[i].high);
      p[i] += p[i] + size <= up ? size : -size;
      all.push_back({p, evaluate(p)});
    }
    for (used_ = 0; used_ < evaluations;) {
      std::sort(all.begin(), all.end(), [](const Vertex& a, const Vertex& b) { return a.value < b.value; });
      if (all.back().value - all.front().value < 1e-9) break;
      Point centre(n, 0.0);
      for (std::size_t v = 0; v < n; ++v)
        for (std::size_t i = 0; i < n; ++i) centre[i] += all[v].at[i] / static_cast<double>(n);
      Vertex reflected = along(centre, all.back().at, -1.0);
      if (reflected.value < all.front().value) {
        Vertex farther = along(centre, all.back().at, -2.0);
        all.back() = farther.value < reflected.value ? farther : reflected;
      } else if (reflected.value < all[n - 1].value) {
        all.back() = reflected;
      } else {
        Vertex nearer = along(centre, reflected.value < all.back().value ? reflected.at : all.back().at, 0.5);
        if (nearer.value < std::min(reflected.value, all.back().value)) {
          all.back() = nearer;
        } else {
          for (std::size_t v = 1; v <= n; ++v) all[v] = along(all.front().at, all[v].at, 0.5);
        }
      }
    }
    return *std::min_element(all.begin(), all.end(),
                             [](const Vertex& a, const Vertex& b) { return a.value < b.value; });
  }

  double evaluate(Point& p) {
    ++used_;
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] = std::clamp(p[i], std::log(parameters_[i].low), std::log(parameters_[i].high));
      parameters_[i].set(std::exp(p[i]));
    }
    double value = objective_();
    for (std::size_t i = 0; i < p.size(); ++i)
      if (const FitParameter& each = parameters_[i]; each.pull > 0.0) {
        const double off = (p[i] - std::log(each.from)) / std::log(1.5);
        value += each.pull * off * off;
      }
    return value;
  }
  double evaluate(const Point& p) {
    Point copy = p;
    return evaluate(copy);
  }

 private:
  Vertex along(const Point& from, const Point& to, double share) {
    Vertex vertex{from, 0.0};
    for (std::size_t i = 0; i < from.size(); ++i) vertex.at[i] += share * (to[i] - from[i]);
    vertex.value = evaluate(vertex.at);
    return vertex;
  }

  const std::vector<FitParameter>& parameters_;
  const std::function<double()>& objective_;
  int used_ = 0;
};

/// Numbers that are moved together.
class AtOnce {
 public:
  AtOnce(std::vector<TunedNumber>& numbers, const FittedRows& rows) : numbers_(numbers), rows_(rows) {}

  /// Starts each number at the best of a few values over its range: no slope tells of a floor that never applies.
  void scan() {
    constexpr int steps = 6;
    settle();
    residuals_ = residuals();
    for (std::size_t j = 0; j < numbers_.size(); ++j) {
      const FitParameter& parameter = numbers_[j].parameter;
      double at = numbers_[j].value(), best = objective(residuals_);
      std::vector<double> found = residuals_;
      for (int step = 1; step < steps; ++step) {
        const double x = parameter.low * std::pow(parameter.high / parameter.low, static_cast<double>(step) / steps);
        parameter.set(x);
        std::vector<double> tried = residuals_;
        for (const std::size_t i : numbers_[j].rows) tried[i] = rows_.residual(i);
        if (const double value = objective(tried); value < best) {
          best = value;
          at = x;
          found = tried;
        }
      }
      parameter.set(at);
      residuals_ = found;
    }
  }

  void run(int rounds) {
    double reach = 0.3;
    for (int round = 0; round < rounds && reach > 0.003; ++round) {
      settle();
      residuals_ = residuals();
      const double before = objective(residuals_);
      const std::vector<double> from = values(), step = best_step(slopes(), reach);
      set(from, step, 1.0);
      double after = objective(residuals());
      if (!(after < before)) {
        set(from, step, 0.3);
        after = objective(residuals());
        reach *= 0.4;
      }
      if (!(after < before)) set(from, step, 0.0);
    }
  }

 private:
  using Row = std::vector<double>;

  std::size_t size() const { return rows_.weights.size(); }
  void settle() const {
    if (rows_.settle) rows_.settle();
  }
  Row residuals() {
    Row out;
    for (std::size_t i = 0; i < size(); ++i) out.push_back(rows_.residual(i));
    return out;
  }
  double objective(const Row& residuals) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < size(); ++i)
      if (!std::isnan(residuals[i])) sum += rows_.weights[i] * std::min(rows_.most_misfit, std::abs(residuals[i]));
    for (const TunedNumber& number : numbers_) sum += number.strangeness();
    return sum;
  }
  Row values() const {
    Row out;
    for (const TunedNumber& number : numbers_) out.push_back(std::log(number.value()));
    return out;
  }
  void set(const Row& from, const Row& step, double share) {
    for (std::size_t j = 0; j < numbers_.size(); ++j) {
      const FitParameter& parameter = numbers_[j].parameter;
      parameter.set(std::clamp(std::exp(from[j] + share * step[j]), parameter.low, parameter.high));
    }
  }

  /// By number, of the rows it touches.
  std::vector<Row> slopes() {
    constexpr double aside = 0.03;
    std::vector<Row> out;
    for (std::size_t j = 0; j < numbers_.size(); ++j) {
      const double at = numbers_[j].value();
      const double sign = at * std::exp(aside) <= numbers_[j].parameter.high ? 1.0 : -1.0;
      numbers_[j].parameter.set(at * std::exp(sign * aside));
      Row& slope = out.emplace_back(size(), 0.0);
      for (const std::size_t i : numbers_[j].rows)
        if (const double moved = rows_.residual(i); !std::isnan(moved) && !std::isnan(residuals_[i]))
          slope[i] = (moved - residuals_[i]) / (sign * aside);
      numbers_[j].parameter.set(at);
    }
    return out;
  }

  /// The least weighted sum of absolute values by squares that are weighted anew; no number moves further than `reach`
  /// or beyond its bounds.
  Row best_step(const std::vector<Row>& slopes, double reach) const {
    const std::size_t n = numbers_.size();
    Row step(n, 0.0), left = residuals_;
    constexpr double smooth = 0.004;
    for (int round = 0; round < 40; ++round) {
      std::vector<Row> matrix(n, Row(n + 1, 0.0));
      for (std::size_t i = 0; i < size(); ++i) {
        if (std::isnan(left[i]) || std::abs(residuals_[i]) > rows_.most_misfit) continue;
        const double weight = rows_.weights[i] / std::max(smooth, std::abs(left[i]));
        for (std::size_t j = 0; j < n; ++j) {
          if (slopes[j][i] == 0.0) continue;
          for (std::size_t k = 0; k < n; ++k) matrix[j][k] += weight * slopes[j][i] * slopes[k][i];
          matrix[j][n] -= weight * slopes[j][i] * residuals_[i];
        }
      }
      constexpr double per_log = 2.0 / (0.405465 * 0.405465);  // of the pull, by the logarithm of 1.5
      for (std::size_t j = 0; j < n; ++j) {
        matrix[j][j] += numbers_[j].stiffness * per_log + 1e-9;
        matrix[j][n] -= numbers_[j].stiffness * per_log * numbers_[j].off() * 0.405465;
      }
      step = within(matrix, reach);
      for (std::size_t i = 0; i < size(); ++i) {
        left[i] = residuals_[i];
        for (std::size_t j = 0; j < n; ++j) left[i] += slopes[j][i] * step[j];
      }
    }
    return step;
  }

  /// Solves for a step inside of its box, one coordinate after the other.
  Row within(const std::vector<Row>& matrix, double reach) const {
    const std::size_t n = numbers_.size();
    Row step(n, 0.0);
    for (int round = 0; round < 60; ++round)
      for (std::size_t j = 0; j < n; ++j) {
        double rest = matrix[j][n];
        for (std::size_t k = 0; k < n; ++k)
          if (k != j) rest -= matrix[j][k] * step[k];
        const double at = std::log(numbers_[j].value());
        const double low = std::max(-reach, std::log(numbers_[j].parameter.low) - at),
                     high = std::min(reach, std::log(numbers_[j].parameter.high) - at);
        step[j] = std::clamp(rest / matrix[j][j], std::min(low, 0.0), std::max(high, 0.0));
      }
    return step;
  }

  std::vector<TunedNumber>& numbers_;
  const FittedRows& rows_;
  Row residuals_;
};

}  // namespace

double TunedNumber::off() const { return std::log(value() / parameter.start) / std::log(1.5); }
double TunedNumber::strangeness() const { return stiffness * off() * off(); }

void find_rows(const FittedRows& rows, std::vector<TunedNumber>& numbers) {
  std::vector<double> before;
  for (std::size_t i = 0; i < rows.weights.size(); ++i) before.push_back(rows.residual(i));
  for (TunedNumber& number : numbers) {
    const double at = number.value();
    std::vector<char> moved(before.size());
    for (const double bound : {number.parameter.low, number.parameter.high}) {
      number.parameter.set(bound);
      for (std::size_t i = 0; i < before.size(); ++i)
        if (!moved[i] && !std::isnan(before[i]) && rows.residual(i) != before[i]) moved[i] = 1;
    }
    number.parameter.set(at);
    for (std::size_t i = 0; i < before.size(); ++i)
      if (moved[i]) number.rows.push_back(i);
  }
}

void fit_at_once(std::vector<TunedNumber>& numbers, const FittedRows& rows, int rounds) {
  AtOnce search(numbers, rows);
  search.scan();
  search.run(rounds);
}

double minimise(const std::vector<FitParameter>& parameters, const std::function<double()>& objective,
                int evaluations) {
  if (parameters.empty()) return objective();
  Point start;
  for (const FitParameter& p : parameters) start.push_back(std::log(std::clamp(p.start, p.low, p.high)));
  Simplex simplex(parameters, objective);
  Vertex best{start, simplex.evaluate(start)};
  for (const double size : {0.3, 0.05}) {
    const Vertex found = simplex.run(best.at, size, evaluations);
    if (found.value < best.value) best = found;
  }
  simplex.evaluate(best.at);
  return best.value;
}

}  // namespace assay::validate
