#include "assay/lab/validate/rows/csv_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "assay/base/text.h"
#include "assay/predict/kernel/software/version_numbers.h"

namespace assay::validate {
namespace {

bool is_one_of(std::string_view text, std::string_view words) {
  if (words.empty()) return false;
  const std::vector<std::string> all = split(words, '|');
  return std::any_of(all.begin(), all.end(), [&](std::string_view word) { return kernel::matches(word, text); });
}

bool is_number(std::string_view text, Field::Kind kind) {
  constexpr double most = 9e15;  // a double holds every whole number up to this
  const auto value = parse_number(text);
  if (!value || *value > most) return false;
  if (kind == Field::Kind::amount) return *value > 0.0;
  if (kind == Field::Kind::level) return *value >= 0.0;
  return *value >= (kind == Field::Kind::whole ? 0.0 : 1.0) && *value == std::floor(*value);
}

std::string_view rule(Field::Kind kind) {
  switch (kind) {
    case Field::Kind::count:
    case Field::Kind::ways:
      return "no whole number from 1 to 9e15";
    case Field::Kind::whole:
      return "no whole number from 0 to 9e15";
    case Field::Kind::amount:
      return "no number above 0, up to 9e15";
    case Field::Kind::level:
      return "no number from 0 to 9e15";
    case Field::Kind::yes_no:
    case Field::Kind::words:
      break;
  }
  return "not understood";
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// "1,024.5" without its commas; the text itself if they do not stand between thousands.
std::string without_commas(const std::string& text) {
  const std::size_t end = std::min(text.find('.'), text.size());
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      out += text[i];
      continue;
    }
    if (i == 0 || i > end || (end - i) % 4 != 0) return text;
  }
  const bool many = out.size() != text.size();
  return many && !std::all_of(out.begin(), out.end(), [](char c) { return is_digit(c) || c == '.'; }) ? text : out;
}

/// The number of a field without the column's unit.
std::string tidy_number(const std::string& text, const Field& field) {
  std::string number = text;
  for (const std::string& unit : split(field.unit, '|'))
    if (!unit.empty() && text.ends_with(lower_case(unit)) && text.size() > unit.size()) {
      const std::string before(trim(std::string_view(text).substr(0, text.size() - unit.size())));
      if (is_digit(before.back())) number = before;
    }
  number = without_commas(number);
  if (field.kind == Field::Kind::ways && is_one_of(number, "0|none|no|off")) return "1";
  return parse_number(number) ? number : text;
}

std::string tidy_text(std::string_view given, const Field& field) {
  using enum Field::Kind;
  const std::string text = lower_case(trim(given));
  if (is_one_of(text, "n/a|na|-|--|?|unknown|not stated")) return "";
  if (field.kind == yes_no) {
    if (is_one_of(text, "y|yes|true|on|1")) return "y";
    return is_one_of(text, "n|no|false|off|0") ? "n" : text;
  }
  return field.kind == words || is_one_of(text, field.words) ? text : tidy_number(text, field);
}

/// "TP8 PP4" as numbers by name; nothing if there is anything else in the text.
std::map<std::string, std::string> ways_in(std::string_view text, std::span<const NamedWays> known) {
  std::map<std::string, std::string> out;
  std::string name, digits;
  const auto flush = [&] {
    const bool whole = !name.empty() && !digits.empty() && out.emplace(name, digits).second &&
                       std::any_of(known.begin(), known.end(), [&](const NamedWays& one) { return one.name == name; });
    name.clear();
    digits.clear();
    return whole;
  };
  for (const char c : lower_case(text)) {
    if (is_digit(c)) {
      digits += c;
    } else if (digits.empty() && std::isalpha(static_cast<unsigned char>(c)) != 0) {
      name += c;
    } else if (digits.empty() ? c != '=' && c != ' ' && c != '-' : !flush()) {
      return {};
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      name += c;
    }
  }
  return digits.empty() || flush() ? out : std::map<std::string, std::string>();
}

}  // namespace

void tidy(CsvTable& table, std::span<const Field> fields) {
  for (std::size_t row = 0; row < table.rows(); ++row)
    for (const Field& field : fields)
      if (const std::string_view text = table.text(row, field.column); !text.empty())
        table.put(row, field.column, tidy_text(text, field));
}

void spread_ways(CsvTable& table, std::string_view column, std::span<const NamedWays> known) {
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::map<std::string, std::string> ways = ways_in(table.text(row, column), known);
    const bool fits = std::all_of(known.begin(), known.end(), [&](const NamedWays& one) {
      const auto found = ways.find(std::string(one.name));
      const std::string_view stated = trim(table.text(row, one.column));
      return found == ways.end() || one.column == column || stated.empty() || stated == found->second;
    });
    if (ways.empty() || !fits) continue;
    for (const NamedWays& one : known)
      if (const auto found = ways.find(std::string(one.name)); found != ways.end())
        table.put(row, one.column, found->second);
  }
}

Why unread(const CsvTable& table, std::size_t row, std::span<const Field> fields) {
  for (const Field& field : fields) {
    const std::string_view text = trim(table.text(row, field.column));
    if (text.empty() || is_one_of(text, field.words)) continue;
    if (field.kind == Field::Kind::yes_no && is_one_of(text, "y|n")) continue;
    if (field.kind < Field::Kind::yes_no && is_number(text, field.kind)) continue;
    return fmt::format("{} {} is {}", field.column, in_quotes(text), rule(field.kind));
  }
  return std::nullopt;
}

}  // namespace assay::validate
