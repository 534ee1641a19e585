// How tokens are drawn from logits, and how drafts of a smaller model are accepted so that the result is distributed as
// if the large model had drawn every token (Leviathan et al. 2023, Chen et al. 2023).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace assay::engine {

struct Sampling {
  double temperature = 0;  ///< 0: always the likeliest token
  double top_p = 1;        ///< only the likeliest tokens that together have this probability
};

/// Probabilities by token; they sum to 1.
using Distribution = std::vector<double>;
Distribution distribution(std::span<const double> logits, const Sampling& sampling);

/// The token whose stretch of [0, 1) a uniform number falls into.
int drawn(const Distribution& from, double uniform);

/// The fate of a drafted token.
struct Verdict {
  bool accepted = false;
  int token = 0;  ///< the draft, or the one that replaces it
};
/// Accepts a token that was drawn from `draft` with probability min(1, target / draft), else draws from the part of the
/// target that the draft lacks. Either way the token is distributed as the target is. `uniform` are two numbers.
Verdict verified(int token, const Distribution& draft, const Distribution& target, std::span<const double, 2> uniform);

/// Uniform numbers in [0, 1), the same on every machine and in every rank.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  double next();

 private:
  std::uint64_t seed_, count_ = 0;
};

}  // namespace assay::engine
