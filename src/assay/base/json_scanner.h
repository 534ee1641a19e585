// A pull scanner of JSON text: values are visited once, in order, and nothing is kept. What a reader does not ask for
// is skipped without being decoded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "assay/base/result.h"

namespace assay {

/// After the first fault every function returns at once with nothing; `fault()` says what it was.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  /// What the next value starts with: one of { [ " t f n, a digit or -, or 0 at the end or after a fault.
  char peek() { return !failed() && skipped_blanks() < text_.size() ? text_[at_] : '\0'; }

  /// Visits the members of an object: `visit(key)` consumes the value, or leaves it to be skipped. Keys are as they are
  /// written, with their escapes.
  template <class F>
  void object(F visit) {
    if (!enter('{')) return;
    for (bool first = true; next_in('}', first); first = false) {
      const std::string_view key = string();
      if (!take(':', "expected a colon behind a key")) break;
      const std::size_t before = skipped_blanks();
      visit(key);
      if (!failed() && at_ == before) skip();
    }
    --depth_;
  }

  /// Visits the items of an array: `visit()` consumes the item, or leaves it to be skipped.
  template <class F>
  void array(F visit) {
    if (!enter('[')) return;
    for (bool first = true; next_in(']', first); first = false) {
      const std::size_t before = skipped_blanks();
      visit();
      if (!failed() && at_ == before) skip();
    }
    --depth_;
  }

  /// The text between the quotes, with its escapes; a fault where the next value is no string.
  std::string_view string();
  /// The digits of a number; a fault where the next value is none.
  std::string_view number();
  /// A number or a string with one, as some writers have them; nothing for any other value, which is skipped.
  std::optional<std::string_view> number_text();
  /// The next value as it is written.
  std::string_view raw();
  void skip();

  /// That only blanks are left.
  void finish();

  bool failed() const { return !what_.empty(); }
  void fail_here(std::string what, std::string hint = {});
  /// The fault with its place, "FILE:LINE:COLUMN".
  Error fault(std::string_view file) const;

 private:
  static constexpr int deepest = 256;

  std::size_t skipped_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
    return at_;
  }
  bool enter(char open);
  bool next_in(char close, bool first) {
    if (failed()) return false;
    if (skipped_blanks() < text_.size() && text_[at_] == close) return ++at_, false;
    return first || take(',', "expected a comma between values");
  }
  bool take(char wanted, const char* rule) {
    if (peek() != wanted) return refuse(rule), false;
    return ++at_, true;
  }
  void refuse(const char* rule);
  void skip_nested();

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string what_, hint_;
};

/// The whole number that a text is; nothing for any other text, and beyond 64 bits.
std::optional<std::int64_t> whole_number(std::string_view text);

/// A string of JSON without its escapes; what is no valid escape stays as it is.
std::string unescaped(std::string_view written);

}  // namespace assay
