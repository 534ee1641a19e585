// Asks the requests of a sweep, on all cores of all ranks, and keeps each answer as soon as it is there.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "assay/ask/sweep/ranks.h"
#include "assay/ask/sweep/store.h"
#include "assay/base/result.h"

namespace assay::sweep {

/// Several threads ask at once.
using Ask = std::function<Row(const std::string& request)>;

/// Asks what the store lacks; returns how many this process has answered. Stops early where it is asked to. The first
/// rank waits until the rows of all others are there.
Result<std::size_t> run(const std::vector<std::string>& requests, const Ask& ask, Store& store, std::size_t threads,
                        const Ranks& ranks);

}  // namespace assay::sweep
