#include "assay/ask/verbs/request.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/sentences.h"
#include "assay/ask/report/derivation.h"
#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/launched.h"
#include "assay/ask/verbs/prices.h"
#include "assay/base/progress.h"
#include "assay/base/text.h"
#include "assay/base/toml.h"

namespace assay::verbs {

const OptionSpec* find_option(const VerbSpec& verb, std::string_view name) {
  for (const OptionSpec& option : verb.options)
    if (option.name == name) return &option;
  for (const OptionSpec& option : common_options())
    if (option.name == name) return &option;
  return nullptr;
}

namespace {

constexpr std::size_t max_words = 10'000;  // a profile of each rank is one

std::vector<std::string> option_names(const VerbSpec& verb) {
  std::vector<std::string> names;
  for (const OptionSpec& option : verb.options) names.push_back("--" + std::string(option.name));
  for (const OptionSpec& option : common_options())
    if (std::string name = "--" + std::string(option.name); std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  return names;
}

/// A value of a config file as the command line would have it.
std::string scalar_text(const Toml& item) {
  if (item.kind == Toml::Kind::integer) return std::to_string(item.integer);
  if (item.kind == Toml::Kind::number) return exact_number(item.number);
  return item.text;
}

/// Whether an option takes KEY=VALUE, so that a config file may give it as a table.
bool is_map(const VerbSpec& verb, std::string_view name) {
  const OptionSpec* option = find_option(verb, name);
  return option && option->repeatable && option->value.find('=') != std::string_view::npos;
}

}  // namespace

namespace {

/// Whether an option that both know is one of the command that is passed on: the length of an answer rather than a
/// file to write, the files of a run rather than the number to start from.
bool is_of_inner(const std::vector<std::string>& command, std::string_view name, std::string_view value) {
  const auto inner = find_verb(command.empty() ? "" : command.front());
  if (!inner || std::none_of((*inner)->options.begin(), (*inner)->options.end(),
                             [&](const OptionSpec& own) { return own.name == name; }))
    return false;
  return name == "output" ? !names_output_file(value) : !parse_count(value, "");
}

}  // namespace

std::optional<std::string> Request::value(std::string_view option) const {
  for (const auto& [name, value] : options_)
    if (name == option) return value;
  return std::nullopt;
}

std::vector<std::string> Request::values(std::string_view option) const {
  std::vector<std::string> all;
  for (const auto& [name, value] : options_)
    if (name == option) all.push_back(value);
  return all;
}

report::Members Request::named_arguments() const {
  report::Members inputs;
  for (std::size_t i = 0; i < verb_->arguments.size() && i < arguments_.size(); ++i) {
    const ArgumentSpec& spec = verb_->arguments[i];
    if (spec.repeatable && arguments_.size() > i + 1) {
      report::Items all;
      for (std::size_t k = i; k < arguments_.size(); ++k) all.emplace_back(arguments_[k]);
      inputs.emplace_back(spec.name, std::move(all));
    } else {
      inputs.emplace_back(spec.name, arguments_[i]);
    }
  }
  for (const OptionSpec& option : verb_->options) {
    const auto all = values(option.name);
    if (all.empty()) continue;
    if (option.value.empty() || all.front().empty())
      inputs.emplace_back(option.name, *flag(option.name));
    else if (all.size() == 1)
      inputs.emplace_back(option.name, all.front());
    else
      inputs.emplace_back(option.name, report::Items(all.begin(), all.end()));
  }
  for (const char* option : {"catalogue", "without-fold"})  // which numbers are used
    if (const auto given = value(option)) inputs.emplace_back(option, *given);
  return inputs;
}

report::Members Request::echo() const {
  report::Members inputs{{"verb", verb_->name}};
  for (auto& argument : named_arguments()) inputs.push_back(std::move(argument));
  return inputs;
}

Request Request::without(std::string_view option) const {
  Request out = *this;
  std::erase_if(out.options_, [&](const auto& given) { return given.first == option; });
  return out;
}

Request Request::with(std::string_view option, std::string value) const {
  Request out = without(option);
  out.options_.emplace_back(option, std::move(value));
  return out;
}

Request Request::with_more(std::string_view option, std::string value) const {
  Request out = *this;
  out.options_.emplace_back(option, std::move(value));
  return out;
}

Request Request::without(std::string_view option, std::size_t n) const {
  Request out = *this;
  out.picture_ = out.frames_ = false;
  for (auto it = out.options_.begin(); it != out.options_.end(); ++it)
    if (it->first == option && n-- == 0) {
      out.options_.erase(it);
      break;
    }
  return out;
}

std::optional<bool> Request::flag(std::string_view option) const {
  const std::optional<std::string> given = value(option);
  return given ? std::optional(*given != "no") : std::nullopt;
}

Result<void> Request::add(std::string_view name, std::string value, std::string_view place) {
  const std::string flag = "--" + std::string(name);
  const std::string where = place.empty() ? flag : std::string(place);
  const OptionSpec* option = find_option(*verb_, name);
  if (!option)
    return fail(place.empty() ? std::string(verb_->name) : where, fmt::format("{} has no option {}", verb_->name, flag),
                suggestion(flag, option_names(*verb_)), Error::Kind::usage);
  const bool denied = option->value.empty() && !option->choices.empty();
  if (option->value.empty() && !denied && option->detail.empty() && !value.empty())
    return fail(where, fmt::format("this flag takes no value, got {}", in_quotes(value)),
                "write the flag alone; in a file, = true", Error::Kind::usage);
  if (!option->value.empty() && value.empty() && !option->may_stand_alone)
    return fail(where, "a value is missing", fmt::format("{} {}: {}", flag, option->value, option->help),
                Error::Kind::usage);
  if (!option->repeatable && has(name))
    return fail(where, "this option is given twice", "give it once", Error::Kind::usage);
  if (!option->choices.empty() && !(denied && value.empty())) {
    const auto allowed = split(option->choices, '|');
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      return fail(where, fmt::format("unknown value {}", in_quotes(value)),
                  fmt::format("one of {}", join(allowed, ", ")), Error::Kind::usage);
  }
  options_.emplace_back(name, std::move(value));
  return {};
}

Result<void> Request::fill(std::string_view option, std::string value, std::string_view place) {
  if (has(option)) return {};
  filled_.emplace_back(option, place);
  return add(option, std::move(value), place);
}

bool Request::is_filled(std::string_view option, std::string_view place) const {
  return std::find(filled_.begin(), filled_.end(), std::pair(std::string(option), std::string(place))) != filled_.end();
}

Result<void> Request::fill_argument(std::string value) {
  arguments_.push_back(std::move(value));
  return finish();
}

void Request::replace(std::string_view option, std::string value) {
  for (auto& [name, old] : options_)
    if (name == option) old = std::move(value);
}

Result<void> Request::finish() const {
  std::size_t needed = 0, most = 0;
  for (const ArgumentSpec& argument : verb_->arguments) {
    needed += argument.required;
    most = argument.repeatable ? max_words : most + 1;
  }
  if (arguments_.size() < needed && !is_launched(*this))  // which may name the rest
    return fail(std::string(verb_->name), fmt::format("{} is missing", verb_->arguments[arguments_.size()].name),
                verb_->examples.empty() ? "" : fmt::format("e.g. {}", verb_->examples.front().command),
                Error::Kind::usage);
  if (arguments_.size() > most)
    return fail(std::string(verb_->name), fmt::format("unexpected argument {}", in_quotes(arguments_[most])),
                fmt::format("`assay {} --help` shows what it takes", verb_->name), Error::Kind::usage);
  return {};
}

bool names_output_file(std::string_view output) {
  constexpr std::string_view endings[] = {".txt", ".table", ".tree", ".json", ".csv", ".md", ".svg", ".html"};
  return output.find('/') != std::string_view::npos ||
         std::any_of(std::begin(endings), std::end(endings),
                     [&](std::string_view ending) { return output.ends_with(ending); });
}

Result<Request> parse_request(std::span<const std::string> words) {
  if (words.empty()) return fail("", "no command is given", "`assay --help` lists them", Error::Kind::usage);
  if (words.size() > max_words) return fail("", fmt::format("more than {} words", max_words), "", Error::Kind::usage);
  ASSAY_TRY(verb, find_verb(words.front()));
  Request request;
  request.verb_ = verb;
  bool only_arguments = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string word = words[i];
    if (word == "-q" && !only_arguments) word = "--quiet";
    if (word == "-e" && !only_arguments && find_option(*verb, "eval")) word = "--eval";
    if (word == "--" && !only_arguments) {
      only_arguments = true;
    } else if (word.starts_with("--") && !only_arguments) {
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
      const OptionSpec* option = find_option(*verb, name);
      const std::string after = equals != std::string::npos ? word.substr(equals + 1)
                                : i + 1 < words.size()      ? words[i + 1]
                                                            : "";
      if (verb->passes_options && (!option || is_of_inner(request.arguments_, name, after))) {
        request.arguments_.push_back(std::move(word));
        continue;
      }
      std::string value;
      const bool value_follows = i + 1 < words.size() && !(words[i + 1].starts_with("--") && words[i + 1].size() > 2);
      if (equals != std::string::npos)
        value = word.substr(equals + 1);
      else if (option && !option->value.empty() && value_follows)
        value = words[++i];
      ASSAY_CHECK(request.add(name, std::move(value), ""));
    } else if (word.starts_with("-") && word.size() > 1 && !only_arguments && !parse_number(word)) {
      return fail(std::string(verb->name), fmt::format("unknown option {}", in_quotes(word)),
                  "options start with two dashes; -q is --quiet", Error::Kind::usage);
    } else {
      request.arguments_.push_back(std::move(word));
    }
  }
  ASSAY_CHECK(request.finish());
  return request;
}

Result<void> apply_config(Request& request, std::string_view document, std::string_view file) {
  ASSAY_TRY(root, parse_toml(document, file));
  const auto apply = [&](const Toml& table, bool own) -> Result<void> {
    for (const auto& [key, value] : table.members) {
      const std::string where = fmt::format("{}:{}:{}: {}", file, value.line, value.column, key);
      if (value.kind == Toml::Kind::table && is_map(*request.verb_, key)) {
        if (request.has(key)) continue;  // the command line wins
        for (const auto& [name, entry] : value.members)
          ASSAY_CHECK(request.add(key, fmt::format("{}={}", name, scalar_text(entry)), where));
        continue;
      }
      if (value.kind == Toml::Kind::table) {
        if (own) return fail(where, "a table is not allowed here", "options of a command are key = value");
        const bool other_map =
            std::any_of(verbs().begin(), verbs().end(), [&name = key](const VerbSpec& v) { return is_map(v, name); });
        if (auto verb = find_verb(key); !verb && !other_map)
          return fail(where, verb.error().what, verb.error().hint, Error::Kind::usage);
        continue;
      }
      // A top-level key that only other verbs take is not meant for this one.
      const bool known = find_option(*request.verb_, key) != nullptr;
      const bool elsewhere = std::any_of(verbs().begin(), verbs().end(),
                                         [&name = key](const VerbSpec& v) { return find_option(v, name) != nullptr; });
      if (!known && !own && elsewhere) continue;
      if (known && request.has(key)) continue;  // the command line wins
      const OptionSpec* option = find_option(*request.verb_, key);
      const bool list = value.kind == Toml::Kind::array;
      if (list && option && !option->repeatable) return fail(where, "a list is not allowed here", "write one value");
      for (const Toml& item : list ? value.items : std::vector<Toml>{value}) {
        if (item.kind == Toml::Kind::array || item.kind == Toml::Kind::table)
          return fail(where, "expected a list of texts or numbers", "e.g. set = [\"A=1\", \"B=2\"]");
        std::string text = scalar_text(item);
        if (item.kind == Toml::Kind::boolean && !item.boolean) {
          if (!option || !option->value.empty() || option->choices.empty()) continue;
          text = "no";
        }
        if (auto added = request.add(key, text, where); !added) return added;
        if (!own) request.for_all_.push_back(key);
      }
    }
    return {};
  };
  if (const Toml* own = root.find(request.verb_->name); own && own->kind == Toml::Kind::table)
    if (auto done = apply(*own, true); !done) return done;
  return apply(root, false);
}

Result<void> apply_config_file(Request& request) {
  const auto file = request.value("config");
  if (!file) return {};
  ASSAY_TRY(text, hardware::read_file(*file, "--config"));
  return apply_config(request, text, *file);
}

Result<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (char c : line) {
    if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      open = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (open || !word.empty()) words.push_back(std::move(word));
      word.clear();
      open = false;
    } else {
      word += c;
    }
  }
  if (quote)
    return fail("", fmt::format("a quote is not closed in {}", in_quotes(line)),
                fmt::format("add the closing {}", quote), Error::Kind::usage);
  if (open || !word.empty()) words.push_back(std::move(word));
  return words;
}

