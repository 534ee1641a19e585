// Reads the declarations of results, and writes them as JSON Schema.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/ask/verbs/table/grammar.h"
#include "assay/base/result.h"

namespace assay::verbs {
namespace {

using report::Items;
using report::Members;
using report::Value;

Value reference(std::string_view name) { return Members{{"$ref", fmt::format("#/$defs/{}", name)}}; }

class DeclarationReader {
 public:
  explicit DeclarationReader(std::string_view text) : text_(text) {}

  Value read() {
    Value out = members("");
    skip();
    if (at_ != text_.size()) fault("what follows");
    return out;
  }

 private:
  [[noreturn]] void fault(std::string_view what) const {
    throw InternalError(fmt::format("a declaration of results: unexpected {} before {}", what,
                                    text_.substr(std::min(at_, text_.size()), 40)));
  }

  void skip() {
    while (at_ < text_.size() && (std::isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == ',')) ++at_;
  }

  bool take(std::string_view sign) {
    skip();
    if (text_.substr(at_, sign.size()) != sign) return false;
    at_ += sign.size();
    return true;
  }

  std::string_view word() {
    skip();
    const std::size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '-'))
      ++at_;
    if (at_ == start) fault("sign");
    return text_.substr(start, at_ - start);
  }

  std::string_view until(char end) {
    const std::size_t start = at_;
    at_ = text_.find(end, at_);
    if (at_ == std::string_view::npos) fault("end");
    return text_.substr(start, at_++ - start);
  }

  /// Keys and types up to `end`, or to the end of the text.
  Value members(std::string_view end) {
    Members properties;
    Items required;
    Value others = false;
    while (skip(), at_ < text_.size() && (end.empty() || !take(end))) {
      if (take("...$")) {
        const Value& object = named(word());
        for (const auto& property : *object.find("properties")->members()) properties.push_back(property);
        for (const Value& key : *object.find("required")->items()) required.push_back(key);
        continue;
      }
      const bool is_other = take("*"), is_name = take("$");
      const std::string_view key = is_other ? "" : word();
      const bool optional = take("?");
      if (!take(":")) fault("key");
      Value of_key = type();
      if (is_other)
        others = std::move(of_key);
      else if (is_name)
        named_.emplace_back(key, std::move(of_key));
      else
        properties.emplace_back(key, std::move(of_key));
      if (!optional && !is_other && !is_name) required.emplace_back(key);
    }
    Members out{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) out.emplace_back("required", std::move(required));
    out.emplace_back("additionalProperties", std::move(others));
    return out;
  }

  const Value& named(std::string_view wanted) const {
    for (std::size_t i = named_.size(); i-- > 0;)  // a verb's own come last
      if (named_[i].first == wanted) return named_[i].second;
    fault(wanted);
  }

  Value type() {
    Items choices;
    do choices.push_back(single());
    while (take("|"));
    if (choices.size() == 1) return choices.front();
    Items words;
    for (const Value& choice : choices)
      if (const Value* word = choice.find("const")) words.push_back(*word);
    if (words.size() == choices.size()) return Members{{"enum", std::move(words)}};
    return Members{{"anyOf", std::move(choices)}};
  }

  Value in_unit(std::string_view name, std::string_view path) {
    const std::string_view unit = until('>');
    Value out = reference(name);
    if (unit == "*") return out;
    Value narrowed = Members{{"properties", Members{{"unit", Members{{"const", unit}}}}}};
    if (!path.empty()) narrowed = Members{{"properties", Members{{std::string(path), std::move(narrowed)}}}};
    out.make_members().push_back(narrowed.make_members().front());
    return out;
  }

  Value single() {
    if (take("{")) return members("}");
    if (take("[")) {
      Value items = type();
      if (!take("]")) fault("list");
      return Members{{"type", "array"}, {"items", std::move(items)}};
    }
    if (take("\"")) return Members{{"const", until('"')}};
    if (take("<")) return in_unit("quantity", "");
    if (take("$")) return named(word());
    const std::string_view name = word();
    if ((name == "range" || name == "interval") && take("<"))
      return in_unit(name, name == "range" ? "estimate" : "high");
    if (name == "map") return Members{{"type", "object"}, {"additionalProperties", type()}};
    if (name == "any") return Members{};
    if (name == "arguments") return reference("arguments");
    static constexpr std::pair<std::string_view, std::string_view> plain[] = {
        {"text", "string"}, {"flag", "boolean"}, {"count", "integer"}, {"number", "number"}, {"null", "null"}};
    for (const auto& [word, type] : plain)
      if (word == name) return Members{{"type", type}};
    fault(name);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Members named_;
};

}  // namespace

Value schema_of(std::string_view declaration) { return DeclarationReader(declaration).read(); }

}  // namespace assay::verbs
