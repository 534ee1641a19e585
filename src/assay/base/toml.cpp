#include "assay/base/toml.h"

#include <fmt/format.h>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 64  // keeps its recursion and ours far from the end of the stack
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "assay/base/text.h"

namespace assay {
namespace {

Toml convert(const toml::node& node) {
  Toml value;
  value.line = static_cast<int>(node.source().begin.line);
  value.column = static_cast<int>(node.source().begin.column);
  if (const auto* table = node.as_table()) {
    for (const auto& [key, member] : *table) {
      value.members.emplace_back(std::string(key.str()), convert(member));
      // A table's own position is its header; for a scalar, the position of its key is more useful.
      Toml& added = value.members.back().second;
      if (!member.is_table() && !member.is_array_of_tables()) {
        added.line = static_cast<int>(key.source().begin.line);
        added.column = static_cast<int>(key.source().begin.column);
      }
    }
    std::stable_sort(value.members.begin(), value.members.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.line, a.second.column) < std::pair(b.second.line, b.second.column);
    });
  } else if (const auto* array = node.as_array()) {
    value.kind = Toml::Kind::array;
    for (const auto& item : *array) value.items.push_back(convert(item));
  } else if (const auto* text = node.as_string()) {
    value.kind = Toml::Kind::text;
    value.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = Toml::Kind::integer;
    value.integer = integer->get();
    value.number = static_cast<double>(value.integer);
  } else if (const auto* number = node.as_floating_point()) {
    value.kind = Toml::Kind::number;
    value.number = number->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = Toml::Kind::boolean;
    value.boolean = boolean->get();
  } else if (const auto* date = node.as_date()) {
    value.kind = Toml::Kind::date;
    value.text = fmt::format("{:04}-{:02}-{:02}", date->get().year, date->get().month, date->get().day);
  } else {
    value.kind = Toml::Kind::date;
    std::ostringstream out;
    if (const auto* time = node.as_date_time()) out << time->get();
    if (const auto* time = node.as_time()) out << time->get();
    value.text = out.str();
  }
  return value;
}

/// Input that the TOML library must not see: non-ASCII bytes outside strings and comments, and keys with very many
/// parts, whose tables would nest deeper than its recursion can go.
std::optional<std::pair<std::size_t, std::string>> hostile_part(std::string_view text) {
  constexpr int max_parts = 64;
  std::string_view quote;  // the open string's delimiter
  std::string open;        // the enclosing arrays and inline tables, innermost last
  bool value = false;      // after the = of an entry, or in an array
  char before = '\n';      // the last character that was not blank
  int parts = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!quote.empty()) {
      if (c == '\\' && quote.front() == '"') {
        ++i;
      } else if (text.substr(i).starts_with(quote)) {
        i += quote.size() - 1;
        // A string in triple quotes may end in up to two quotes of its own: """he said "no"""".
        while (quote.size() == 3 && i + 1 < text.size() && text[i + 1] == quote.front()) ++i;
        quote = {};
      } else if (c == '\n' && quote.size() == 1) {
        quote = {}, before = c;  // not closed on its line; the parser reports it
        value = !open.empty() && open.back() == '[';
      }
      continue;
    }
    if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
      continue;
    }
    if (c == '"' || c == '\'') {
      // After anything else the parser treats the quote, and what follows, as part of a number.
      if (std::string_view(value ? "=[,\n" : "\n[{,.").find(before) == std::string_view::npos)
        return std::pair(i, std::string("a quote appears inside a value"));
      const std::string_view rest = text.substr(i);
      quote = rest.starts_with("\"\"\"") || rest.starts_with("'''") ? rest.substr(0, 3) : rest.substr(0, 1);
      i += quote.size() - 1;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      return std::pair(i, std::string("there is a non-ASCII byte outside a string"));
    } else if (c == '\n' || c == ',' || c == '=' || c == '{' || c == '[') {
      parts = 0;  // the next key or number begins
    } else if (c == '.' && ++parts > max_parts) {
      return std::pair(i, fmt::format("a key has more than {} parts", max_parts));
    }
    if (c == '=') value = true;
    if (c == '\n' && open.empty()) value = false;
    if (c == ',' && !open.empty()) value = open.back() == '[';
    if ((c == '[' && value) || c == '{') {
      open += c;
      value = c == '[';
    }
    if ((c == ']' || c == '}') && !open.empty()) {
      open.pop_back();
      value = true;
    }
    if (c != ' ' && c != '\t' && c != '\r') before = c;
  }
  return std::nullopt;
}

