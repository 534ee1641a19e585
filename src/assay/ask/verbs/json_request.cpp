// Requests as JSON: the same checks as a command line, with the place of a fault.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assay/ask/verbs/request.h"
#include "assay/ask/verbs/table/value_kinds.h"
#include "assay/base/text.h"
#include "assay/hardware/inheritance.h"

namespace assay::verbs {
namespace {

using RequestJson = nlohmann::json;

constexpr std::string_view example_request =
    R"json(e.g. {"verb": "roofline", "arguments": {"op": "dot(N)", "on": "tpu-v5e"}})json";

/// How deep objects and lists nest in JSON.
int nesting(std::string_view json) {
  int depth = 0, deepest = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (in_text && json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      in_text = !in_text;
    } else if (!in_text && (json[i] == '{' || json[i] == '[')) {
      deepest = std::max(deepest, ++depth);
    } else if (!in_text && (json[i] == '}' || json[i] == ']')) {
      --depth;
    }
  }
  return deepest;
}

/// An object; `where` and `hint` are what an error says.
Result<RequestJson> parsed_object(std::string_view text, std::string_view where, std::string_view hint) {
  constexpr std::size_t limit = 1 << 20;
  constexpr int deepest = 16;
  const std::string place(where);
  if (text.size() > limit)
    return fail(place, fmt::format("the {} is larger than 1 MiB", where), "a request is a few options");
  if (const auto bad = invalid_utf8(text))
    return fail(place, fmt::format("byte {} is not UTF-8", *bad + 1), "requests are JSON in UTF-8");
  // Requests and files of the catalogue are shallow: what goes through them calls itself for each level. Nesting is not
  // left to a callback of the parser, which would look at all members of an object for each of them.
  const bool is_shallow = nesting(text) < deepest;
  RequestJson json = is_shallow ? RequestJson::parse(text, nullptr, false) : RequestJson();
  if (json.is_discarded() || !json.is_object())
    return fail(place, fmt::format("the {} is not a JSON object", where), std::string(hint), Error::Kind::usage);
  return json;
}

/// JSON as a value in a TOML file. Texts of JSON are texts of TOML.
std::string toml_value(const RequestJson& json) {
  if (!json.is_structured()) return json.dump();
  std::vector<std::string> parts;
  for (const auto& [key, value] : json.items())
    if (!value.is_null())
      parts.push_back(json.is_object() ? fmt::format("{} = {}", RequestJson(key).dump(), toml_value(value))
                                       : toml_value(value));
  return json.is_object() ? fmt::format("{{{}}}", join(parts, ", ")) : fmt::format("[{}]", join(parts, ", "));
}

/// A value as the command line would have it.
std::optional<std::string> word_of(const RequestJson& value, ValueKind kind) {
  if (value.is_object() && may_be_object(kind)) return value.dump();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

}  // namespace

/// Puts the members of a JSON request into a request.
class JsonReader {
 public:
  explicit JsonReader(const VerbSpec& verb) { request_.verb_ = &verb; }

  Result<Request> read(const RequestJson& arguments) {
    for (const ArgumentSpec& spec : request_.verb_->arguments) ASSAY_CHECK(take_argument(spec, arguments));
    for (const auto& [key, value] : arguments.items()) {
      const auto& known = request_.verb_->arguments;
      const bool is_argument = std::any_of(known.begin(), known.end(),
                                           [&name = key](const ArgumentSpec& spec) { return spec.name == name; });
      if (!is_argument && !value.is_null()) ASSAY_CHECK(take_option(key, value));
    }
    ASSAY_CHECK(request_.finish());
    return std::move(request_);
  }

 private:
  static std::string place(std::string_view key) { return fmt::format("request: {}", key); }

