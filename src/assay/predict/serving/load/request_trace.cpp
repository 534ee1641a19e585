#include "assay/predict/serving/load/request_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "assay/base/text.h"
#include "assay/model/checkpoint/json_reader.h"

namespace assay::serving {
namespace {

using model::Json;

constexpr std::int64_t longest_request = 1'000'000'000;

/// The first of these keys that the object has.
const Json* member(const Json& object, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const Json* found = object.find(key)) return found;
  return nullptr;
}

Result<std::int64_t> length_of(const Json& object, std::initializer_list<std::string_view> keys,
                               const std::string& where) {
  const Json* found = member(object, keys);
  if (!found || found->kind != Json::Kind::integer || found->integer < 0 || found->integer > longest_request)
    return fail(where, fmt::format("{} is missing or no number of tokens", *keys.begin()),
                "e.g. {\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0, 1]}");
  return found->integer;
}

/// Arrivals as they are read.
struct Arrivals {
  std::optional<double> first, last;
  void add(const Json& request) {
    const Json* milliseconds = request.find("timestamp");
    const Json* seconds = request.find("t");
    const auto is_number = [](const Json* one) {
      return one && (one->kind == Json::Kind::integer || one->kind == Json::Kind::number);
    };
    if (!is_number(milliseconds) && !is_number(seconds)) return;
    const double at = is_number(seconds) ? seconds->number : (milliseconds->number * 1_ms).value();
    first = std::min(first.value_or(at), at);
    last = std::max(last.value_or(at), at);
  }
};

Result<void> add_request(const Json& from, const std::string& where, RequestTrace& trace) {
  if (from.kind != Json::Kind::object)
    return fail(where, fmt::format("a request is an object, and this is {}", describe(from.kind)),
                "one JSON object per line");
  TracedRequest request;
  ASSAY_TRY(prompt, length_of(from, {"input_length", "in"}, where));
  ASSAY_TRY(output, length_of(from, {"output_length", "out"}, where));
  request.prompt = std::max<std::int64_t>(1, prompt);
  request.output = std::max<std::int64_t>(1, output);
  if (const Json* blocks = from.find("hash_ids")) {
    if (blocks->kind != Json::Kind::list)
      return fail(where, "hash_ids is no list", "give numbers of the prompt's blocks, e.g. [0, 1]");
    for (const Json& block : blocks->items) {
      if (block.kind != Json::Kind::integer)
        return fail(where, "hash_ids are whole numbers", "blocks with the same text have the same number, e.g. [0, 1]");
      request.blocks.push_back(block.integer);
    }
  }
  trace.requests.push_back(std::move(request));
  return {};
}

/// The smallest power of two with which every prompt has as many blocks as it says.
std::int64_t block_of(const RequestTrace& trace) {
  std::int64_t least = 1;
  for (const TracedRequest& request : trace.requests)
    if (const auto blocks = static_cast<std::int64_t>(request.blocks.size()); blocks > 0)
      least = std::max(least, (request.prompt + blocks - 1) / blocks);
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least)));
}

Result<void> add_document(const Json& document, std::string_view file, RequestTrace& trace, Arrivals& arrivals) {
  const Json* requests = document.find("requests");
  if (requests->kind != Json::Kind::list)
    return fail(std::string(file), "requests is no list", "put one object for each request into [ ]");
  for (std::size_t i = 0; i < requests->items.size(); ++i) {
    const Json& one = requests->items[i];
    // A session's sub-agents have requests of their own, which are not its prompts.
    if (one.kind == Json::Kind::object && !member(one, {"input_length", "in"}) && one.find("requests")) continue;
    ASSAY_CHECK(add_request(one, fmt::format("{}: request {}", file, i + 1), trace));
    arrivals.add(one);
  }
  const Json* block = document.find("block_size");
  if (block && block->kind == Json::Kind::integer && block->integer > 0) trace.block = block->integer;
  return {};
}

}  // namespace

Result<RequestTrace> parse_request_trace(std::string_view text, std::string_view file) {
  constexpr std::size_t largest_document = 256U << 20;
  constexpr std::size_t most_requests = 1'000'000;
  RequestTrace trace;
  trace.block = 0;
  Arrivals arrivals;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view one = trim(text.substr(at, end - at));
    at = end + 1;
    ++line;
    if (one.empty()) continue;
    const std::string where = fmt::format("{}:{}", file, line);
    // A document over several lines, or on one.
    if (line == 1 && (one.find("\"requests\"") != one.npos || one == "{")) {
      ASSAY_TRY(document, model::parse_json(text, file, largest_document));
      if (!document.find("requests"))
        return fail(std::string(file), "the document has no requests", "or one JSON object per line");
      ASSAY_CHECK(add_document(document, file, trace, arrivals));
      break;
    }
    ASSAY_TRY(request, model::parse_json(one, where));
    ASSAY_CHECK(add_request(request, where, trace));
    arrivals.add(request);
    if (trace.requests.size() > most_requests)
      return fail(std::string(file), fmt::format("more than {} requests", human_count(most_requests)),
                  "take a part of them");
  }
  if (trace.requests.empty()) return fail(std::string(file), "there are no requests", "one JSON object per line");
  if (trace.block == 0) trace.block = block_of(trace);
  if (arrivals.first && *arrivals.last > *arrivals.first) trace.span = Seconds(*arrivals.last - *arrivals.first);
  return trace;
}

}  // namespace assay::serving
