// What a sweep asks and how it is summed up, as a file in TOML says it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/report/document.h"
#include "assay/base/result.h"

namespace assay::sweep {

/// An argument or option that takes several values.
struct Axis {
  std::string name;
  std::vector<report::Value> values;
};

/// The lowest or the highest of a result, by its path: "lowest step_time.estimate".
struct Goal {
  std::string text, path;
  bool highest = false;
  std::string place = {};  ///< in the file, for errors
};

/// A cell shows the best of the requests that have both of its arguments.
struct HeatMap {
  Goal goal;
  std::string across, down;  ///< arguments
};

struct Plan {
  std::string verb;           ///< of the grid
  report::Members arguments;  ///< that all requests of the grid share
  std::vector<Axis> axes;
  std::vector<std::string> commands;  ///< further requests, as one would type them

  std::vector<Goal> best;             ///< each asks for the request that reaches it
  std::vector<std::string> for_each;  ///< arguments: the best, a front and a heat map for each of their values
  std::vector<Goal> front;            ///< two goals: what no other request beats in both
  std::optional<HeatMap> heat_map;

  /// How many requests the grid has: one for every combination.
  std::size_t grid_size() const;
  /// The request of that number as {"verb", "arguments"}; the last axis changes first.
  report::Value grid_request(std::size_t number) const;
};

/// At most this many requests.
inline constexpr std::size_t most_requests = 1'000'000;

/// All faults at once; `file` names the document in them.
Result<Plan> read_plan(std::string_view document, std::string_view file);

}  // namespace assay::sweep
