#include "assay/engine/text/published_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <queue>

#include "assay/base/index.h"
#include "assay/base/text.h"

namespace assay::engine {
namespace {

/// How tokenizers write bytes as letters: those that can be seen as themselves, the others from U+0100 on.
const std::array<char32_t, 256>& byte_letters() {
  static const std::array<char32_t, 256> letters = [] {
    std::array<char32_t, 256> out{};
    char32_t next = 256;
    for (std::size_t b = 0; b < out.size(); ++b) {
      const bool seen = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      out[b] = seen ? static_cast<char32_t>(b) : next++;
    }
    return out;
  }();
  return letters;
}

std::string utf8(const char32_t* first, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) append_utf8(out, first[i]);
  return out;
}

std::string as_letters(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) append_utf8(out, byte_letters()[static_cast<unsigned char>(c)]);
  return out;
}

std::string exchanged_text(const std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found; (found = text.find(from, at)) != std::string::npos; at = found + from.size()) {
    out.append(text, at, found - at);
    out += to;
  }
  return out.append(text, at);
}

std::string byte_token(unsigned char byte) { return fmt::format("<0x{:02X}>", byte); }

}  // namespace

std::vector<int> PublishedTokenizer::joined(std::vector<int> symbols) const {
  // Neighbours by position; the pair that was learned first is joined first, of equal ones the leftmost.
  struct Candidate {
    int rank;
    std::size_t left, right;
    int a, b, made;
    bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
  };
  const std::size_t none = symbols.size();
  std::vector<std::size_t> before(symbols.size()), after(symbols.size());
  std::priority_queue<Candidate> candidates;
  const auto consider = [&](std::size_t left) {
    const std::size_t right = left == none ? none : after[left];
    if (right == none) return;
    if (const auto found = merges_.find({symbols[left], symbols[right]}); found != merges_.end())
      candidates.push({found->second.rank, left, right, symbols[left], symbols[right], found->second.made});
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    before[i] = i == 0 ? none : i - 1;
    after[i] = i + 1;
  }
  for (std::size_t i = 0; i < symbols.size(); ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    if (symbols[best.left] != best.a || after[best.left] != best.right || symbols[best.right] != best.b) continue;
    symbols[best.left] = best.made;
    symbols[best.right] = -1;
    after[best.left] = after[best.right];
    if (after[best.left] != none) before[after[best.left]] = best.left;
    consider(before[best.left]);
    consider(best.left);
  }
  std::erase(symbols, -1);
  return symbols;
}

Result<void> PublishedTokenizer::add_word(const std::string& word, std::vector<int>& out) const {
  if (const auto whole = tokens_.find(word); takes_words_ && whole != tokens_.end()) {
    out.push_back(whole->second);
    return {};
  }
  std::vector<int> symbols;
  bool was_unknown = false;
  for (const char32_t letter : code_points(word)) {
    const std::string text = utf8(&letter, 1);
    std::vector<int> made;
    if (const auto found = tokens_.find(text); found != tokens_.end()) made.push_back(found->second);
    for (std::size_t i = 0; made.size() == i && falls_back_ && i < text.size(); ++i)
      if (const auto found = tokens_.find(byte_token(static_cast<unsigned char>(text[i]))); found != tokens_.end())
        made.push_back(found->second);
    const bool is_known = made.size() == 1 ? tokens_.contains(text) || text.size() == 1 : made.size() == text.size();
    if (!is_known) {
      if (unknown_ < 0)
        return fail(file_, fmt::format("{} has no token, and there is none for what is unknown", in_quotes(text)),
                    "is the text one that the model can read?");
      made.assign(was_unknown && joins_unknown_ ? 0 : 1, unknown_);
    }
    was_unknown = !is_known;
    symbols.insert(symbols.end(), made.begin(), made.end());
  }
  const std::vector<int> tokens = joined(std::move(symbols));
  out.insert(out.end(), tokens.begin(), tokens.end());
  return {};
}

PublishedTokenizer::Pieces PublishedTokenizer::matched(const Cut& by, const std::string& piece) const {
  const std::vector<char32_t> text = code_points(piece), literal = code_points(by.literal);
  struct Span {
    std::size_t start, count;
    bool is_match;
  };
  std::vector<Span> spans;
  const auto add_between = [&](std::size_t end) {
    const std::size_t start = spans.empty() ? 0 : spans.back().start + spans.back().count;
    if (end > start) spans.push_back({start, end - start, false});
  };
  for (std::size_t i = 0; i < text.size();) {
    std::optional<std::size_t> length;
    if (by.kind == Cut::Kind::digits) {
      std::size_t n = 0;
      while (i + n < text.size() && holds(digits_, text[i + n]) && (n == 0 || !by.each)) ++n;
      if (n > 0) length = n;
    } else if (by.kind == Cut::Kind::literal) {
      const bool is_here = text.size() - i >= literal.size() &&
                           std::equal(literal.begin(), literal.end(), text.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_here) length = literal.size();
    } else {
      length = by.pattern.match(text, i);
    }
    if (length.value_or(0) == 0) {
      ++i;
      continue;
    }
    add_between(i);
    spans.push_back({i, *length, true});
    i += *length;
  }
  add_between(text.size());
  Pieces out;
  bool joins = false;
  for (const Span& span : spans) {
    const bool is_match = span.is_match != by.inverted;
    const std::string made = utf8(text.data() + span.start, span.count);
    if (is_match && by.matches == Cut::Matches::dropped) continue;
    if (is_match && by.matches == Cut::Matches::with_previous && joins)
      out.back() += made;
    else
      out.push_back(made);
    joins = !is_match;
  }
  return out;
}

