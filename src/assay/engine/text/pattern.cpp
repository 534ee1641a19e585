#include "assay/engine/text/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "assay/base/text.h"

namespace assay::engine {
namespace {

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

/// One letter of a class.
struct LetterSet {
  std::vector<LetterRanges> in, out;  ///< of any of the first, or of none of one of the second
  bool negated = false, ignores_case = false;

  bool has(char32_t letter) const {
    if (ignores_case && letter < 128 && has_plain(static_cast<char32_t>(letter ^ 0x20U)) && is_latin(letter))
      return !negated;
    return has_plain(letter) != negated;
  }

 private:
  static bool is_latin(char32_t letter) { return (letter | 0x20U) >= 'a' && (letter | 0x20U) <= 'z'; }
  bool has_plain(char32_t letter) const {
    return std::any_of(in.begin(), in.end(), [&](const LetterRanges& ranges) { return holds(ranges, letter); }) ||
           std::any_of(out.begin(), out.end(), [&](const LetterRanges& ranges) { return !holds(ranges, letter); });
  }
};

}  // namespace

struct Pattern::Alternatives {
  struct Item {
    LetterSet letters;
    std::shared_ptr<const Alternatives> group;  ///< instead of a letter
    enum class Look { no, ahead, not_ahead, end } look = Look::no;
    std::size_t least = 1, most = 1;
    bool keeps = false;  ///< what it took it does not give back
  };
  std::vector<std::vector<Item>> each;
};

namespace {

using Alternatives = Pattern::Alternatives;
using Item = Alternatives::Item;
using Then = std::function<bool(std::size_t)>;

class Matcher {
 public:
  explicit Matcher(const std::vector<char32_t>& text) : text_(text) {}

  bool any(const Alternatives& of, std::size_t at, const Then& then) const {
    return std::any_of(of.each.begin(), of.each.end(),
                       [&](const std::vector<Item>& items) { return rest(items, 0, at, then); });
  }

 private:
  bool rest(const std::vector<Item>& items, std::size_t next, std::size_t at, const Then& then) const {
    if (next == items.size()) return then(at);
    const Item& item = items[next];
    const auto after = [&](std::size_t end) { return rest(items, next + 1, end, then); };
    if (item.look == Item::Look::end) return at == text_.size() && after(at);
    if (item.look != Item::Look::no) {
      const bool found = any(*item.group, at, [](std::size_t) { return true; });
      return found == (item.look == Item::Look::ahead) && after(at);
    }
    if (item.group) return repeated(item, 0, at, after);
    std::size_t most = 0;
    while (most < item.most && at + most < text_.size() && item.letters.has(text_[at + most])) ++most;
    if (most < item.least) return false;
    if (item.keeps) return after(at + most);
    for (std::size_t count = most + 1; count-- > item.least;)
      if (after(at + count)) return true;
    return false;
  }

  bool repeated(const Item& item, std::size_t made, std::size_t at, const Then& after) const {
    if (made < item.most && any(*item.group, at, [&](std::size_t end) {
          return end > at ? repeated(item, made + 1, end, after) : made + 1 >= item.least && after(end);
        }))
      return true;
    return made >= item.least && after(at);
  }

  const std::vector<char32_t>& text_;
};

class PatternParser {
 public:
  PatternParser(std::string_view text, const Letters& letters) : text_(code_points(text)), letters_(letters) {}

  Result<std::shared_ptr<const Alternatives>> whole() {
    auto out = alternatives(false);
    if (at_ < text_.size()) fail_with("a parenthesis too many");
    if (!fault_.empty()) return fail("", fault_);
    return out;
  }

 private:
  void fail_with(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
    at_ = text_.size();
  }
  bool take(std::u32string_view sign) {
    if (text_.size() - at_ < sign.size() ||
        !std::equal(sign.begin(), sign.end(), text_.begin() + static_cast<std::ptrdiff_t>(at_)))
      return false;
    at_ += sign.size();
    return true;
  }
  char32_t next() {
    if (at_ < text_.size()) return text_[at_++];
    fail_with("it ends too early");
    return 0;
  }

  std::shared_ptr<const Alternatives> alternatives(bool ignores_case) {
    auto out = std::make_shared<Alternatives>();
    constexpr int deepest = 50;
    if (++depth_ > deepest) fail_with("it is nested too deep");
    do {
      std::vector<Item>& items = out->each.emplace_back();
      while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
        items.push_back(atom(ignores_case));
        repeat(items.back());
      }
    } while (take(U"|"));
    --depth_;
    return out;
  }

