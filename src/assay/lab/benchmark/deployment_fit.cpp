#include "assay/lab/benchmark/deployment_fit.h"

#include <algorithm>
#include <cmath>

#include "assay/base/assign.h"
#include "assay/base/record_reader.h"

namespace assay::benchmark {
namespace {

constexpr double four_in_five = 1.2816;  ///< standard deviations of a normal distribution
constexpr double least_noise = 0.02;     ///< of one figure: runs of the same server differ by this much
constexpr double probe = 0.2;            ///< logarithm of the factor that tells how a number moves the figures
constexpr double farthest = 2.0;         ///< logarithm of the largest factor
constexpr double of_median = 1.4826;     ///< a standard deviation over the median of absolute deviations
constexpr double determined = 0.5;       ///< of the uncertainty before
constexpr double usual = 2.0;            ///< times the noise: figures that are further off count less
constexpr int rounds = 4;
constexpr std::size_t most_folds = 10;  ///< rows beyond as many are left out several at a time

using Vector = std::vector<double>;

/// Solves a x = b for a symmetric positive definite matrix, row by row; the inverse's diagonal goes into `inverse`.
Vector solved(std::vector<Vector> a, const Vector& b, Vector& inverse) {
  const std::size_t n = b.size();
  std::vector<Vector> right(n, Vector(n + 1));
  for (std::size_t i = 0; i < n; ++i) right[i][i] = 1.0, right[i][n] = b[i];
  for (std::size_t k = 0; k < n; ++k) {
    const double pivot = a[k][k];
    for (double& x : a[k]) x /= pivot;
    for (double& x : right[k]) x /= pivot;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double by = a[i][k];
      for (std::size_t j = 0; j < n; ++j) a[i][j] -= by * a[k][j];
      for (std::size_t j = 0; j <= n; ++j) right[i][j] -= by * right[k][j];
    }
  }
  Vector x(n);
  inverse.resize(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = right[i][n], inverse[i] = right[i][i];
  return x;
}

/// What a step of the fit knows: misfits at the logarithms `at`, and how each number moves them.
struct Linear {
  const Misfits& misfits;
  const std::vector<Misfits>& slopes;
  const Vector& at;
};

struct Solution {
  Vector logs, deviations;
};

/// The most probable logarithms of the numbers in use, others 0, from the rows that count.
Solution solve(const Linear& linear, const Vector& prior, const std::vector<char>& used,
               const std::vector<char>& counts) {
  std::vector<std::size_t> of;
  for (std::size_t k = 0; k < used.size(); ++k)
    if (used[k]) of.push_back(k);
  Solution out{Vector(used.size(), 0.0), Vector(used.size(), 0.0)};
  double noise = 0.05;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Vector> a(of.size(), Vector(of.size(), 0.0));
    Vector b(of.size(), 0.0), inverse;
    for (std::size_t i = 0; i < of.size(); ++i) a[i][i] = 1.0 / (prior[of[i]] * prior[of[i]]);
    Vector off;
    const auto each = [&](auto visit) {
      for (std::size_t row = 0; row < counts.size(); ++row)
        for (std::size_t f = 0; counts[row] && f < linear.misfits[row].size(); ++f) {
          double wanted = linear.misfits[row][f];  // at 0, on the line
          for (const std::size_t k : of) wanted += linear.slopes[k][row][f] * linear.at[k];
          visit(row, f, wanted);
        }
    };
    each([&](std::size_t row, std::size_t f, double wanted) {
      double left = wanted;
      for (const std::size_t k : of) left -= linear.slopes[k][row][f] * out.logs[k];
      const double weight = std::min(1.0, usual * noise / std::max(std::abs(left), noise)) / (noise * noise);
      for (std::size_t i = 0; i < of.size(); ++i) {
        const double slope = linear.slopes[of[i]][row][f] * weight;
        b[i] += slope * wanted;
        for (std::size_t j = 0; j < of.size(); ++j) a[i][j] += slope * linear.slopes[of[j]][row][f];
      }
    });
    const Vector x = solved(a, b, inverse);
    for (std::size_t i = 0; i < of.size(); ++i) {
      out.logs[of[i]] = std::clamp(x[i], -farthest, farthest);
      out.deviations[of[i]] = std::sqrt(inverse[i]);
    }
    each([&](std::size_t row, std::size_t f, double wanted) {
      for (const std::size_t k : of) wanted -= linear.slopes[k][row][f] * out.logs[k];
      off.push_back(std::abs(wanted));
    });
    if (off.empty()) continue;
    const auto half = off.begin() + std::ssize(off) / 2;
    std::nth_element(off.begin(), half, off.end());
    noise = std::max(least_noise, of_median * *half);
  }
  return out;
}

/// Leaves out what the rows do not determine, the least determined first; no more numbers than figures.
Solution solve_determined(const Linear& linear, const Vector& prior, const std::vector<char>& counts,
                          std::vector<char>& used) {
  double figures = 0;
  for (std::size_t row = 0; row < counts.size(); ++row)
    if (counts[row]) figures += static_cast<double>(linear.misfits[row].size());
  while (true) {
    Solution found = solve(linear, prior, used, counts);
    std::size_t worst = used.size();
    double least = 0.0;
    for (std::size_t k = 0; k < used.size(); ++k)
      if (used[k] && found.deviations[k] / prior[k] >= least) worst = k, least = found.deviations[k] / prior[k];
    const auto number = static_cast<double>(std::count(used.begin(), used.end(), 1));
    if (worst == used.size() || (least <= determined && number <= figures)) return found;
    used[worst] = 0;
  }
}

class Fitting {
 public:
  Fitting(const std::vector<DeploymentNumber>& numbers, const PredictAt& predict) : predict_(predict) {
    for (const DeploymentNumber& one : numbers) prior_.push_back(std::log(one.within) / four_in_five);
  }