PublishedTokenizer::Pieces PublishedTokenizer::cut(const Cut& by, const std::string& piece, bool is_first) const {
  if (by.kind == Cut::Kind::words) {
    std::string text = exchanged_text(piece, " ", by.literal);
    if (by.adds_blank && (is_first || !by.first_alone) && !text.starts_with(by.literal)) text = by.literal + text;
    if (!by.splits) return {text};
    Pieces out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t next = std::min(text.find(by.literal, at + 1), text.size());
      out.push_back(text.substr(at, next - at));
      at = next;
    }
    return out;
  }
  if (by.kind != Cut::Kind::bytes) return matched(by, piece);
  const std::string text = by.adds_blank && !piece.starts_with(' ') ? " " + piece : piece;
  Pieces out = by.splits ? matched(by, text) : Pieces{text};
  for (std::string& each : out) each = as_letters(each);
  return out;
}

Result<void> PublishedTokenizer::add_text(std::string text, bool is_first, std::vector<int>& out) const {
  if (text.empty()) return {};
  for (const Change& change : changes_) {
    if (change.kind == Change::Kind::prepend) text = change.to + text;
    if (change.kind == Change::Kind::replace) text = exchanged_text(text, change.from, change.to);
    if (change.kind == Change::Kind::composed)
      for (const char32_t letter : code_points(text))
        if (holds(joining_, letter))
          return fail(file_,
                      fmt::format("its normal form NFC may join the letter U+{:04X} of the text with others, "
                                  "which is not done here",
                                  static_cast<std::uint32_t>(letter)),
                      "write the text in NFC, with whole letters");
  }
  Pieces pieces{text};
  for (const Cut& by : cuts_) {
    Pieces finer;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      for (std::string& piece : cut(by, pieces[i], is_first && i == 0)) finer.push_back(std::move(piece));
    pieces = std::move(finer);
  }
  for (const std::string& piece : pieces) ASSAY_CHECK(add_word(piece, out));
  return {};
}

Result<std::vector<int>> PublishedTokenizer::encode(std::string_view text) const {
  if (const auto wrong = invalid_utf8(text))
    return fail(file_, fmt::format("byte {} of the text is not UTF-8", *wrong), "give text in UTF-8");
  std::vector<int> out = first_;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto here = std::find_if(added_.begin(), added_.end(),
                                   [&](const Added& added) { return text.substr(i).starts_with(added.text); });
    if (here == added_.end()) {
      ++i;
      continue;
    }
    std::string before(text.substr(start, i - start));
    while (here->takes_left && !before.empty() && before.back() == ' ') before.pop_back();
    ASSAY_CHECK(add_text(std::move(before), start == 0, out));
    out.push_back(here->token);
    i += here->text.size();
    while (here->takes_right && i < text.size() && text[i] == ' ') ++i;
    start = i;
  }
  ASSAY_CHECK(add_text(std::string(text.substr(start)), start == 0, out));
  out.insert(out.end(), last_.begin(), last_.end());
  return out;
}

std::string PublishedTokenizer::decode(std::span<const int> tokens) const {
  static const std::map<char32_t, char> bytes = [] {
    std::map<char32_t, char> out;
    for (std::size_t b = 0; b < 256; ++b) out[byte_letters()[b]] = static_cast<char>(b);
    return out;
  }();
  std::string raw;
  for (const int token : tokens) {
    if (token < 0 || token >= std::ssize(texts_)) continue;
    const std::string& text = texts_[at(token)];
    const bool is_added =
        std::any_of(added_.begin(), added_.end(), [&](const Added& added) { return added.token == token; });
    if (is_added) {
      raw += text;
    } else if (has_bytes_) {
      for (const char32_t letter : code_points(text))
        if (const auto found = bytes.find(letter); found != bytes.end()) raw += found->second;
    } else if (text.size() == 6 && text.starts_with("<0x")) {
      raw += static_cast<char>(std::strtol(text.substr(3, 2).c_str(), nullptr, 16));
    } else {
      raw += exchanged_text(text, "\u2581", " ");
    }
  }
  constexpr std::string_view other = "\ufffd";
  for (std::optional<std::size_t> wrong; (wrong = invalid_utf8(raw));) raw.replace(*wrong, 1, other);
  std::string out;
  for (const char c : raw) {
    const bool controls = static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' && c != '\r';
    controls ? out += other : out += c;
  }
  return out;
}

}  // namespace assay::engine
