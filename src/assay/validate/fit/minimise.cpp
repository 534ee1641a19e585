#include "assay/validate/fit/minimise.h"

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
    return objective_();
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

}  // namespace

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
