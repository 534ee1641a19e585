#include "assay/validate/rows/csv_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/estimate/software/version_numbers.h"

namespace assay::validate {
namespace {

bool is_one_of(std::string_view text, std::string_view words) {
  if (words.empty()) return false;
  const std::vector<std::string> all = split(words, '|');
  return std::any_of(all.begin(), all.end(), [&](std::string_view word) { return estimate::matches(word, text); });
}

bool is_number(std::string_view text, Field::Kind kind) {
  constexpr double most = 9e15;  // a double holds every whole number up to this
  const auto value = parse_number(text);
  if (!value || *value > most) return false;
  if (kind == Field::Kind::amount) return *value > 0.0;
  if (kind == Field::Kind::level) return *value >= 0.0;
  return *value >= (kind == Field::Kind::count ? 1.0 : 0.0) && *value == std::floor(*value);
}

std::string_view rule(Field::Kind kind) {
  switch (kind) {
    case Field::Kind::count:
      return "no whole number from 1 to 9e15";
    case Field::Kind::whole:
      return "no whole number from 0 to 9e15";
    case Field::Kind::amount:
      return "no number above 0, up to 9e15";
    case Field::Kind::level:
      return "no number from 0 to 9e15";
    case Field::Kind::words:
      break;
  }
  return "not understood";
}

}  // namespace

Why unread(const CsvTable& table, std::size_t row, std::span<const Field> fields) {
  for (const Field& field : fields) {
    const std::string_view text = trim(table.text(row, field.column));
    if (text.empty() || is_one_of(text, field.words)) continue;
    if (field.kind != Field::Kind::words && is_number(text, field.kind)) continue;
    return fmt::format("{} {} is {}", field.column, in_quotes(text), rule(field.kind));
  }
  return std::nullopt;
}

}  // namespace assay::validate
