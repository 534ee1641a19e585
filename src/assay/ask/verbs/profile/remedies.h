// What to do about each part of the difference between a profile and a prediction.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/verbs/profile/against.h"

namespace assay::verbs::profile {

/// "products", "kernels around products", "norms that did not run", "host gaps".
std::string item_name(const compare::GapItem& item);

/// A kernel by its name as far as people read it.
std::string kernel_name(std::string_view name);

/// One sentence for each item, from what ran and from what the same request predicts with other kernels; empty for
/// those too small to matter.
std::vector<std::string> remedies_of(const Comparison& comparison, const Request& against, const Context& context);

}  // namespace assay::verbs::profile
