// The public interface: any text gets one line of JSON, an answer or an error. Requests that search or simulate are
// only read; the quick ones are answered.
#include <algorithm>
#include <string>
#include <string_view>

#include "assay/ask/verbs/request.h"
#include "assay/ask/verbs/table/value_kinds.h"
#include "assay/assay.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

bool is_quick(const verbs::Request& request) {
  constexpr std::string_view quick[] = {"chips", "clusters", "software", "transfer", "roofline"};
  return std::find(std::begin(quick), std::end(quick), request.verb().name) != std::end(quick);
}

const fuzz::Target answer_target("answer", [](std::string_view text) {
  static const Engine engine;
  const auto request = verbs::parse_json_request(text);
  if (request && !is_quick(*request)) return;
  const Answer answer = engine.answer(text, AnswerLayout::one_line);
  require(answer.json.ends_with("}\n") && answer.json.find('\n') == answer.json.size() - 1);
  require(answer.status != 70 && answer.files.empty());
  require(answer.json.starts_with(answer.status == 0 ? "{\"schema\"" : "{\"error\"") || answer.status == 3);
  if (request && !verbs::check_without_files(*request)) require(answer.status != 0);
});

}  // namespace
