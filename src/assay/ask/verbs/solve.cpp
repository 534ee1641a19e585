// assay solve: the value of one option at which a condition on the answer of any other command changes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/verbs.h"
#include "assay/base/progress.h"
#include "assay/base/text.h"
#include "assay/predict/search/threshold.h"

namespace assay::verbs::solve {
namespace {

constexpr char unknown = '?';

/// The command to solve for, with the place of its unknown.
struct Line {
  std::vector<std::string> words;
  std::size_t word = 0, place = 0;

  std::vector<std::string> at(std::int64_t value) const {
    std::vector<std::string> all = words;
    all[word].replace(place, 1, std::to_string(value));
    return all;
  }
  /// "--batch", or the word itself where it is an argument.
  std::string name() const {
    const std::string& text = words[word];
    if (text.starts_with("--")) return text.substr(0, text.find('='));
    if (word > 0 && words[word - 1].starts_with("--") && words[word - 1].find('=') == std::string::npos)
      return words[word - 1];
    return text;
  }
  /// Whether the unknown is all of --batch, in tokens.
  bool is_bare_batch() const { return name() == "--batch" && (words[word] == "?" || words[word] == "--batch=?"); }
  std::string text(std::int64_t value) const {
    std::vector<std::string> all = at(value);
    for (std::string& one : all)
      if (one.find_first_of(" []*@<>") != std::string::npos) one = "'" + one + "'";
    return "assay " + join(all, " ");
  }
};

Result<Line> read_line(const Request& request) {
  Line line;
  for (const std::string& argument : request.arguments()) {
    // The whole command may stand in one pair of quotes; an argument of its own, an operation for instance, stays
    // whole.
    const bool command = request.arguments().size() == 1;
    if (!command) {
      line.words.push_back(argument);
      continue;
    }
    ASSAY_SET(line.words, split_words(argument));
  }
  std::size_t found = 0;
  for (std::size_t i = 0; i < line.words.size(); ++i)
    for (std::size_t at = 0; at < line.words[i].size(); ++at)
      if (line.words[i][at] == unknown) {
        ++found;
        line.word = i;
        line.place = at;
      }
  if (found != 1)
    return fail("solve", fmt::format("the command has {} unknowns, not one", found),
                "write ? for the number to find: assay solve roofline 'bf16[?,8192] @ bf16[8192,8192]' --on "
                "tpu-v5e --until compute-bound",
                Error::Kind::usage);
  if (line.words.front() == "solve" || line.words.front() == "book")
    return fail("solve", fmt::format("{} has no answer to solve for", in_quotes(line.words.front())),
                "solve roofline, collective, scaling, train, ...", Error::Kind::usage);
  return line;
}

/// A condition on an answer: a key compared with a value.
struct Condition {
  enum class Op { equal, less, at_most, more, at_least };
  std::vector<std::string> keys;  ///< the first that the answer has
  Op op = Op::equal;
  std::string text;                     ///< to compare with, where it is no number
  std::optional<AnyQuantity> quantity;  ///< else
  bool asks_for_memory = false;         ///< by a key of its own, not by "fits"
  std::string or_text = {};             ///< means the same as `text`; empty: nothing does
};

Result<Condition> read_condition(const Request& request) {
  const auto text = request.value("until");
  if (!text)
    return fail("solve", "--until is missing",
                "compute-bound, memory-bound, fits, or a key of the answer: 'time.lower<1ms'", Error::Kind::usage);
  if (*text == "fits")
    return Condition{{"memory.verdict", "memory.fits", "fits", "memory.sharded.fits"},
                     Condition::Op::equal,
                     "yes",
                     {},
                     false,
                     "fits"};
  if (text->ends_with("-bound"))
    return Condition{{"limiter"}, Condition::Op::equal, text->substr(0, text->size() - 6), {}, false};
  const std::size_t at = text->find_first_of("<>=");
  if (at == std::string::npos || at == 0)
    return fail("--until", fmt::format("{} is not a condition", in_quotes(*text)),
                "compute-bound, memory-bound, network-bound, fits, or KEY<VALUE, KEY>VALUE, KEY=VALUE",
                Error::Kind::usage);
  Condition condition;
  condition.keys = {std::string(trim(std::string_view(*text).substr(0, at)))};
  condition.asks_for_memory = condition.keys.front().starts_with("memory.");
  const bool or_equal = at + 1 < text->size() && (*text)[at + 1] == '=';
  const char sign = (*text)[at];
  condition.op = sign == '='   ? Condition::Op::equal
                 : sign == '<' ? (or_equal ? Condition::Op::at_most : Condition::Op::less)
                               : (or_equal ? Condition::Op::at_least : Condition::Op::more);
  condition.text = trim(std::string_view(*text).substr(at + (or_equal ? 2 : 1)));
  if (const auto quantity = parse_quantity(condition.text, "--until")) condition.quantity = *quantity;
  if (!condition.quantity && condition.op != Condition::Op::equal)
    return fail("--until", fmt::format("{} is not a number with a unit", in_quotes(condition.text)),
                "e.g. 'time.lower<1ms', 'mfu>0.4'", Error::Kind::usage);
  return condition;
}

/// Keys of an answer, to suggest one.
void collect_keys(const report::Value& value, const std::string& prefix, std::vector<std::string>& keys) {
  if (const report::Members* members = value.members())
    for (const auto& [key, child] : *members) {
      const std::string path = prefix.empty() ? key : prefix + "." + key;
      if (child.members())
        collect_keys(child, path, keys);
      else if (!child.items())
        keys.push_back(path);
    }
}

/// Keys that a word may have meant: those below it, those that end in it, or those that are spelled like it.
std::string meant(const std::string& word, const report::Value& results) {
  std::vector<std::string> keys, below, behind;
  collect_keys(results, "", keys);
  for (const std::string& key : keys) {
    if (key.starts_with(word + ".")) below.push_back(key);
    if (key.ends_with("." + word) || key.find("." + word + ".") != key.npos) behind.push_back(key);
  }
  const std::vector<std::string>& some = below.empty() ? behind : below;
  constexpr std::size_t most = 4;
  if (!some.empty()) return "e.g. " + join(std::span(some).first(std::min(most, some.size())), ", ");
  return suggestion(word, keys);
}

struct Met {
  bool holds = false;
  std::optional<double> number;  ///< what was compared, where it is one
};

/// Whether the answer meets the condition.
Result<Met> holds(const Condition& condition, const report::Response& response) {
  const report::Value results{response.results};
  std::optional<report::Value> value;
  for (const std::string& key : condition.keys)
    if (!value) value = report::find_path(results, key);
  if (!value) {
    if (response.outcome == report::Outcome::infeasible) return Met{};
    return fail("--until", fmt::format("the answer has no {}", condition.keys.front()),
                meant(condition.keys.front(), results), Error::Kind::usage);
  }
  if (value->members() || value->items())
    return fail("--until", fmt::format("{} is several values, not one", condition.keys.front()),
                meant(condition.keys.front(), results), Error::Kind::usage);
  const auto number = report::numeric(*value);
  if (!condition.quantity || !number) {
    const std::string text = report::scalar_text(*value);
    const bool same = text == condition.text || (!condition.or_text.empty() && text == condition.or_text);
    if (condition.op != Condition::Op::equal && !value->is_null())
      return fail("--until",
                  fmt::format("{} is {}, which is not a number", condition.keys.front(), report::scalar_text(*value)),
                  "compare it with =", Error::Kind::usage);
    return Met{same, {}};
  }
  const auto* quantity = std::get_if<report::QuantityValue>(&value->data());
  const Dim dim = quantity ? quantity->quantity.dim : Dim{};
  if (dim != condition.quantity->dim)
    return fail(
        "--until",
        fmt::format("{} is in {}, not in {}", condition.keys.front(), dim == Dim{} ? "plain numbers" : base_unit(dim),
                    condition.quantity->dim == Dim{} ? "plain numbers" : base_unit(condition.quantity->dim)),
        "", Error::Kind::usage);
  const double wanted = condition.quantity->value;
  switch (condition.op) {
    case Condition::Op::less:
      return Met{*number < wanted, number};
    case Condition::Op::at_most:
      return Met{*number <= wanted, number};
    case Condition::Op::more:
      return Met{*number > wanted, number};
    case Condition::Op::at_least:
      return Met{*number >= wanted, number};
    case Condition::Op::equal:
      break;
  }
  return Met{*number == wanted, number};
}

/// A plan that its own command refuses is no answer, unless the question is why: how much memory it would need.
bool refuses(const Condition& condition, const report::Response& response) {
  if (response.outcome != report::Outcome::infeasible) return false;
  return !condition.asks_for_memory || report::find_path(report::Value(response.results), "impossible").has_value();
}

/// Notices when a number that has moved stays where it is, however far the unknown is doubled: trying further is
/// futile.
class Plateau {
 public:
  void add(std::int64_t value, const Met& met) {
    if (!met.number || (last_ && value <= *last_)) return;  // only the way up counts
    last_ = value;
    const bool stays = met.holds == held_ && std::abs(*met.number - level_) <= flat * std::abs(level_);
    if (!stays && since_) has_moved_ = true;
    if (!stays || !since_) {
      since_ = value;
      level_ = *met.number;
      held_ = met.holds;
    }
  }
  /// The value from which it stays, where the last one is far enough from it.
  std::optional<std::int64_t> since() const { return has_moved_ && *last_ / *since_ >= far ? since_ : std::nullopt; }
  double level() const { return level_; }

