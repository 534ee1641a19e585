#include "assay/ask/verbs/validate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/text.h"

namespace assay::verbs::validate_verb {
namespace {

/// How far the upper end of an interval is above its middle; 0: there is none.
double spread_of(const report::Value& results, const validate::Question::Around& around) {
  const auto interval = report::find_path(results, around.interval), middle = report::find_path(results, around.number);
  const report::Value* high = interval ? interval->find("high") : nullptr;
  const std::optional<double> top = high ? report::numeric(*high) : std::nullopt,
                              number = middle ? report::numeric(*middle) : std::nullopt;
  return top && number ? *top / *number - 1.0 : 0.0;
}

/// A quantity, or the estimate of a range, with the spread of its interval.
Result<validate::Prediction> prediction_of(const report::Members& members, const validate::Question& question) {
  const report::Value results(members);
  const std::string& path = question.result;
  const auto value = report::find_path(results, path);
  const auto fits = report::find_path(results, "memory.verdict");
  if (!value && fits && report::scalar_text(*fits) == "no") return fail(path, "the model does not fit into memory");
  if (!value) return fail(path, fmt::format("the answer has no {}", in_quotes(path)));
  const report::Value* estimate = value->find("estimate");
  const auto* quantity = std::get_if<report::QuantityValue>(&(estimate ? *estimate : *value).data());
  if (!quantity) return fail(path, fmt::format("{} is not a quantity", in_quotes(path)));
  const validate::Question::Around own{path + ".interval", path + ".estimate"};
  const auto verdict = report::find_path(results, "memory.verdict");
  return validate::Prediction{quantity->quantity,
                              spread_of(results, question.around.interval.empty() ? own : question.around),
                              verdict ? report::scalar_text(*verdict) : ""};
}

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-_./:=,@%+").find(c) != std::string_view::npos;
}

}  // namespace

validate::Ask asking(const Context& context) {
  return [&context](const std::vector<std::string>& words,
                    const validate::Question& question) -> Result<validate::Prediction> {
    ASSAY_TRY(request, parse_request(words));
    ASSAY_TRY(response, ask_within(request, context));
    return prediction_of(response.results, question);
  };
}

validate::AskWith asking_with(const Context& context) {
  return [&context](const hardware::Catalogue& catalogue) -> validate::Ask {
    const Context with{catalogue, context.surroundings, context.within};
    return [with](const std::vector<std::string>& words, const validate::Question& question) {
      return asking(with)(words, question);
    };
  };
}

std::string command_line(std::span<const std::string> words) {
  std::string line = "assay";
  for (const std::string& word : words) {
    line += ' ';
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace assay::verbs::validate_verb
