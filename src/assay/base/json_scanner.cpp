#include "assay/base/json_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "assay/base/text.h"

namespace assay {
namespace {

constexpr const char* cut_off = "the text ends inside a value";
constexpr const char* cut_off_hint =
    "the file was cut off; copy it again, or let the program that writes it come to its end";

bool belongs_to_number(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

std::optional<std::uint32_t> four_hex_digits(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<std::uint32_t>(digit);
  }
  return value;
}

// Runs of bytes that mean nothing are passed eight at a time.
constexpr std::uint64_t each = 0x0101010101010101, high = 0x80 * each;
/// The highest bit of every byte that is `c`; above the first one of others, too.
constexpr std::uint64_t marks_of(std::uint64_t bytes, char c) {
  const std::uint64_t other = bytes ^ (each * static_cast<unsigned char>(c));
  return (other - each) & ~other & high;
}
/// Inside a string: its end, or an escape.
constexpr std::uint64_t ends_string_run(std::uint64_t bytes) { return marks_of(bytes, '"') | marks_of(bytes, '\\'); }
/// Outside: a string, or a byte from [ on, where the brackets are.
constexpr std::uint64_t ends_plain_run(std::uint64_t bytes) {
  return marks_of(bytes, '"') | ((((bytes & ~high) + (0x80 - '[') * each) | bytes) & high);
}

/// The first place from `at` on whose byte a rule marks; the end of the text where there is none.
template <class Rule>
std::size_t next_of(std::string_view text, std::size_t at, Rule&& rule) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t bytes = 0;
  for (; at + sizeof bytes <= text.size(); at += sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    if (const std::uint64_t marks = rule(bytes)) return at + static_cast<std::size_t>(std::countr_zero(marks)) / 8;
  }
  while (at < text.size() && !(rule(each * static_cast<unsigned char>(text[at])) & 0x80)) ++at;
  return std::min(at, text.size());
}

/// The quote that ends a string which begins at `at`; the end of the text where there is none.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  while ((at = next_of(text, at, [](std::uint64_t bytes) { return ends_string_run(bytes); })) < text.size()) {
    if (text[at] == '"') return at;
    at += 2;
  }
  return text.size();
}

}  // namespace

void JsonScanner::fail_here(std::string what, std::string hint) {
  if (failed()) return;
  what_ = std::move(what);
  hint_ = std::move(hint);
}

Error JsonScanner::fault(std::string_view file) const {
  return {Error::Kind::input, place_in(file, text_, at_), what_, hint_, {}};
}

void JsonScanner::refuse(const char* rule) {
  if (at_ >= text_.size())
    fail_here(cut_off, cut_off_hint);
  else
    fail_here(rule, "the file is no JSON from here on");
}

bool JsonScanner::enter(char open) {
  if (!take(open, open == '{' ? "expected an object" : "expected a list")) return false;
  if (++depth_ <= deepest) return true;
  fail_here(fmt::format("values are nested more than {} deep", deepest),
            "files of this kind are nested a few levels deep");
  return false;
}

std::string_view JsonScanner::string() {
  if (!take('"', "expected a string")) return {};
  const std::size_t start = at_;
  at_ = end_of_string(text_, start);
  if (at_ < text_.size()) return text_.substr(start, at_++ - start);
  fail_here(cut_off, cut_off_hint);
  return {};
}

std::string_view JsonScanner::number() {
  const char c = peek();
  if (failed()) return {};
  if (c != '-' && !(c >= '0' && c <= '9')) {
    if (c == '\0')
      fail_here(cut_off, cut_off_hint);
    else
      fail_here("expected a number", "the file has another format, or was changed by hand");
    return {};
  }
  const std::size_t start = at_;
  while (at_ < text_.size() && belongs_to_number(text_[at_])) ++at_;
  return text_.substr(start, at_ - start);
}

std::optional<std::string_view> JsonScanner::number_text() {
  const char c = peek();
  if (c == '"') return string();
  if (c == '-' || (c >= '0' && c <= '9')) return number();
  skip();
  return std::nullopt;
}

std::string_view JsonScanner::raw() {
  peek();
  const std::size_t start = at_;
  skip();
  return failed() ? std::string_view{} : text_.substr(start, at_ - start);
}

void JsonScanner::skip_nested() {
  // Counts brackets instead of visiting members: most of a profile is skipped.
  int depth = 0;
  for (; (at_ = next_of(text_, at_, [](std::uint64_t bytes) { return ends_plain_run(bytes); })) < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '"') at_ = end_of_string(text_, at_ + 1);
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) {
      ++at_;
      return;
    }
  }
  at_ = text_.size();
  fail_here(cut_off, cut_off_hint);
}

void JsonScanner::skip() {
  switch (const char c = peek()) {
    case '"':
      string();
      break;
    case '{':
    case '[':
      skip_nested();
      break;
    case 't':
    case 'f':
    case 'n':
    case 'N':
    case 'I': {  // NaN and Infinity are no JSON, but Python writes them
      while (at_ < text_.size() &&
             ((text_[at_] >= 'a' && text_[at_] <= 'z') || (text_[at_] >= 'A' && text_[at_] <= 'Z')))
        ++at_;
      break;
    }
    default:
      if (c == '-' && at_ + 1 < text_.size() && text_[at_ + 1] == 'I') {
        ++at_;
        skip();
      } else {
        number();
      }
  }
}

void JsonScanner::finish() {
  if (peek() != '\0' || (!failed() && at_ < text_.size()))
    fail_here("text behind the end of the document", "a document is one JSON value");
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [read, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc{} || read != end) return std::nullopt;
  return value;
}

std::string unescaped(std::string_view written) {
  if (written.find('\\') == std::string_view::npos) return std::string(written);
  std::string out;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] != '\\' || i + 1 == written.size()) {
      out += written[i];
      continue;
    }
    const char c = written[++i];
    constexpr std::string_view from = "bfnrt", to = "\b\f\n\r\t";
    if (const std::size_t simple = from.find(c); simple != std::string_view::npos) {
      out += to[simple];
    } else if (c == 'u') {
      auto code = four_hex_digits(written.substr(i + 1));
      if (!code) {
        out += "\\u";
        continue;
      }
      i += 4;
      const bool high = *code >= 0xD800 && *code < 0xDC00;
      const auto low =
          high && written.substr(i + 1, 2) == "\\u" ? four_hex_digits(written.substr(i + 3)) : std::nullopt;
      if (low && *low >= 0xDC00 && *low < 0xE000) {
        code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
        i += 6;
      }
      append_utf8(out, *code >= 0xD800 && *code < 0xE000 ? 0xFFFD : *code);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace assay
