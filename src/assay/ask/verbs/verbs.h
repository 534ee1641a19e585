// What verbs share; each has a file or a folder of its own.
#pragma once
#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"

namespace assay::verbs {

/// Options that every verb with hardware shares.
inline constexpr OptionSpec on_option{"on", "CLUSTER",
                                      "where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml"};
inline constexpr OptionSpec set_option{"set", "KEY=VALUE",
                                       "replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s", true};

inline constexpr OptionSpec as_option{
    "as", "FAMILY", "read a configuration of an unknown architecture as one of this family, e.g. llama"};

/// The --set options as overrides of the chip file.
Result<std::vector<hardware::Override>> overrides_of(const Request& request);
/// Whether --set gives efficiencies: they then hold instead of what was measured.
bool sets_efficiency(const Request& request);
/// The cluster of --on, which must be given.
Result<hardware::Cluster> cluster_of(const Request& request, const Context& context);

}  // namespace assay::verbs
