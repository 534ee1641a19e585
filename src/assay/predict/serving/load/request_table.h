// Requests as a table: comma-separated values under a header.
#pragma once
#include <optional>
#include <string_view>

#include "assay/predict/serving/load/request_trace.h"

namespace assay::serving {

/// What a column or a key of a log of requests holds, by its name in any spelling: "ContextTokens",
/// "num_prefill_tokens".
enum class RequestField { none, time, nanoseconds, prompt, output, session };
RequestField request_field(std::string_view name);

/// A time in seconds: a number, or a date with a time of day.
std::optional<double> parse_moment(std::string_view text);

/// Adds the requests of a table, of which other columns are passed over. `file` names the place in errors.
Result<void> read_request_table(std::string_view text, std::string_view file, RequestTrace& trace);

}  // namespace assay::serving
