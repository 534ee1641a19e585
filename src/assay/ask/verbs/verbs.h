// What verbs share; each has a file or a folder of its own.
#pragma once
#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"

namespace assay::verbs {

/// The --set options as overrides of the chip file.
Result<std::vector<hardware::Override>> overrides_of(const Request& request);
/// Whether --set gives efficiencies: they then hold instead of what was measured.
bool sets_efficiency(const Request& request);
/// The cluster of --on, which must be given.
Result<hardware::Cluster> cluster_of(const Request& request, const Context& context);

}  // namespace assay::verbs
