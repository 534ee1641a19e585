// Text as tokens: single bytes, or byte pairs learned from a text (byte-pair encoding, Sennrich et al. 2016).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/array.h"

namespace assay::engine {

class Tokenizer {
 public:
  /// One token a byte.
  Tokenizer() = default;
  /// Joins the most frequent pair of tokens of the text, again and again, until there are so many tokens or no pair
  /// occurs twice. Pairs do not reach across blanks, except for one before a word.
  static Tokenizer learned(std::string_view text, std::int64_t vocabulary);
  /// From what merges() wrote.
  static Result<Tokenizer> from_merges(std::string_view text, std::string_view where);

  std::int64_t vocabulary() const { return bytes + static_cast<std::int64_t>(merges_.size()); }
  std::vector<int> encode(std::string_view text) const;
  /// Bytes that are no printable ASCII are written as ?, so that an answer stays text.
  std::string decode(std::span<const int> tokens) const;
  /// "104 101,256 108": the joined pairs, in order.
  std::string merges() const;

  static constexpr std::int64_t bytes = 256;

 private:
  void append(int token, std::string& out) const;
  std::vector<std::pair<int, int>> merges_;  ///< token `bytes + i` is merge i
};

/// The tokens of a step of training and the ones that follow them: [sequences, length], drawn from the text by a seed.
struct TextBatch {
  Array tokens, targets;
};
TextBatch text_batch(std::span<const int> text, std::int64_t sequences, std::int64_t length, std::uint64_t seed,
                     std::int64_t step);

}  // namespace assay::engine
