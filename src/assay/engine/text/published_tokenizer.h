// Tokenizers of published models (tokenizer.json): byte pairs over bytes or over letters with single bytes where a
// letter has no token. What a file asks for and is not done here is an error that names it.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/text/pattern.h"
#include "assay/model/checkpoint/json_reader.h"

namespace assay::engine {

class PublishedTokenizer {
 public:
  static Result<PublishedTokenizer> parse(std::string_view json, const std::string& file,
                                          const hardware::Catalogue& catalogue);

  /// With the tokens that begin or end every text.
  Result<std::vector<int>> encode(std::string_view text) const;
  /// Valid UTF-8; bytes that are none, and controls other than line breaks and tabs, are written as U+FFFD.
  std::string decode(std::span<const int> tokens) const;
  std::int64_t vocabulary() const { return static_cast<std::int64_t>(texts_.size()); }

 private:
  friend class TokenizerReader;
  using Pieces = std::vector<std::string>;

  /// A change of the text before it is cut.
  struct Change {
    enum class Kind { prepend, replace, composed } kind = Kind::replace;
    std::string from, to;
  };
  /// A way to cut it.
  struct Cut {
    enum class Kind { pattern, literal, digits, words, bytes } kind = Kind::pattern;
    enum class Matches { alone, with_previous, dropped } matches = Matches::alone;
    Pattern pattern;
    std::string literal;
    bool inverted = false, each = false, adds_blank = false, first_alone = false, splits = true;
  };
  struct Merge {
    int rank = 0, made = 0;
  };

  Result<void> add_text(std::string text, bool is_first, std::vector<int>& out) const;
  Pieces cut(const Cut& by, const std::string& piece, bool is_first) const;
  Pieces matched(const Cut& by, const std::string& piece) const;
  Result<void> add_word(const std::string& word, std::vector<int>& out) const;
  std::vector<int> joined(std::vector<int> symbols) const;

  std::string file_;
  std::unordered_map<std::string, int> tokens_;
  std::vector<std::string> texts_;  ///< by token
  std::map<std::pair<int, int>, Merge> merges_;
  struct Added {
    std::string text;
    int token = 0;
    bool takes_left = false, takes_right = false;  ///< the blanks beside it
  };
  std::vector<Added> added_;  ///< the longest first
  std::vector<Change> changes_;
  std::vector<Cut> cuts_;
  std::vector<int> first_, last_;  ///< of every text
  bool has_bytes_ = false;         ///< tokens are bytes, written as letters
  bool falls_back_ = false, joins_unknown_ = false, takes_words_ = false;
  int unknown_ = -1;
  LetterRanges digits_, joining_;
};

}  // namespace assay::engine
