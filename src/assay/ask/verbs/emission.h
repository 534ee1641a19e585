// --emit: a plan as a script of a program, checked by reading it back.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/launch/target.h"
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"

namespace assay::verbs {

/// A plan for --emit.
struct Emission {
  const hardware::Cluster& cluster;
  launch::Settings plan;
  std::span<const std::string_view> promised;  ///< fields that the script must say
  std::string headline;                        ///< what the plan is predicted to do
  std::vector<std::string> notes = {};         ///< how the plan came about
};

/// Adds the script to the answer, as its text. An error where the script would not be read as the same plan.
Result<void> add_script(const Request& request, const Context& context, const Emission& emission,
                        report::Response& response);

/// Chips, nodes and chips of a node of a cluster.
launch::Settings cluster_fields(const hardware::Cluster& cluster);

}  // namespace assay::verbs
