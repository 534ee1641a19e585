// The answer to one request of a sweep: one line of JSON, and one row of a table.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "assay/ask/report/response.h"
#include "assay/base/result.h"

namespace assay::sweep {

struct Row {
  std::string request;        ///< {"verb", "arguments"} on one line: what the row is known by
  report::Members arguments;  ///< with the verb
  std::string headline, outcome;
  std::string error;        ///< empty where there is an answer
  report::Members results;  ///< each single result under its path: step_time.estimate

  bool is_answered() const { return error.empty(); }
  /// A result by its path, in base units.
  std::optional<double> number(std::string_view path) const;
  /// An argument as it was written; empty where it was not given.
  std::string argument(std::string_view name) const;
};

Row make_row(const report::Value& request, const Result<report::Response>& answer);

/// Ends in a newline.
std::string line_of(const Row& row);
/// Nothing where the line is not whole.
std::optional<Row> read_row(std::string_view line);

}  // namespace assay::sweep