/// Whether a decoded string has a control character (other than line ends and tabs), which would control the terminal.
bool drives_terminal(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool c1 = c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if ((c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 0x7f || c1) return true;
  }
  return false;
}

/// The first value whose text or key contains a control character.
const Toml* control_text(const Toml& node) {
  if (drives_terminal(node.text)) return &node;
  for (const auto& [key, member] : node.members) {
    if (drives_terminal(key)) return &member;
    if (const Toml* found = control_text(member)) return found;
  }
  for (const Toml& item : node.items)
    if (const Toml* found = control_text(item)) return found;
  return nullptr;
}

}  // namespace

Toml::Toml() = default;

const Toml* Toml::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

Toml* Toml::find(std::string_view key) { return const_cast<Toml*>(std::as_const(*this).find(key)); }

Toml Toml::make_text(std::string value) {
  Toml node;
  node.kind = Kind::text;
  node.text = std::move(value);
  return node;
}

std::string_view describe(Toml::Kind kind) {
  constexpr std::string_view words[] = {"a table",  "a list",        "text",  "a whole number",
                                        "a number", "true or false", "a date"};
  return words[static_cast<std::size_t>(kind)];
}

Result<Toml> parse_toml(std::string_view document, std::string_view file) {
  constexpr std::size_t limit = 1 << 20;
  if (document.size() > limit)
    return fail(std::string(file), fmt::format("the file has {} bytes, the limit is {}", document.size(), limit),
                "split it into smaller files");
  if (const auto bad = invalid_utf8(document))
    return fail(place_in(file, document, *bad), "the text is not UTF-8", "save the file as UTF-8");
  for (std::size_t i = 0; i < document.size(); ++i) {
    const auto c = static_cast<unsigned char>(document[i]);
    if ((c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == '\x7f')
      return fail(place_in(file, document, i), fmt::format("control byte 0x{:02x}", c),
                  "remove it; a TOML file is plain text");
  }
  if (auto fault = hostile_part(document))
    return fail(place_in(file, document, fault->first), fault->second,
                "write keys and numbers in ASCII, text in double quotes");
  toml::parse_result parsed = toml::parse(document, file);
  if (!parsed) {
    const auto& begin = parsed.error().source().begin;
    return fail(fmt::format("{}:{}:{}", file, begin.line, begin.column), std::string(parsed.error().description()),
                "see the TOML format: key = value, text in double quotes");
  }
  Toml root = convert(parsed.table());
  if (const Toml* bad = control_text(root))
    return fail(fmt::format("{}:{}:{}", file, bad->line, bad->column), "the text contains a control character",
                "remove the escape such as \\u001b");
  return root;
}

Toml toml_scalar(std::string_view text) {
  Toml value = Toml::make_text(std::string(text));
  if (const auto number = parse_number(text)) {
    value.number = *number;
    value.kind = Toml::Kind::number;
    if (*number == std::floor(*number) && std::abs(*number) < 9e15) {
      value.kind = Toml::Kind::integer;
      value.integer = static_cast<std::int64_t>(*number);
    }
  } else if (text == "true" || text == "false") {
    value.kind = Toml::Kind::boolean;
    value.boolean = text == "true";
  }
  return value;
}

}  // namespace assay