 private:
  static constexpr double flat = 1e-3;
  static constexpr std::int64_t far = 16;
  std::optional<std::int64_t> last_, since_;
  double level_ = 0;
  bool held_ = false, has_moved_ = false;
};

Result<std::int64_t> read_end(const Request& request, std::string_view option, std::int64_t otherwise) {
  const auto text = request.value(option);
  if (!text) return otherwise;
  return parse_count(*text, fmt::format("--{}", option));
}

Result<search::ThresholdRange> read_range(const Request& request) {
  search::ThresholdRange range;
  ASSAY_TRY(from, read_end(request, "from", range.from));
  ASSAY_TRY(to, read_end(request, "to", range.to));
  if (from > to) return fail("--from", fmt::format("{} is above {}", from, to), "put the smaller end first");
  range.from = from;
  range.to = to;
  return range;
}

std::string_view kind_text(search::Threshold::Kind kind) {
  switch (kind) {
    case search::Threshold::Kind::smallest:
      return "smallest";
    case search::Threshold::Kind::largest:
      return "largest";
    case search::Threshold::Kind::always:
      return "any";
    default:
      return "none";
  }
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(line, read_line(request));
  ASSAY_TRY(condition, read_condition(request));
  ASSAY_TRY(range, read_range(request));
  // A value that its command refuses is not allowed; if all are, the first refusal is the answer.
  std::optional<Error> refused, broken;
  Plateau plateau;
  std::map<std::string, std::shared_ptr<void>> kept;
  Context asking = context;
  asking.kept = &kept;
  const auto test = [&](std::int64_t value) -> std::optional<bool> {
    if (broken || progress.is_stopped() || plateau.since()) return std::nullopt;
    const auto parsed = parse_request(line.at(value));
    if (!parsed) {
      broken = parsed.error();
      return std::nullopt;
    }
    const auto response = ask_within(*parsed, asking);
    if (!response) {
      if (!refused) refused = response.error();
      return std::nullopt;
    }
    if (line.is_bare_batch())  // what the command rounds to whole sequences is not a value of its own
      if (const auto used = report::find_path(report::Value(response->results), "batch");
          used && report::numeric(*used) != static_cast<double>(value))
        return std::nullopt;
    const auto met = holds(condition, *response);
    if (!met) {
      broken = met.error();
      return std::nullopt;
    }
    if (refuses(condition, *response)) return false;
    plateau.add(value, *met);
    return met->holds;
  };
  const search::Threshold found = search::find_threshold(test, range);
  if (broken) return tl::unexpected<Error>(*broken);
  if (found.kind == search::Threshold::Kind::nothing && progress.is_stopped())
    return fail("", "interrupted before any value was tried");
  if (found.kind == search::Threshold::Kind::nothing)
    return refused ? tl::unexpected<Error>(*refused) : fail("solve", "no value can be tried", "");
  report::Response response;
  report::Members& out = response.results;
  const std::string until = *request.value("until");
  const bool solved = found.kind == search::Threshold::Kind::smallest || found.kind == search::Threshold::Kind::largest;
  out.emplace_back("unknown", line.name());
  out.emplace_back("until", until);
  out.emplace_back("kind", kind_text(found.kind));
  out.emplace_back("value",
                   found.kind == search::Threshold::Kind::never ? report::Value() : report::Value(found.value));
  if (found.nearest_failing) out.emplace_back("nearest_that_fails", *found.nearest_failing);
  out.emplace_back("exact", found.exact);
  if (found.kind != search::Threshold::Kind::never) out.emplace_back("request", line.text(found.value));
  out.emplace_back("tried", report::rows_of(found.tested, [&](const search::Threshold::Tested& one) {
                     report::Members row{{"value", one.value}, {"holds", one.holds}};
                     return row;
                   }));
  response.table_key = "tried";
  if (solved) {
    response.headline = fmt::format("{} is the {} value of {} for which {} holds", human_count(found.value),
                                    kind_text(found.kind), line.name(), until);
    const auto parsed = parse_request(line.at(found.value));
    if (const auto last = ask_within(*parsed, asking); last && !last->headline.empty())
      response.notes.push_back("at this value: " + last->headline);
  } else if (found.kind == search::Threshold::Kind::always) {
    response.headline =
        fmt::format("{} holds for every value of {} tried, from {} up", until, line.name(), human_count(found.value));
  } else {
    response.headline = fmt::format("no value of {} up to {} gives {}", line.name(), human_count(found.value), until);
    response.outcome = report::Outcome::infeasible;
  }
  if (const auto since = plateau.since(); since && !solved)
    response.notes.push_back(fmt::format("{} stays at {} from {} on: larger values were not tried",
                                         condition.keys.front(), human_number(plateau.level()), human_count(*since)));
  if (found.alternates)
    response.notes.emplace_back(
        "the condition changes more than once: the table shows values beyond this one where it does not hold");
  if (!found.exact) response.notes.emplace_back("some values in between could not be tried, so a nearer one may exist");
  return response;
}

}  // namespace assay::verbs::solve
