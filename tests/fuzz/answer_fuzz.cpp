// The public interface: any text gets one line of JSON, an answer or an error. Requests that search or simulate are
// only read; the quick ones are answered.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "assay/assay.h"
#include "assay/verbs/request.h"
#include "assay/verbs/table/value_kinds.h"

namespace {

using namespace assay;

void require(bool truth) {
  if (!truth) std::abort();
}

bool is_quick(const verbs::Request& request) {
  constexpr std::string_view quick[] = {"chips", "clusters", "software", "transfer", "roofline"};
  return std::find(std::begin(quick), std::end(quick), request.verb().name) != std::end(quick);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Engine engine;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = verbs::parse_json_request(text);
  if (request && !is_quick(*request)) return 0;
  const Answer answer = engine.answer(text, AnswerLayout::one_line);
  require(answer.json.ends_with("}\n") && answer.json.find('\n') == answer.json.size() - 1);
  require(answer.status != 70 && answer.files.empty());
  require(answer.json.starts_with(answer.status == 0 ? "{\"schema\"" : "{\"error\"") || answer.status == 3);
  if (request && !verbs::check_without_files(*request)) require(answer.status != 0);
  return 0;
}
