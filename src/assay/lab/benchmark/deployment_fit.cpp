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
constexpr double first_noise = 0.05;     ///< before anything says how far off figures are
constexpr double usual = 2.0;            ///< times the noise: figures that are further off count less
constexpr double longest_step = 0.5;
constexpr int rounds = 40, settled = 20;  ///< when the noise follows from what is left
constexpr std::size_t most_folds = 10;    ///< rows beyond as many are left out several at a time

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

/// How figures follow from the numbers: times are sums in which each number has its share, so that a figure at factors
/// e^x is 1 + sum of share (e^x - 1) times as large. What the true predictions add to that is known where they were
/// made.
struct Shares {
  Misfits start;
  std::vector<Misfits> of;  ///< by number

  double misfit(const Vector& logs, std::size_t row, std::size_t f) const {
    return start[row][f] - std::log(size(logs, row, f));
  }
  double slope(const Vector& logs, std::size_t k, std::size_t row, std::size_t f) const {
    return of[k][row][f] * std::exp(logs[k]) / size(logs, row, f);
  }

 private:
  double size(const Vector& logs, std::size_t row, std::size_t f) const {
    double out = 1.0;
    for (std::size_t k = 0; k < of.size(); ++k) out += of[k][row][f] * std::expm1(logs[k]);
    return std::max(out, 1e-3);
  }
};

struct Solution {
  Vector logs, deviations;
};

/// The most probable logarithms of the numbers in use, others 0, from the rows that count.
Solution solve(const Shares& shares, const Vector& prior, const std::vector<char>& used,
               const std::vector<char>& counts) {
  std::vector<std::size_t> of;
  for (std::size_t k = 0; k < used.size(); ++k)
    if (used[k]) of.push_back(k);
  Solution out{Vector(used.size(), 0.0), Vector(used.size(), 0.0)};
  double noise = first_noise;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Vector> a(of.size(), Vector(of.size(), 0.0));
    Vector b(of.size(), 0.0), inverse, off;
    for (std::size_t i = 0; i < of.size(); ++i) {
      a[i][i] = 1.0 / (prior[of[i]] * prior[of[i]]);
      b[i] = -out.logs[of[i]] * a[i][i];
    }
    for (std::size_t row = 0; row < counts.size(); ++row)
      for (std::size_t f = 0; counts[row] && f < shares.start[row].size(); ++f) {
        const double left = shares.misfit(out.logs, row, f);
        off.push_back(std::abs(left));
        const double weight = std::min(1.0, usual * noise / std::max(std::abs(left), noise)) / (noise * noise);
        for (std::size_t i = 0; i < of.size(); ++i) {
          const double slope = shares.slope(out.logs, of[i], row, f) * weight;
          b[i] += slope * left;
          for (std::size_t j = 0; j < of.size(); ++j) a[i][j] += slope * shares.slope(out.logs, of[j], row, f);
        }
      }
    const Vector step = solved(a, b, inverse);
    for (std::size_t i = 0; i < of.size(); ++i) {
      double& log = out.logs[of[i]];
      log = std::clamp(log + std::clamp(step[i], -longest_step, longest_step), -farthest, farthest);
      out.deviations[of[i]] = std::sqrt(inverse[i]);
    }
    if (off.empty() || round != settled) continue;  // once: noise that follows a fit held back by it only grows
    const auto half = off.begin() + std::ssize(off) / 2;
    std::nth_element(off.begin(), half, off.end());
    noise = std::max(least_noise, of_median * *half);
  }
  return out;
}

/// Leaves out what the rows do not determine, the least determined first; no more numbers than figures.
Solution solve_determined(const Shares& shares, const Vector& prior, const std::vector<char>& counts,
                          std::vector<char>& used) {
  double figures = 0;
  for (std::size_t row = 0; row < counts.size(); ++row)
    if (counts[row]) figures += static_cast<double>(shares.start[row].size());
  while (true) {
    Solution found = solve(shares, prior, used, counts);
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
    ASSAY_SET(shares_.start, at(Vector(prior_.size(), 0.0)));
    for (std::size_t k = 0; k < prior_.size(); ++k) {
      Vector logs(prior_.size(), 0.0);
      logs[k] = probe;
      ASSAY_TRY(moved, at(logs));
      for (std::size_t row = 0; row < moved.size(); ++row)
        for (std::size_t f = 0; f < moved[row].size(); ++f)
          moved[row][f] = std::expm1(shares_.start[row][f] - moved[row][f]) / std::expm1(probe);
      shares_.of.push_back(std::move(moved));
    }
    return {};
  }

  struct Fitted {
    Solution solution;
    std::vector<char> used;
    Misfits misfits;  ///< of all rows, with it
  };
  /// To the rows that count. Where it leads, predictions are made once more, and their difference is taken along.
  Result<Fitted> fit(const std::vector<char>& counts) const {
    Fitted out{{}, std::vector<char>(prior_.size(), 1), shares_.start};
    out.solution = solve_determined(shares_, prior_, counts, out.used);
    ASSAY_SET(out.misfits, at(out.solution.logs));
    Shares corrected = shares_;
    for (std::size_t row = 0; row < out.misfits.size(); ++row)
      for (std::size_t f = 0; f < out.misfits[row].size(); ++f)
        corrected.start[row][f] += out.misfits[row][f] - shares_.misfit(out.solution.logs, row, f);
    out.solution = solve(corrected, prior_, out.used, counts);
    ASSAY_SET(out.misfits, at(out.solution.logs));
    return out;
  }

  const Misfits& start() const { return shares_.start; }

 private:
  Result<Misfits> at(const Vector& logs) const {
    Vector factors;
    for (const double x : logs) factors.push_back(std::exp(x));
    return predict_(factors);
  }

  const PredictAt& predict_;
  Vector prior_;
  Shares shares_;
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
    out.numbers.push_back(
        {std::exp(all.solution.logs[k]), std::exp(four_in_five * all.solution.deviations[k]), all.used[k] != 0});
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