  Item atom(bool ignores_case) {
    Item item;
    item.letters.ignores_case = ignores_case;
    if (take(U"$")) {
      item.look = Item::Look::end;
    } else if (take(U"(")) {
      if (take(U"?!"))
        item.look = Item::Look::not_ahead;
      else if (take(U"?="))
        item.look = Item::Look::ahead;
      else if (take(U"?i:"))
        ignores_case = true;
      else if (!take(U"?:") && take(U"?"))
        fail_with("a group of this kind is not understood");
      item.group = alternatives(ignores_case);
      if (!take(U")")) fail_with("a parenthesis is not closed");
    } else if (take(U"[")) {
      item.letters.negated = take(U"^");
      while (at_ < text_.size() && text_[at_] != ']') member(item.letters);
      if (!take(U"]")) fail_with("a class is not closed");
    } else if (take(U".")) {
      item.letters.in.push_back({{'\n', '\n'}});
      item.letters.negated = true;
    } else if (take(U"^")) {
      fail_with("^ is not understood");
    } else {
      member(item.letters);
    }
    return item;
  }

  /// A letter, a range or a kind.
  void member(LetterSet& set) {
    if (take(U"[") || take(U"&&")) return fail_with("a class within a class is not understood");
    if (take(U"\\")) {
      const char32_t kind = next();
      if (kind == 'p' || kind == 'P') return category(set, kind == 'P');
      if (kind == 's' || kind == 'S') return add(set, letters_.ranges("space"), kind == 'S');
      static constexpr std::pair<char32_t, char32_t> controls[] = {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}};
      for (const auto& [name, letter] : controls)
        if (kind == name) return add(set, {{letter, letter}}, false);
      if (kind < 128 && ((kind | 0x20U) >= 'a' && (kind | 0x20U) <= 'z'))
        return fail_with(fmt::format("\\{} is not understood", static_cast<char>(kind)));
      return range(set, kind);
    }
    range(set, next());
  }
  void range(LetterSet& set, char32_t first) {
    const bool is_range = at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']';
    if (!is_range) return add(set, {{first, first}}, false);
    ++at_;
    take(U"\\");
    add(set, {{first, next()}}, false);
  }
  void category(LetterSet& set, bool negated) {
    std::string name;
    if (!take(U"{")) return fail_with("\\p needs a kind in braces");
    while (at_ < text_.size() && text_[at_] != '}') append_utf8(name, text_[at_++]);
    take(U"}");
    LetterRanges ranges = letters_.ranges(name);
    if (ranges.empty()) fail_with(fmt::format("the kind of letters {} is not known", in_quotes(name)));
    add(set, std::move(ranges), negated);
  }
  static void add(LetterSet& set, LetterRanges ranges, bool negated) {
    (negated ? set.out : set.in).push_back(std::move(ranges));
  }

  void repeat(Item& item) {
    if (take(U"*")) {
      item.least = 0;
      item.most = no_limit;
    } else if (take(U"+")) {
      item.most = no_limit;
    } else if (take(U"?")) {
      item.least = 0;
    } else if (take(U"{")) {
      item.least = number();
      item.most = item.least;
      if (take(U",")) item.most = at_ < text_.size() && text_[at_] == '}' ? no_limit : number();
      if (!take(U"}")) fail_with("a brace is not closed");
    } else {
      return;
    }
    if (take(U"?")) return fail_with("repetition that takes as little as it can is not understood");
    item.keeps = take(U"+");
    if (item.keeps && item.group) fail_with("a group that keeps what it took is not understood");
  }
  std::size_t number() {
    std::size_t value = 0;
    constexpr std::size_t most = 10'000;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && value < most)
      value = value * 10 + (text_[at_++] - U'0');
    return value;
  }

  std::vector<char32_t> text_;
  const Letters& letters_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string fault_;
};

}  // namespace

Result<Pattern> Pattern::parse(std::string_view text, const Letters& letters) {
  ASSAY_TRY(whole, PatternParser(text, letters).whole());
  Pattern out;
  out.whole_ = whole;
  return out;
}

std::optional<std::size_t> Pattern::match(const std::vector<char32_t>& text, std::size_t start) const {
  std::size_t end = 0;
  const bool found = Matcher(text).any(*whole_, start, [&](std::size_t reached) {
    end = reached;
    return true;
  });
  return found ? std::optional(end - start) : std::nullopt;
}

}  // namespace assay::engine
