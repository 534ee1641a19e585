// TOML as a plain tree that records the position of each value, and its reader.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"

namespace assay {

/// A value of a TOML document with its position. Members of a table are in file order.
struct Toml {
  enum class Kind { table, array, text, integer, number, boolean, date };
  /// How a table or list came about, which says what may still be added: in the header of a table inside of it, in a
  /// dotted key, in its own header, or whole, as a value.
  enum class Made : char { implied, dotted, header, whole };
  Kind kind = Kind::table;
  std::string text;  ///< content of a text, or a date as written: YYYY-MM-DD
  std::int64_t integer = 0;
  double number = 0.0;
  bool boolean = false;
  Made made = Made::implied;
  std::vector<std::pair<std::string, Toml>> members;
  std::vector<Toml> items;
  int line = 0, column = 0;
  /// Where it was read, if not in the document around it: the file of a base or, without a line, a whole place.
  std::string file;

  Toml();  // out of line: a vector of pairs needs the complete type

  const Toml* find(std::string_view key) const;
  Toml* find(std::string_view key);

  static Toml make_text(std::string value);
};

/// The name of a kind for messages: "a table", "text", ...
std::string_view describe(Toml::Kind kind);

/// Parses a whole document; `file` only names the place in errors. Refuses invalid UTF-8, control characters, non-ASCII
/// bytes outside of text and comments, and documents over 1 MiB.
Result<Toml> parse_toml(std::string_view document, std::string_view file);

/// A TOML value as typed on a command line: 16, 0.5, true, or text such as 1.23 TB/s.
Toml toml_scalar(std::string_view text);

/// A value as it is written behind a key.
std::string toml_value(const Toml& value);
/// A table as a document: values first, then tables under headers.
std::string toml_text(const Toml& table);

/// The value at "die.0.cores", made where tables lack it; null where something else is in the way.
Toml* toml_at(Toml& root, std::string_view path);

}  // namespace assay
