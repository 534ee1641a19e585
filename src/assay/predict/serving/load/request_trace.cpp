#include "assay/predict/serving/load/request_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "assay/base/json_scanner.h"
#include "assay/base/text.h"
#include "assay/predict/serving/load/request_table.h"

namespace assay::serving {
namespace {

/// Reads requests, one value after the other, into a trace.
class TraceReader {
 public:
  TraceReader(std::string_view text, RequestTrace& trace) : scanner_(text), trace_(trace) {}

  Result<void> read(std::string_view file) {
    trace_.block = 0;
    while (scanner_.peek() != '\0') {
      request(true);
    }
    if (scanner_.failed()) return tl::unexpected<Error>(scanner_.fault(file));
    return {};
  }

 private:
  static constexpr std::size_t most_requests = 1'000'000;
  static constexpr const char* example =
      R"(e.g. {"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]})";

  /// A request or, on the top level, a document with a list of them.
  void request(bool may_be_document) {
    if (scanner_.peek() != '{') return scanner_.fail_here("a request is no object", "one JSON object per line");
    TokenCount prompt{"input_length"}, output{"output_length"};
    std::optional<Seconds> at;
    std::optional<Seconds> think;
    std::int64_t session = may_be_document ? -1 : documents_;
    bool has_requests = false;
    blocks_.clear();
    scanner_.object([&](std::string_view key) {
      const RequestField field = request_field(key);
      if (key == "hash_ids")
        read_blocks();
      else if (field == RequestField::prompt)
        prompt.read(scanner_);
      else if (field == RequestField::output)
        output.read(scanner_);
      else if (field == RequestField::time || field == RequestField::nanoseconds)
        read_time(field == RequestField::nanoseconds ? 1_ns : key == "timestamp" ? 1_ms : 1_s, at);
      else if (field == RequestField::session)
        session = sessions_.emplace(std::string(scanner_.raw()), std::ssize(sessions_)).first->second;
      else if (key == "think_time")
        read_time(1_s, think);
      else if (key == "requests")
        has_requests = true, read_requests(may_be_document);
      else if (key == "hash_id_scope" && may_be_document)
        own_hashes_ = scanner_.raw() == "\"local\"";
      else if (key == "block_size" && may_be_document)
        read_block_size();
    });
    // A session's sub-agents have requests of their own, which are not its prompts.
    if (scanner_.failed() || (has_requests && (may_be_document || !prompt.given))) return;
    for (const TokenCount* length : {&prompt, &output})
      if (!length->value)
        return scanner_.fail_here(fmt::format("{} is missing or no number of tokens", length->name), example);
    if (trace_.requests.size() == most_requests)
      return scanner_.fail_here(fmt::format("more than {} requests", human_count(most_requests)),
                                "take a part of them");
    trace_.requests.push_back({std::max<std::int64_t>(1, *prompt.value), std::max<std::int64_t>(1, *output.value),
                               std::vector<std::int64_t>(blocks_.begin(), blocks_.end()), at, session, think});
  }

  /// Tokens of a prompt or an output.
  struct TokenCount {
    const char* name;
    bool given = false;
    std::optional<std::int64_t> value{};

    void read(JsonScanner& scanner) {
      constexpr std::int64_t longest = 1'000'000'000;
      given = true;
      value = whole_number(scanner.raw());
      if (value && (*value < 0 || *value > longest)) value.reset();
    }
  };

  /// Numbers in quotes are seconds.
  void read_time(Seconds unit, std::optional<Seconds>& at) {
    const bool is_text = scanner_.peek() == '"';
    const std::string_view text = is_text ? scanner_.string() : scanner_.raw();
    const auto moment = is_text ? parse_moment(text) : parse_number(text);
    if (!moment || *moment < 0.0) return scanner_.fail_here(fmt::format("{} is no time", text), example);
    at = is_text ? Seconds(*moment) : *moment * unit;
  }

  void read_blocks() {
    if (scanner_.peek() == '{') {
      trace_.has_components = true;
      return scanner_.skip();
    }
    if (scanner_.peek() != '[')
      return scanner_.fail_here("hash_ids is no list", "give numbers of the prompt's blocks, e.g. [0, 1]");
    scanner_.array([&] {
      const char c = scanner_.peek();
      const auto block = c == '-' || (c >= '0' && c <= '9') ? whole_number(scanner_.number()) : std::nullopt;
      if (!block)
        return scanner_.fail_here("hash_ids are whole numbers",
                                  "blocks with the same text have the same number, e.g. [0, 1]");
      blocks_.push_back(own_hashes_ ? *block + (documents_ << 40) : *block);
    });
  }

  void read_block_size() {
    const std::int64_t size = std::max<std::int64_t>(0, whole_number(scanner_.raw()).value_or(0));
    if (trace_.block > 0 && size != trace_.block)
      return scanner_.fail_here(fmt::format("blocks of {} and of {} tokens", trace_.block, size),
                                "put documents with equal blocks into one file");
    trace_.block = size;
  }

  void read_requests(bool of_document) {
    if (!of_document) return;
    ++documents_;
    if (scanner_.peek() != '[')
      return scanner_.fail_here("requests is no list", "put one object for each request into [ ]");
    scanner_.array([&] { request(false); });
  }

  JsonScanner scanner_;
  RequestTrace& trace_;
  std::vector<std::int64_t> blocks_;  ///< of the request that is read
  std::int64_t documents_ = 0;
  bool own_hashes_ = false;  ///< of a document: other documents mean other tokens
  std::map<std::string, std::int64_t> sessions_;
};

/// Counts arrivals from the first one on, where all requests have one.
void set_span(RequestTrace& trace) {
  std::optional<Seconds> first, last;
  const auto has_time = [](const TracedRequest& request) { return request.arrival.has_value(); };
  if (!std::all_of(trace.requests.begin(), trace.requests.end(), has_time)) {
    for (TracedRequest& request : trace.requests) request.arrival.reset();
    return;
  }
  for (const TracedRequest& request : trace.requests) {
    first = std::min(first.value_or(*request.arrival), *request.arrival);
    last = std::max(last.value_or(*request.arrival), *request.arrival);
  }
  for (TracedRequest& request : trace.requests) *request.arrival -= *first;
  if (*last > *first) trace.span = *last - *first;
}

/// The smallest power of two with which every prompt has as many blocks as it says.
std::int64_t block_of(const RequestTrace& trace) {
  std::int64_t least = 1;
  for (const TracedRequest& request : trace.requests)
    if (const auto blocks = static_cast<std::int64_t>(request.blocks.size()); blocks > 0)
      least = std::max(least, (request.prompt + blocks - 1) / blocks);
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least)));
}

}  // namespace

bool RequestTrace::has_blocks() const {
  return std::any_of(requests.begin(), requests.end(), [](const TracedRequest& one) { return !one.blocks.empty(); });
}

Result<RequestTrace> parse_request_trace(std::string_view text, std::string_view file) {
  RequestTrace trace;
  if (trim(text).starts_with('{') || trim(text).starts_with('['))
    ASSAY_CHECK(TraceReader(text, trace).read(file));
  else
    ASSAY_CHECK(read_request_table(text, file, trace));
  if (trace.requests.empty()) return fail(std::string(file), "there are no requests", "one JSON object per line");
  set_span(trace);
  if (trace.block <= 0) trace.block = block_of(trace);
  return trace;
}

}  // namespace assay::serving
