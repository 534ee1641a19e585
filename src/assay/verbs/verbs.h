// The handlers behind the verbs; each lives in a file of its own.
#pragma once
#include "assay/hardware/cluster.h"
#include "assay/verbs/request.h"

namespace assay {

VerbSpec chips_verb();
VerbSpec models_verb();
VerbSpec clusters_verb();
VerbSpec roofline_verb();
VerbSpec systolic_verb();
VerbSpec transfer_verb();
VerbSpec shard_verb();
VerbSpec collective_verb();
VerbSpec layer_verb();
VerbSpec train_verb();
VerbSpec serve_verb();
VerbSpec scaling_verb();
VerbSpec solve_verb();
VerbSpec book_verb();
VerbSpec validate_verb();
VerbSpec measure_verb();

/// Options that every verb with hardware shares.
inline constexpr OptionSpec on_option{"on", "CLUSTER",
                                      "where it runs: tpu-v5e, tpu-v5p:16x20x28, h100-sxm:1024, @file.toml"};
inline constexpr OptionSpec set_option{"set", "KEY=VALUE",
                                       "replace a number of the chip, e.g. memory.hbm.bandwidth=1.23TB/s", true};

/// The --set options as overrides of the chip file.
Result<std::vector<Override>> overrides_of(const Request& request);
/// The cluster of --on, which must be given.
Result<Cluster> cluster_of(const Request& request, const Context& context);

}  // namespace assay
