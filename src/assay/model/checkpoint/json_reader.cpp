#include "assay/model/checkpoint/json_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "assay/base/text.h"

namespace assay::model {
namespace {

constexpr std::size_t most_levels = 64;
constexpr std::size_t most_values = 4'000'000;  // a list of zeros is small in a file but large in memory

// Python writes these three words, which JSON lacks and the library refuses. Each is passed to it as a number whose
// text no writer produces; a sign before the word stays in place.
constexpr std::string_view infinity_text = "1e-00309", nan_text = "0e-00309";

/// The document with those words replaced outside strings; empty if it has none.
std::string without_words(std::string_view document) {
  if (document.find("Infinity") == std::string_view::npos && document.find("NaN") == std::string_view::npos) return {};
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < document.size(); ++i) {
    const std::string_view rest = document.substr(i);
    if (quoted && rest[0] == '\\' && rest.size() > 1) {
      out += rest.substr(0, 2);
      ++i;
    } else if (!quoted && rest.starts_with("Infinity")) {
      out += infinity_text;
      i += 7;
    } else if (!quoted && rest.starts_with("NaN")) {
      out += nan_text;
      i += 2;
    } else {
      quoted = quoted != (rest[0] == '"');
      out += rest[0];
    }
  }
  return out;
}

/// Builds the tree from the library's events. It reads without recursion; depth is still limited, because
/// code that walks the tree recurses.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(std::string_view file) : file_(file) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override {
    Json node;
    node.kind = Json::Kind::boolean;
    node.boolean = value;
    return add(std::move(node));
  }
  bool number_integer(number_integer_t value) override { return add_integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) return add_number(static_cast<double>(value));
    return add_integer(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.ends_with(infinity_text)) return add_number(std::copysign(std::numeric_limits<double>::infinity(), value));
    if (text.ends_with(nan_text)) return add_number(std::numeric_limits<double>::quiet_NaN());
    return add_number(value);
  }
  bool string(string_t& value) override {
    Json node;
    node.kind = Json::Kind::text;
    node.text = std::move(value);
    return add(std::move(node));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::Kind::object); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::Kind::list); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    keys_.back() = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& fault) override {
    std::string what = fault.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...": we show it from "at" on.
    if (const std::size_t start = what.find("] "); start != std::string::npos) what = what.substr(start + 2);
    if (what.size() > 200) what = what.substr(0, 200) + "...";
    for (char& c : what)
      if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
    refuse(fmt::format("not JSON: {} (byte {})", what, position), "is the file complete?");
    return false;
  }

  Json take() { return std::move(root_); }
  Error& error() { return error_; }

 private:
  bool refuse(std::string what, std::string hint) {
    if (error_.what.empty()) error_ = {Error::Kind::input, std::string(file_), std::move(what), std::move(hint), {}};
    return false;
  }
  bool add_integer(std::int64_t value) {
    Json node;
    node.kind = Json::Kind::integer;
    node.integer = value;
    node.number = static_cast<double>(value);
    return add(std::move(node));
  }
  bool add_number(double value) {
    Json node;
    node.kind = Json::Kind::number;
    node.number = value;
    return add(std::move(node));
  }
  /// Puts a finished value into the open object or list, or makes it the document.
  bool add(Json node) {
    if (++values_ > most_values)
      return refuse(fmt::format("more than {} values", human_count(static_cast<std::int64_t>(most_values))),
                    "a configuration or a header has far fewer");
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().kind == Json::Kind::list) {
      open_.back().items.push_back(std::move(node));
    } else {
      open_.back().members.emplace_back(std::move(keys_.back()), std::move(node));
    }
    return true;
  }
  bool open(Json::Kind kind) {
    if (open_.size() >= most_levels)
      return refuse(fmt::format("nested deeper than {} levels", most_levels), "a configuration nests a few levels");
    open_.emplace_back().kind = kind;
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Json node = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return add(std::move(node));
  }

  std::string_view file_;
  Json root_;
  std::vector<Json> open_;
  std::vector<std::string> keys_;
  std::size_t values_ = 0;
  Error error_;
};

}  // namespace

Json::Json() = default;

const Json* Json::find(std::string_view key) const {
  for (auto it = members.rbegin(); it != members.rend(); ++it)
    if (it->first == key) return &it->second;
  return nullptr;
}

std::string_view describe(Json::Kind kind) {
  constexpr std::string_view words[] = {"null", "true or false", "a whole number", "a number",
                                        "text", "a list",        "an object"};
  return words[static_cast<std::size_t>(kind)];
}

Result<Json> parse_json(std::string_view document, std::string_view file, std::size_t most_bytes) {
  if (document.size() > most_bytes)
    return fail(std::string(file),
                fmt::format("the document has {} bytes, the limit is {}", document.size(), most_bytes),
                "a configuration is a few kilobytes");
  if (trim(document).empty())
    return fail(std::string(file), "the document is empty", "a configuration is one JSON object");
  const std::string replaced = without_words(document);
  if (!replaced.empty()) document = replaced;
  Builder builder(file);
  if (!nlohmann::json::sax_parse(document.begin(), document.end(), &builder)) {
    if (builder.error().what.empty()) return fail(std::string(file), "not JSON", "is the file complete?");
    return tl::unexpected<Error>(std::move(builder.error()));
  }
  return builder.take();
}

Json json_of(const Toml& table) {
  Json node;
  switch (table.kind) {
    case Toml::Kind::table:
      node.kind = Json::Kind::object;
      for (const auto& [key, member] : table.members) node.members.emplace_back(key, json_of(member));
      break;
    case Toml::Kind::array:
      node.kind = Json::Kind::list;
      for (const Toml& item : table.items) node.items.push_back(json_of(item));
      break;
    case Toml::Kind::integer:
      node.kind = Json::Kind::integer;
      node.integer = table.integer;
      node.number = table.number;
      break;
    case Toml::Kind::number:
      node.kind = Json::Kind::number;
      node.number = table.number;
      break;
    case Toml::Kind::boolean:
      node.kind = Json::Kind::boolean;
      node.boolean = table.boolean;
      break;
    case Toml::Kind::text:
    case Toml::Kind::date:
      if (table.text != "null") {
        node.kind = Json::Kind::text;
        node.text = table.text;
      }
      break;
  }
  return node;
}

}  // namespace assay::model
