// --from: files and command lines of other programs as options of a request.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/launch/plan.h"
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/request.h"

namespace assay::verbs {

/// Whether --from of a request is a file or a command line, which other verbs have no use for.
inline bool is_launched(const Request& request) {
  const auto& options = request.verb().options;
  return request.has("from") &&
         std::any_of(options.begin(), options.end(), [](const OptionSpec& option) { return option.name == "emit"; });
}

/// What a request was filled from.
struct Launched {
  launch::Target target;
  launch::Reading reading;
  launch::Pairs filled;  ///< options of the request and their values
  std::vector<std::string> notes;
};

/// Fills what the request leaves open from its --from; nothing where it has none.
Result<std::optional<Launched>> fill_from(Request& request, const Context& context);
/// Adds the options that were used, and those that were not.
void add_from(const Launched& launched, report::Response& response);

/// The option of a request that a field of a plan means; nothing for what follows from other fields.
std::optional<std::pair<std::string, std::string>> option_of(const std::string& field, const std::string& value,
                                                             const launch::Settings& plan);

/// What holds between the fields of every plan of a verb.
std::span<const launch::Relation> relations_of(std::string_view verb);

}  // namespace assay::verbs