namespace {

/// A configuration in braces stays one word, so that it needs no quotes inside of quotes.
std::string with_quoted_braces(std::string_view text) {
  std::string out;
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (depth == 0 && (c == '\'' || c == '"')) quote = quote == 0 ? c : quote == c ? '\0' : quote;
    if (c == '{' && quote == 0 && depth++ == 0) out += '\'';
    out += c;
    if (c == '}' && quote == 0 && depth > 0 && --depth == 0) out += '\'';
  }
  return out;
}

}  // namespace

Result<Request> parse_request_text(std::string_view text) {
  const std::string_view words = trim(text);
  if (words.starts_with('{')) return parse_json_request(words);
  ASSAY_TRY(parts, split_words(with_quoted_braces(words)));
  if (!parts.empty() && parts.front() == "assay") parts.erase(parts.begin());
  return parse_request(parts);
}

namespace {

/// Whether some range of an answer has its estimate outside its bounds.
bool has_estimate_outside(const report::Value& value) {
  if (const report::Items* items = value.items())
    return std::any_of(items->begin(), items->end(), has_estimate_outside);
  if (!value.members()) return false;
  const report::Value *lower = value.find("lower"), *estimate = value.find("estimate"), *upper = value.find("upper");
  if (lower && estimate && upper) {
    const auto from = report::numeric(*lower), at = report::numeric(*estimate), to = report::numeric(*upper);
    return from && at && to && (*at < *from || *at > *to);
  }
  return std::any_of(value.members()->begin(), value.members()->end(),
                     [](const auto& member) { return has_estimate_outside(member.second); });
}

/// What was found, less the requests that ask for it again and how it was searched.
report::Value findings(const report::Value& value) {
  if (const report::Items* items = value.items()) {
    report::Items out;
    for (const report::Value& item : *items) out.push_back(findings(item));
    return out;
  }
  if (!value.members()) return value;
  report::Members out;
  for (const auto& [key, member] : *value.members())
    if (key != "arguments" && key != "search") out.emplace_back(key, findings(member));
  return out;
}

}  // namespace

