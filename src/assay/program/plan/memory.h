// What a device holds while it runs a plan.
#pragma once
#include "assay/program/plan/planner.h"

namespace assay::plan {

/// The most bytes at once. Operands stay, what steps make is kept until it was read last, the result to the end.
Bytes peak_memory(const program::Mesh& mesh, const Plan& plan);

}  // namespace assay::plan
