// Requests that a server really got: when they came, how long they are, and which blocks of tokens their prompts begin
// with.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"

namespace assay::serving {

struct TracedRequest {
  std::int64_t prompt = 1, output = 1;  ///< tokens
  std::vector<std::int64_t> blocks;     ///< hashes of the prompt's blocks, in order; equal numbers are equal tokens
  std::optional<Seconds> arrival{};     ///< from the first one on
  std::int64_t session = -1;            ///< equal numbers are one session; negative where the log does not say
  std::optional<Seconds> think{};       ///< from the answer before, in its session, to this request
};

struct RequestTrace {
  std::int64_t block = 1;  ///< tokens of a block; the last one of a prompt may have fewer
  std::vector<TracedRequest> requests;
  std::optional<Seconds> span;  ///< from the first arrival to the last, where they are told
  bool has_components = false;  ///< hashes are of parts of prompts without lengths, which are not read
  bool is_timed() const { return !requests.empty() && requests.front().arrival.has_value(); }  ///< all of them
  bool has_blocks() const;
};

/// JSON lines {"timestamp": ms, "input_length", "output_length", "hash_ids"}, in which a timestamp in quotes is in
/// seconds; or objects with "block_size" and "requests", each a session, whose times "t" are seconds and lengths "in"
/// and "out"; or a table under a header (request_table.h). Without a block size it is the smallest power of two that
/// the lengths allow. `file` names the place in errors.
Result<RequestTrace> parse_request_trace(std::string_view text, std::string_view file);

}  // namespace assay::serving