namespace {

Result<report::Response> answer_of(const Request& given, const Context& context) {
  Request request = given;
  ASSAY_TRY(launched, fill_from(request, context));
  for (const auto& [one, other, why] : request.verb().exclusive)
    if (request.has(one) && request.has(other))
      return fail(fmt::format("--{}", other), std::string(why), "give one of them", Error::Kind::usage);
  if (request.picture() && !request.verb().has_picture)
    return fail("--format svg", fmt::format("{} has no picture", request.verb().name),
                "use table, tree, json, csv or md", Error::Kind::usage);
  const auto fold = request.value("without-fold");
  const hardware::Catalogue& numbers =
      fold ? context.catalogue.fitted_without(fmt::format("folds/{}/", *fold)) : context.catalogue;
  std::optional<hardware::Catalogue> priced;
  ASSAY_TRY(choice, read_prices(request, numbers));
  if (!choice.own.empty() || !choice.provider.empty()) {
    priced = numbers;
    priced->choose_prices(std::move(choice));
  }
  const bool is_derived = request.has("derivatives");
  auto response =
      request.verb().answer(is_derived && !request.explain() ? request.with("explain", "") : request,
                            {priced ? *priced : numbers, context.surroundings, context.within, context.kept});
  if (!response) return response;
  response->inputs = given.echo();
  if (launched) add_from(*launched, *response);
  if (progress.is_stopped()) {
    response->notes.emplace_back("interrupted: this is the best of what was searched so far");
    response->important.push_back(response->notes.back());
    if (response->screen) response->screen->notes.push_back(response->notes.back());
  }
  if (!response->screen) {
    if (request.verb().screen)
      response->screen = request.verb().screen(request, *response);
    else if (const auto screen = declared_text(fmt::format("screens/{}.txt", request.verb().name)); !screen.empty())
      response->screen = report::described_screen(screen, *response);
  }
  if (has_estimate_outside(report::Value(response->results)))
    response->notes.emplace_back(
        "lower and upper are bounds of ideal hardware: what real kernels and links reach, the estimate, may lie above "
        "them");
  if (is_derived) report::add_derivatives(*response);
  if (request.picture() && !response->picture) response->picture = draw::sentences(response->headline, response->notes);
  if (!request.explain()) return response;
  if (response->derived.empty()) {
    response->notes.emplace_back("this answer has no derivation to show");
    if (response->screen) response->screen->notes.push_back(response->notes.back());
  } else {
    ASSAY_CHECK(report::choose_derivation(*request.value("explain"), *response));
  }
  return response;
}

/// Whether an answer has all that another one says.
bool says_all_of(const report::Response& answer, const report::Response& other) {
  const report::Value ours = findings(report::Value(answer.results)), theirs = findings(report::Value(other.results));
  return answer.outcome == other.outcome &&
         std::all_of(theirs.members()->begin(), theirs.members()->end(), [&](const auto& member) {
           const report::Value* same = ours.find(member.first);
           return same && report::render_json(*same) == report::render_json(member.second);
         });
}

}  // namespace

Result<report::Response> ask_within(const Request& request, const Context& context) {
  Context within = context;
  within.within = true;
  return answer_of(request, within);
}

namespace {

/// Whether an answer stays the same without the n-th value of --set. What takes longest is asked for again only where
/// all else is the same.
bool is_unused(const Request& request, const Context& context, const report::Response& response, std::size_t n) {
  const Request unset = request.without("set", n);
  for (const Request& less : {unset.without("sensitivity", 0), unset}) {
    const auto answer = ask_within(less, context);
    if (!answer || !says_all_of(response, *answer)) return false;
    if (!request.has("sensitivity")) break;
  }
  return true;
}

}  // namespace

Result<report::Response> ask(const Request& request, const Context& context) {
  ASSAY_TRY(response, answer_of(request, context));
  const auto set = request.values("set");
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (!is_unused(request, context, response, i)) continue;
    response.notes.push_back(
        fmt::format("{} is not used by this answer: --set changes nothing", set[i].substr(0, set[i].find('='))));
    if (response.screen) response.screen->notes.push_back(response.notes.back());
  }
  return response;
}

}  // namespace assay::verbs
