#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "assay/ask/launch/shell_expressions.h"
#include "assay/ask/launch/shell_run.h"
#include "assay/base/text.h"

namespace assay::launch {
namespace {

using Words = std::vector<std::string>;

/// The place after what is not known, where that starts here; else this place.
std::size_t after_unknown(std::string_view text, std::size_t at) {
  return text[at] == unknown_open ? std::min(text.find(unknown_close, at), text.size() - 1) + 1 : at;
}

}  // namespace

std::string unknown(std::string_view text) { return fmt::format("{}{}{}", unknown_open, text, unknown_close); }
bool is_known(std::string_view text) { return text.find(unknown_open) == std::string_view::npos; }

std::string_view unset_name(std::string_view word) {
  const bool one = word.size() > 2 && word.front() == unknown_open && word.find(unknown_close) == word.size() - 1;
  return one && word[1] != '(' ? word.substr(1, word.size() - 2) : std::string_view();
}

std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == unknown_open)
      out += '$';
    else if (c != unknown_close)
      out += c;
  return out;
}

Words fields_of(std::string_view text, std::string_view separators) {
  Words out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = text.find_first_not_of(separators, at);
    if (start == std::string_view::npos) break;
    at = std::min(text.find_first_of(separators, start), text.size());
    out.emplace_back(text.substr(start, at - start));
  }
  return out;
}

bool ShellRun::assign_word(const std::string& raw) {
  std::size_t end = 0;
  while (end < raw.size() && is_name_character(raw[end])) ++end;
  const bool appends = raw.compare(end, 2, "+=") == 0;
  if (end == 0 || std::isdigit(static_cast<unsigned char>(raw.front())) != 0 ||
      (!appends && raw.compare(end, 1, "=") != 0)) {
    // "$NAME"="$VALUE", which declarations take.
    const std::size_t equals = raw.find('=');
    if (!raw.starts_with('"') || equals == std::string::npos) return false;
    return assign(single(raw.substr(0, equals)), {{single(raw.substr(equals + 1))}, false}, false), true;
  }
  const std::string name = raw.substr(0, end), value = raw.substr(end + (appends ? 2 : 1));
  ShellValue out;
  out.list = value.starts_with('(') && value.ends_with(')');
  if (out.list) {
    const auto items = shell_list(std::string_view(value).substr(1, value.size() - 2), where_);
    for (const std::string& item : items ? *items : Words{}) expand(item, out.items);
  } else {
    out.items = {single(value)};
  }
  assign(name, std::move(out), appends);
  return true;
}

void ShellRun::assign(const std::string& name, ShellValue value, bool appends) {
  if (around_.given.contains(name)) return;
  ShellValue& place = variables_[name];
  if (!appends) {
    place = std::move(value);
  } else if (value.list) {
    place.items.insert(place.items.end(), value.items.begin(), value.items.end());
    place.list = true;
  } else {
    if (place.items.empty()) place.items.emplace_back();
    place.items.front() += value.items.front();
  }
  for (std::string& item : place.items)
    if (item.size() >= longest_word) failed_ = "a variable of this script grows without end";
  if (place.items.size() > 10'000) failed_ = "a list of this script grows without end";
}

std::optional<ShellValue> ShellRun::lookup(std::string_view name) const {
  if (const auto found = around_.given.find(name); found != around_.given.end())
    return ShellValue{{found->second}, false};
  if (name == "@" || name == "*") return ShellValue{arguments_, true};
  if (name == "#") return ShellValue{{std::to_string(arguments_.size())}, false};
  if (name == "?") return ShellValue{{"0"}, false};
  if (const auto place = parse_number(name); place && *place >= 1.0 && *place <= static_cast<double>(arguments_.size()))
    return ShellValue{{arguments_[static_cast<std::size_t>(*place) - 1]}, false};
  if (const auto found = variables_.find(name); found != variables_.end()) {
    // A value that is another variable, which nothing sets, is no value either.
    if (found->second.items.size() != 1 || unset_name(found->second.items.front()).empty()) return found->second;
    const auto again = around_.given.find(unset_name(found->second.items.front()));
    return again == around_.given.end() ? std::optional(found->second) : ShellValue{{again->second}, false};
  }
  if (const auto found = around_.standard.find(name); found != around_.standard.end())
    return ShellValue{{found->second}, false};
  return std::nullopt;
}

void ShellRun::expand(std::string_view raw, Words& out, bool splits) {
  std::string word;
  bool is_word = false;
  const auto end_word = [&] {
    if (is_word || !word.empty()) out.push_back(std::exchange(word, {}));
    is_word = false;
  };
  const auto put = [&](const ShellValue& value, bool quoted) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0 && splits) end_word();
      if (i > 0 && !splits) word += ' ';
      if (quoted || !splits) {
        word += value.items[i];
        is_word = true;
        continue;
      }
      const std::string& text = value.items[i];
      constexpr std::string_view blanks = " \t\n";
      const Words fields = is_known(text) ? fields_of(text, blanks) : known_fields(text);
      for (std::size_t k = 0; k < fields.size(); ++k) {
        if (k > 0 || (!text.empty() && blanks.find(text.front()) != std::string_view::npos)) end_word();
        word += fields[k];
      }
      if (!text.empty() && blanks.find(text.back()) != std::string_view::npos) end_word();
    }
  };
  bool quoted = false;
  for (std::size_t at = 0; at < raw.size() && word.size() < longest_word;) {
    const char c = raw[at];
    if (const std::size_t past = after_unknown(raw, at); past > at) {
      word += raw.substr(at, past - at);
      at = past;
    } else if (c == '"') {
      quoted = !quoted;
      is_word = is_word || quoted;
      ++at;
    } else if (c == '\'' && !quoted) {
      const std::size_t end = std::min(raw.find('\'', at + 1), raw.size());
      word += raw.substr(at + 1, end - at - 1);
      is_word = true;
      at = std::min(end + 1, raw.size());
    } else if (c == '\\' && at + 1 < raw.size()) {
      if (quoted && std::string_view("$`\"\\\n").find(raw[at + 1]) == std::string_view::npos) word += c;
      if (raw[at + 1] != '\n') word += raw[at + 1];
      at += 2;
    } else if (c == '$' && raw.substr(at + 1, 1) == "'") {
      ++at;  // $'...'
    } else if (c == '$' || c == '`') {
      const std::size_t end = end_of_expansion(raw, at);
      if (end <= at + 1) {
        word += raw[at++];
        continue;
      }
      const ShellValue value = expansion(raw.substr(at, end - at));
      if (quoted && value.list && value.items.empty()) is_word = !word.empty();
      put(value, quoted);
      at = end;
    } else {
      word += c;
      ++at;
    }
  }
  end_word();
}

