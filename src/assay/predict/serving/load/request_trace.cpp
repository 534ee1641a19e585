#include "assay/predict/serving/load/request_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "assay/base/json_scanner.h"
#include "assay/base/text.h"

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
      if (is_document_) scanner_.finish();
    }
    if (scanner_.failed()) return tl::unexpected<Error>(scanner_.fault(file));
    if (trace_.requests.empty()) return fail(std::string(file), "there are no requests", "one JSON object per line");
    if (first_ && *last_ > *first_) trace_.span = Seconds(*last_ - *first_);
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
    std::optional<double> at;
    bool has_requests = false;
    blocks_.clear();
    scanner_.object([&](std::string_view key) {
      if (key == "hash_ids")
        read_blocks();
      else if (key == "input_length" || key == "in")
        prompt.read(scanner_);
      else if (key == "output_length" || key == "out")
        output.read(scanner_);
      else if (key == "timestamp" || key == "t")
        read_time(key == "t" ? Seconds(1) : 1_ms, at);
      else if (key == "requests")
        has_requests = true, read_requests(may_be_document);
      else if (key == "block_size" && may_be_document)
        trace_.block = std::max<std::int64_t>(0, whole_number(scanner_.raw()).value_or(0));
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
                               std::vector<std::int64_t>(blocks_.begin(), blocks_.end())});
    if (!at) return;
    first_ = std::min(first_.value_or(*at), *at);
    last_ = std::max(last_.value_or(*at), *at);
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

  void read_time(Seconds unit, std::optional<double>& at) {
    if (const auto number = parse_number(scanner_.raw())) at = *number * unit.value();
  }

  void read_blocks() {
    if (scanner_.peek() != '[')
      return scanner_.fail_here("hash_ids is no list", "give numbers of the prompt's blocks, e.g. [0, 1]");
    scanner_.array([&] {
      const char c = scanner_.peek();
      const auto block = c == '-' || (c >= '0' && c <= '9') ? whole_number(scanner_.number()) : std::nullopt;
      if (!block)
        return scanner_.fail_here("hash_ids are whole numbers",
                                  "blocks with the same text have the same number, e.g. [0, 1]");
      blocks_.push_back(*block);
    });
  }

  void read_requests(bool of_document) {
    if (!of_document) return;
    is_document_ = true;
    if (scanner_.peek() != '[')
      return scanner_.fail_here("requests is no list", "put one object for each request into [ ]");
    scanner_.array([&] { request(false); });
  }

  JsonScanner scanner_;
  RequestTrace& trace_;
  std::vector<std::int64_t> blocks_;  ///< of the request that is read
  bool is_document_ = false;
  std::optional<double> first_, last_;  ///< arrivals, in seconds
};

/// The smallest power of two with which every prompt has as many blocks as it says.
std::int64_t block_of(const RequestTrace& trace) {
  std::int64_t least = 1;
  for (const TracedRequest& request : trace.requests)
    if (const auto blocks = static_cast<std::int64_t>(request.blocks.size()); blocks > 0)
      least = std::max(least, (request.prompt + blocks - 1) / blocks);
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least)));
}

}  // namespace

Result<RequestTrace> parse_request_trace(std::string_view text, std::string_view file) {
  RequestTrace trace;
  ASSAY_CHECK(TraceReader(text, trace).read(file));
  if (trace.block == 0) trace.block = block_of(trace);
  return trace;
}

}  // namespace assay::serving