  Result<void> take_argument(const ArgumentSpec& spec, const RequestJson& arguments) {
    const auto found = arguments.find(spec.name);
    if (found == arguments.end() || found->is_null()) return {};
    if (const std::size_t at = static_cast<std::size_t>(&spec - request_.verb_->arguments.data());
        request_.arguments_.size() < at)
      return fail(place(spec.name), fmt::format("{} is missing", request_.verb_->arguments[at - 1].name), "",
                  Error::Kind::usage);
    // A command that is passed on may come as one line.
    if (request_.verb_->passes_options && found->is_string()) {
      ASSAY_SET(request_.arguments_, split_words(found->get<std::string>()));
      return {};
    }
    if (found->is_array() && !spec.repeatable)
      return fail(place(spec.name), "a list is not allowed here", "write one value", Error::Kind::usage);
    for (const RequestJson& item : found->is_array() ? *found : RequestJson::array({*found})) {
      const auto word = word_of(item, type_of(*request_.verb_, spec).kind);
      if (!word) return fail(place(spec.name), "expected text or a number", "", Error::Kind::usage);
      request_.arguments_.push_back(*word);
    }
    return {};
  }

  Result<void> take_option(const std::string& key, const RequestJson& value) {
    std::string option_name = key;
    std::replace(option_name.begin(), option_name.end(), '_', '-');
    const OptionSpec* option = find_option(*request_.verb_, option_name);
    if (option && option->of_terminal)
      return fail(place(key), "this option is for terminals: an answer to a JSON request is JSON", "leave it out",
                  Error::Kind::usage);
    if (value.is_array() && option && !option->repeatable)
      return fail(place(key), "a list is not allowed here", "write one value", Error::Kind::usage);
    if (value.is_boolean()) {
      const bool denies = !value.get<bool>() && option && option->value.empty() && !option->choices.empty();
      if (!value.get<bool>() && !denies && option) return {};
      return request_.add(option_name, denies ? "no" : "", place(key));
    }
    for (const RequestJson& item : value.is_array() ? value : RequestJson::array({value})) {
      const auto word = word_of(item, option ? type_of(*option).kind : ValueKind::text);
      if (!word)
        return fail(place(key), "expected text, a number, true, false or a list of texts", "", Error::Kind::usage);
      ASSAY_CHECK(request_.add(option_name, *word, place(key)));
    }
    return {};
  }

  Request request_;
};

Result<Request> parse_json_request(std::string_view text) {
  ASSAY_TRY(json, parsed_object(text, "request", example_request));
  for (const auto& [key, value] : json.items())
    if (key != "verb" && key != "arguments" && key != "picture")
      return fail(fmt::format("request: {}", key), "a request has verb, arguments and picture, nothing else",
                  std::string(example_request), Error::Kind::usage);
  const RequestJson picture = json.value("picture", RequestJson());
  if (!picture.is_null() && picture != "still" && picture != "steps")
    return fail("request: picture", "expected still or steps", "leave it out for an answer without pictures",
                Error::Kind::usage);
  if (!json.contains("verb") || !json["verb"].is_string())
    return fail("request", "verb is missing", std::string(example_request), Error::Kind::usage);
  ASSAY_TRY(verb, find_verb(json["verb"].get<std::string>()));
  const RequestJson arguments = json.value("arguments", RequestJson::object());
  if (!arguments.is_object())
    return fail("request: arguments", "arguments is an object: names and values", std::string(example_request),
                Error::Kind::usage);
  ASSAY_TRY(request, JsonReader(*verb).read(arguments));
  if (picture == "still") request.want_picture();
  if (picture == "steps") request.want_frames();
  return request;
}

Result<void> overlay_catalogue(hardware::Catalogue& catalogue, const std::string& value) {
  if (!value.starts_with('{')) return catalogue.overlay(value);
  constexpr std::string_view example = R"(e.g. {"chips/mine": {"base": "h100-sxm", "power": {"chip": "500 W"}}})";
  ASSAY_TRY(files, parsed_object(value, "catalogue", example));
  for (const auto& [path, file] : files.items()) {
    const std::string name = fmt::format("{}{}.toml", path.find('/') == std::string::npos ? "chips/" : "", path);
    if (file.is_string()) {
      catalogue.put(name, file.get<std::string>());
      continue;
    }
    if (!file.is_object())
      return fail(fmt::format("catalogue: {}", path), "a file is an object, or its text in TOML", std::string(example));
    std::string text;
    if (!file.contains("id")) text = fmt::format("id = {}\n", RequestJson(hardware::file_stem(name)).dump());
    for (const auto& [key, member] : file.items())
      if (!member.is_null()) text += fmt::format("{} = {}\n", RequestJson(key).dump(), toml_value(member));
    catalogue.put(name, std::move(text));
  }
  return {};
}

}  // namespace assay::verbs