Words ShellRun::known_fields(std::string_view text) {
  Words out;
  std::string word;
  bool inside = false;
  for (const char c : text) {
    inside = c == unknown_open || (inside && c != unknown_close);
    if (!inside && (c == ' ' || c == '\t' || c == '\n')) {
      if (!word.empty()) out.push_back(std::exchange(word, {}));
    } else {
      word += c;
    }
  }
  if (!word.empty()) out.push_back(std::move(word));
  return out;
}

std::string ShellRun::single(std::string_view raw) {
  Words out;
  const std::string text(raw);
  const bool plain = text.find_first_of("\"'\\") == std::string::npos;
  if (plain) return within(text, false);
  expand(raw, out, false);
  return join(out, " ");
}

std::string ShellRun::within(std::string_view text, bool escapes) {
  std::string out;
  for (std::size_t at = 0; at < text.size() && out.size() < longest_word;) {
    if (const std::size_t stop = after_unknown(text, at); stop > at) {
      out += text.substr(at, stop - at);
      at = stop;
      continue;
    }
    if (escapes && text[at] == '\\' && at + 1 < text.size() &&
        std::string_view("$`\\").find(text[at + 1]) != std::string_view::npos) {
      out += text[at + 1];
      at += 2;
      continue;
    }
    const std::size_t end = text[at] == '$' || text[at] == '`' ? end_of_expansion(text, at) : at + 1;
    out += end <= at + 1 ? std::string(1, text[at]) : join(expansion(text.substr(at, end - at)).items, " ");
    at = std::max(end, at + 1);
  }
  return out;
}

ShellValue ShellRun::expansion(std::string_view raw) {
  if (depth_ >= deepest_run) return {{unknown(raw.substr(1))}, false};
  if (raw.starts_with("$((") && raw.ends_with("))")) {
    const auto value = arithmetic(raw.substr(3, raw.size() - 5));
    return {{value ? std::to_string(*value) : unknown(raw.substr(1))}, false};
  }
  if (raw.starts_with("$(") || raw.starts_with('`')) {
    const std::size_t open = raw.starts_with('`') ? 1 : 2;
    const std::string text(raw.substr(open, raw.size() - open - 1));
    const bool before = std::exchange(substitutes_, true);
    std::string out = output_of([&] { run_text(text); });
    substitutes_ = before;
    while (out.ends_with('\n')) out.pop_back();
    return {{out}, false};
  }
  if (raw.starts_with("${")) return braces(raw.substr(2, raw.size() - 3));
  const std::string_view name = raw.substr(1);
  const auto value = lookup(name);
  if (!value) return {{unset(name)}, false};
  if (name == "@" || name == "*") return *value;
  return {{value->items.empty() ? "" : value->items.front()}, false};
}

std::string ShellRun::unset(std::string_view name) {
  if (testing_) note_unset(name);
  return testing_ ? "" : unknown(name);
}