  Result<void> prepare() {
    ASSAY_SET(start_, at(Vector(prior_.size(), 0.0)));
    for (std::size_t k = 0; k < prior_.size(); ++k) {
      Vector logs(prior_.size(), 0.0);
      logs[k] = probe;
      ASSAY_TRY(moved, at(logs));
      for (std::size_t row = 0; row < moved.size(); ++row)
        for (std::size_t f = 0; f < moved[row].size(); ++f) moved[row][f] = (start_[row][f] - moved[row][f]) / probe;
      slopes_.push_back(std::move(moved));
    }
    return {};
  }

  struct Fitted {
    Solution solution;
    std::vector<char> used;
    Misfits misfits;  ///< of all rows, with it
  };
  /// To the rows that count: the misfits themselves are taken again where the line leads.
  Result<Fitted> fit(const std::vector<char>& counts) const {
    Fitted out{{}, std::vector<char>(prior_.size(), 1), start_};
    out.solution = solve_determined({start_, slopes_, Vector(prior_.size(), 0.0)}, prior_, counts, out.used);
    ASSAY_SET(out.misfits, at(out.solution.logs));
    const Vector first = out.solution.logs;
    out.solution = solve({out.misfits, slopes_, first}, prior_, out.used, counts);
    ASSAY_SET(out.misfits, at(out.solution.logs));
    return out;
  }

  const Misfits& start() const { return start_; }

 private:
  Result<Misfits> at(const Vector& logs) const {
    Vector factors;
    for (const double x : logs) factors.push_back(std::exp(x));
    return predict_(factors);
  }

  const PredictAt& predict_;
  Vector prior_;
  Misfits start_;
  std::vector<Misfits> slopes_;
};

}  // namespace

Result<std::vector<DeploymentNumber>> deployment_numbers(const hardware::Catalogue& catalogue, std::string_view table) {
  std::vector<DeploymentNumber> out;
  for (const auto& [path, text] : catalogue.files("fits/deployment.toml")) {
    RecordFile file{.name = path};
    ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) {
      reader.sources();
      for (const std::string_view each : {"serving", "training"})
        reader.table(each, [&](RecordReader& inner) {
          inner.each_key("within", [&](const std::string& key, RecordReader& within) {
            DeploymentNumber number{key};
            within.number(key, number.within);
            if (!(number.within > 1.0)) within.fault(key, "is a factor above 1");
            if (each == table) out.push_back(std::move(number));
          });
        });
    }));
  }
  return out;
}

Result<DeploymentFit> fit_deployment(const std::vector<DeploymentNumber>& numbers, const PredictAt& predict) {
  Fitting fitting(numbers, predict);
  ASSAY_CHECK(fitting.prepare());
  const std::size_t rows = fitting.start().size();
  ASSAY_TRY(all, fitting.fit(std::vector<char>(rows, 1)));
  DeploymentFit out;
  out.before = fitting.start();
  out.after = all.misfits;
  for (std::size_t k = 0; k < numbers.size(); ++k)
    out.numbers.push_back({std::exp(all.solution.logs[k]), std::exp(four_in_five * all.solution.deviations[k]),
                           all.used[k] != 0});
  if (rows < 2) return out;
  Misfits held_out(rows);
  const std::size_t folds = std::min(rows, most_folds);
  for (std::size_t fold = 0; fold < folds; ++fold) {
    std::vector<char> counts(rows, 1);
    for (std::size_t row = fold; row < rows; row += folds) counts[row] = 0;
    ASSAY_TRY(without, fitting.fit(counts));
    for (std::size_t row = fold; row < rows; row += folds) held_out[row] = without.misfits[row];
  }
  out.of_held_out = std::move(held_out);
  return out;
}

}  // namespace assay::benchmark
