#include "assay/base/toml.h"

#include <fmt/format.h>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
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
      // A table's own place is its header; the place of a key is more useful for a scalar.
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
  } else {
    value.kind = Toml::Kind::date;
    std::ostringstream out;
    if (const auto* date = node.as_date()) out << date->get();
    if (const auto* time = node.as_date_time()) out << time->get();
    if (const auto* time = node.as_time()) out << time->get();
    value.text = out.str();
  }
  return value;
}

std::string place(std::string_view file, std::string_view document, std::size_t offset) {
  const std::string_view before = document.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? offset + 1 : offset - start;
  return fmt::format("{}:{}:{}", file, line, column);
}

}  // namespace

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
  switch (kind) {
    case Toml::Kind::table:
      return "a table";
    case Toml::Kind::array:
      return "a list";
    case Toml::Kind::text:
      return "text";
    case Toml::Kind::integer:
      return "a whole number";
    case Toml::Kind::number:
      return "a number";
    case Toml::Kind::boolean:
      return "true or false";
    case Toml::Kind::date:
      return "a date";
  }
  return "";
}

Result<Toml> parse_toml(std::string_view document, std::string_view file) {
  constexpr std::size_t limit = 1 << 20;
  if (document.size() > limit)
    return fail(std::string(file), fmt::format("the file has {} bytes, the limit is {}", document.size(), limit),
                "split it: one file per thing");
  if (const auto bad = invalid_utf8(document))
    return fail(place(file, document, *bad), "the text is not UTF-8", "save the file as UTF-8");
  for (std::size_t i = 0; i < document.size(); ++i) {
    const auto c = static_cast<unsigned char>(document[i]);
    if ((c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == '\x7f')
      return fail(place(file, document, i), fmt::format("control byte 0x{:02x}", c),
                  "remove it; a TOML file is plain text");
  }
  toml::parse_result parsed = toml::parse(document, file);
  if (!parsed) {
    const auto& begin = parsed.error().source().begin;
    return fail(fmt::format("{}:{}:{}", file, begin.line, begin.column), std::string(parsed.error().description()),
                "see the TOML format: key = value, text in double quotes");
  }
  return convert(parsed.table());
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
