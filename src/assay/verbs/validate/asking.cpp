#include "assay/verbs/validate/asking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/text.h"

namespace assay::verbs::validate {
namespace {

/// A quantity, or the estimate of a range with the spread of its interval.
Result<assay::validate::Prediction> prediction_of(const report::Members& results, const std::string& path) {
  const auto value = report::find_path(report::Value(results), path);
  if (!value) return fail(path, fmt::format("the answer has no {}", in_quotes(path)));
  const report::Value* estimate = value->find("estimate");
  const report::Value* high = value->find("interval") ? value->find("interval")->find("high") : nullptr;
  const auto* quantity = std::get_if<report::QuantityValue>(&(estimate ? *estimate : *value).data());
  if (!quantity) return fail(path, fmt::format("{} is not a quantity", in_quotes(path)));
  const double spread = high ? report::numeric(*high).value_or(0.0) / quantity->quantity.value - 1.0 : 0.0;
  const auto verdict = report::find_path(report::Value(results), "memory.verdict");
  return assay::validate::Prediction{quantity->quantity, spread, verdict ? report::scalar_text(*verdict) : ""};
}

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-_./:=,@%+").find(c) != std::string_view::npos;
}

}  // namespace

assay::validate::Ask asking(const Context& context) {
  return [&context](const std::vector<std::string>& words,
                    const std::string& result) -> Result<assay::validate::Prediction> {
    ASSAY_TRY(request, parse_request(words));
    ASSAY_TRY(response, ask_within(request, context));
    return prediction_of(response.results, result);
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

}  // namespace assay::verbs::validate
