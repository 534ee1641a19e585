// JSON as a plain tree, and headers of checkpoints. The only user of the JSON library in this layer.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/toml.h"

namespace assay::model {

/// A value of a JSON document. Members keep the order of the file; if a key occurs twice, the last one counts.
struct Json {
  enum class Kind { null, boolean, integer, number, text, list, object };
  Kind kind = Kind::null;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0.0;  ///< also set for an integer
  std::string text;
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;
  bool inherited = false;  ///< of the model that a configuration starts from: its own field, by any name, stands

  Json();  // out of line: a vector of pairs needs the complete type

  const Json* find(std::string_view key) const;
};

/// The name of a kind for messages: "a list", "text", ...
std::string_view describe(Json::Kind kind);

/// Parses a whole document; `file` only names the place in errors. Infinity, -Infinity and NaN are numbers, as Python
/// writes them. Refuses documents over `most_bytes`, deeper than 64 levels
/// or of more than four million values, and invalid UTF-8.
Result<Json> parse_json(std::string_view document, std::string_view file, std::size_t most_bytes = 16U << 20);

/// A table of a data file as a JSON object. TOML has no null: the text "null" stands for it.
Json json_of(const Toml& table);

}  // namespace assay::model