void ShellRun::note_unset(std::string_view name) {
  if (std::find(out_.unset.begin(), out_.unset.end(), name) == out_.unset.end()) out_.unset.emplace_back(name);
}

ShellValue ShellRun::braces(std::string_view text) {
  const bool counts = text.starts_with('#') && text.size() > 1, indirect = text.starts_with('!');
  if (counts || indirect) text.remove_prefix(1);
  std::size_t end = 0;
  while (end < text.size() && is_name_character(text[end])) ++end;
  if (end == 0 && !text.empty() && (text[0] == '@' || text[0] == '*')) end = 1;
  std::string name(text.substr(0, end));
  std::string_view rest = text.substr(end);
  auto value = lookup(name);
  if (indirect && value && !value->items.empty()) value = lookup(value->items.front());
  bool whole = false;
  if (rest.starts_with('[')) {
    const std::size_t close = std::min(rest.find(']'), rest.size());
    const std::string index(rest.substr(1, close - 1));
    rest.remove_prefix(std::min(close + 1, rest.size()));
    whole = index == "@" || index == "*";
    const auto place = whole ? std::nullopt : arithmetic(index);
    if (value && place && *place >= 0 && static_cast<std::size_t>(*place) < value->items.size())
      value = ShellValue{{value->items[static_cast<std::size_t>(*place)]}, false};
    else if (!whole)
      value.reset();
    if (whole && !value) value = ShellValue{{}, true};
  }
  if (whole || name == "@" || name == "*") {
    if (counts) return {{std::to_string(value->items.size())}, false};
    return {value->items, true};
  }
  std::string now = value && !value->items.empty() ? value->items.front() : "";
  const std::string_view other = unset_name(now);
  const bool is_set = value && other.empty();
  if (counts) return {{is_known(now) ? std::to_string(now.size()) : unknown(fmt::format("{{#{}}}", name))}, false};
  if (rest.empty()) return {{value ? (testing_ && !other.empty() ? unset(other) : now) : unset(name)}, false};
  const bool colon = rest.starts_with(':');
  const std::string_view tail = rest.substr(std::min<std::size_t>(rest.size(), colon ? 1 : 0));
  const bool there = is_set && (!colon || !now.empty());
  if (!tail.empty() && std::string_view("-=?+").find(tail.front()) != std::string_view::npos) {
    const std::string_view operand = tail.substr(1);
    if (tail.front() == '+') return {{there ? single(operand) : ""}, false};
    if (there) return {{now}, false};
    if (testing_) note_unset(name);
    if (tail.front() == '?') return {{testing_ ? "" : unknown(name)}, false};
    std::string filled = single(operand);
    if (tail.front() == '=') assign(name, {{filled}, false}, false);
    return {{std::move(filled)}, false};
  }
  if (!is_set) return {{value ? now : unset(name)}, false};
  if (colon) {
    const Words parts = split(tail, ':');
    const auto from = arithmetic(parts.front()),
               size = parts.size() > 1 ? arithmetic(parts[1]) : std::optional<std::int64_t>(longest_word);
    if (!from || !size || *from < 0 || *size < 0 || !is_known(now))
      return {{unknown(fmt::format("{{{}}}", text))}, false};
    return {{static_cast<std::size_t>(*from) < now.size()
                 ? now.substr(static_cast<std::size_t>(*from), static_cast<std::size_t>(*size))
                 : ""},
            false};
  }
  return {{changed(std::move(now), rest, [&](std::string_view raw) { return single(raw); })}, false};
}

std::string ShellRun::tested(std::string_view raw) {
  const bool before = std::exchange(testing_, true);
  std::string out = single(raw);
  testing_ = before;
  for (std::string_view name = unset_name(out); !name.empty(); name = unset_name(out)) {
    note_unset(name);
    out.clear();
  }
  return out;
}

std::optional<bool> ShellRun::test(const Words& raw) {
  Words words;
  for (const std::string& word : raw) words.push_back(tested(word));
  return test_words(words);
}

std::optional<bool> ShellRun::test_words(Words words) {
  for (std::string& word : words)
    if (const std::string_view name = unset_name(word); !name.empty()) {
      note_unset(name);
      word.clear();
    }
  return test_holds(words, [](const std::string& word) { return is_known(word); });
}

std::optional<std::int64_t> ShellRun::arithmetic(std::string_view raw) {
  const std::string text = within(raw, false);
  if (!is_known(text)) return std::nullopt;
  return calculated(
      text,
      [&](std::string_view name) -> std::optional<std::string> {
        const auto value = lookup(name);
        if (!value || value->items.empty() || !is_known(value->items.front())) return std::nullopt;
        return value->items.front();
      },
      [&](std::string_view name, std::int64_t value) {
        assign(std::string(name), {{std::to_string(value)}, false}, false);
      });
}

}  // namespace assay::launch
