// Lengths of prompts and outputs, and what they mean for sequences in flight: their contexts, and the tokens that
// memory is reserved for.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "assay/base/result.h"

namespace assay::serving {

/// Lengths of requests as a table: each entry stands for an equal share of all requests.
class Lengths {
 public:
  Lengths() : table_{1} {}
  static Lengths fixed(std::int64_t tokens);
  /// Lengths from a log or a sample, in any order; long ones are thinned to means of equal shares. Not empty, all >= 1.
  static Lengths sampled(std::vector<std::int64_t> tokens);

  double mean() const { return mean_; }
  /// Variance over squared mean.
  double squared_variation() const;
  std::int64_t smallest() const { return table_.front(); }
  std::int64_t largest() const { return table_.back(); }
  std::int64_t quantile(double share) const;
  bool is_fixed() const { return table_.front() == table_.back(); }
  std::span<const std::int64_t> table() const { return table_; }

  /// The distribution, reduced to at most `entries` entries.
  Lengths thinned(std::size_t entries) const;
  /// Truncates entries at `most`; returns whether any was longer.
  bool cut(std::int64_t most);

 private:
  explicit Lengths(std::vector<std::int64_t> table);
  std::vector<std::int64_t> table_;  ///< sorted
  double mean_ = 1;
};

/// "lognormal:1.2" (standard deviation of the logarithm) and "exponential" around a mean; "uniform:100..2000",
/// "p50=300,p90=2k,p99=8k" (logarithms on straight lines of normal quantiles) and "@FILE" (a length per line) by
/// themselves.
Result<Lengths> parse_lengths(std::string_view text, std::int64_t mean, std::string_view where);
/// Whether such a text needs a mean.
bool lengths_need_mean(std::string_view text);

/// Prompts and outputs, drawn independently, and how memory is allocated to them.
struct RequestLengths {
  Lengths prompt, output;
  std::int64_t page = 0;               ///< tokens; 0: each sequence reserves memory for the longest request
  std::vector<std::int64_t> seen;      ///< contexts of sequences in flight; each an equal share
  std::vector<std::int64_t> reserved;  ///< tokens that memory is reserved for; each an equal share
  double context = 1;                  ///< mean of what is seen
  double waste = 0;                    ///< share of reserved tokens that are not used (yet)
};
/// A sequence of n output tokens stays for n steps, so long outputs are over-represented among sequences in flight, at
/// any point of their output: E[n (prompt + n/2)] / E[n].
RequestLengths request_lengths(Lengths prompt, Lengths output, std::int64_t page);

/// The value that a standard normal variable stays below with probability `share`, and the probability for a value.
double normal_quantile(double share);
double normal_share(double value);

}  // namespace assay::serving
