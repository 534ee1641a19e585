// A place in a text that is read once from left to right. Faults know their line and column.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "assay/base/result.h"

namespace assay::hlo {

/// Reads over a text; blanks include comments: /*index=5*/ and, to the end of a line, //.
class Cursor {
 public:
  Cursor(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  std::size_t at() const { return at_; }
  void move_to(std::size_t at) { at_ = at; }
  bool done() const { return at_ >= text_.size(); }
  std::string_view text() const { return text_; }
  std::string_view rest() const { return text_.substr(at_); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool sees(std::string_view sign) const { return rest().starts_with(sign); }

  void skip_blanks();
  /// Blanks of this line alone.
  void skip_spaces();
  void skip_line();
  /// Takes a sign if it is next, behind blanks.
  bool take(std::string_view sign);
  Result<void> expect(std::string_view sign, std::string_view of);
  /// Letters, digits, and . _ - $ behind blanks; empty where there are none.
  std::string_view name();
  std::optional<std::int64_t> integer();
  /// What stands before the next comma or closing bracket that is not inside of brackets or quotes, on this line.
  Result<std::string_view> balanced();
  /// The same before the next blank, too, unless a brace follows it: mesh['X'=2] {'X'}.
  Result<std::string_view> value();
  /// What stands between the bracket that is next and the one that closes it, without both.
  Result<std::string_view> bracketed();

  /// "FILE:LINE:COLUMN"
  std::string where(std::size_t at) const;
  tl::unexpected<Error> fault(std::string what, std::string hint) const { return fault_at(at_, what, hint); }
  tl::unexpected<Error> fault_at(std::size_t at, std::string what, std::string hint) const;

 private:
  Result<std::string_view> balanced(bool to_blank);

  std::string_view text_, file_;
  std::size_t at_ = 0;
};

}  // namespace assay::hlo
