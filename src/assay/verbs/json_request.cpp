// Requests as JSON: the same checks as a command line, with the place of a fault.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assay/base/text.h"
#include "assay/verbs/request.h"

namespace assay::verbs {
namespace {

using RequestJson = nlohmann::json;

constexpr std::string_view example_request =
    R"json(e.g. {"verb": "roofline", "arguments": {"op": "dot(N)", "on": "tpu-v5e"}})json";

Result<RequestJson> parsed_request(std::string_view text) {
  constexpr std::size_t limit = 1 << 20;
  constexpr int deepest = 8;
  if (text.size() > limit) return fail("request", "the request is larger than 1 MiB", "a request is a few options");
  if (const auto bad = invalid_utf8(text))
    return fail("request", fmt::format("byte {} is not UTF-8", *bad + 1), "requests are JSON in UTF-8");
  int depth = 0;
  // A request is shallow; refusing deep nesting keeps the parser's recursion bounded.
  RequestJson json = RequestJson::parse(
      text,
      [&](int level, RequestJson::parse_event_t, RequestJson&) {
        return depth = std::max(depth, level), level < deepest;
      },
      false);
  if (json.is_discarded() || depth >= deepest || !json.is_object())
    return fail("request", "the request is not a JSON object", std::string(example_request), Error::Kind::usage);
  return json;
}

/// A value as the command line would have it.
std::optional<std::string> word_of(const RequestJson& value) {
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
      ASSAY_TRY(words, split_words(found->get<std::string>()));
      request_.arguments_ = std::move(words);
      return {};
    }
    if (found->is_array() && !spec.repeatable)
      return fail(place(spec.name), "a list is not allowed here", "write one value", Error::Kind::usage);
    for (const RequestJson& item : found->is_array() ? *found : RequestJson::array({*found})) {
      const auto word = word_of(item);
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
      const auto word = word_of(item);
      if (!word)
        return fail(place(key), "expected text, a number, true, false or a list of texts", "", Error::Kind::usage);
      ASSAY_CHECK(request_.add(option_name, *word, place(key)));
    }
    return {};
  }

  Request request_;
};

Result<Request> parse_json_request(std::string_view text) {
  ASSAY_TRY(json, parsed_request(text));
  for (const auto& [key, value] : json.items())
    if (key != "verb" && key != "arguments")
      return fail(fmt::format("request: {}", key), "a request has verb and arguments, nothing else",
                  std::string(example_request), Error::Kind::usage);
  if (!json.contains("verb") || !json["verb"].is_string())
    return fail("request", "verb is missing", std::string(example_request), Error::Kind::usage);
  ASSAY_TRY(verb, find_verb(json["verb"].get<std::string>()));
  const RequestJson arguments = json.value("arguments", RequestJson::object());
  if (!arguments.is_object())
    return fail("request: arguments", "arguments is an object: names and values", std::string(example_request),
                Error::Kind::usage);
  return JsonReader(*verb).read(arguments);
}

}  // namespace assay::verbs
