// What a model computes beyond its shape: numbers and functions that neither counts nor prices need. Runs with
// published weights read them; others have the usual ones.
#pragma once
#include <cstdint>
#include <vector>

namespace assay::model {

/// The function of feed-forward blocks. `usual`: SiLU of a gate, GELU where there is none.
enum class Nonlinearity : std::uint8_t { usual, silu, gelu, gelu_tanh, relu, relu2, quick_gelu };

/// Rotary positions: pair i of a head turns by position x frequencies[i], and is multiplied by `amplitude`.
struct Rotary {
  std::vector<double> frequencies;  ///< empty: all pairs turn, by powers of 1e-4
  double amplitude = 1;
};

struct Definition {
  double norm_epsilon = 1e-5;
  Nonlinearity nonlinearity = Nonlinearity::usual;
  Rotary rotary, windowed_rotary;  ///< of layers that see all tokens, and of those with a window
  double attention_cap = 0;        ///< scores are bounded by it, as cap x tanh(score / cap); 0: they are not
  double logit_scale = 1, logit_cap = 0;
  bool shares_of_all = false;  ///< experts weigh as in a softmax over all of them, not over those chosen
  std::int64_t longest = 0;    ///< tokens for which the frequencies hold; 0: any number
};

}  // namespace assay::model
