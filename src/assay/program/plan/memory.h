// What a device holds while it runs a plan.
#pragma once
#include "assay/program/plan/planner.h"

namespace assay::plan {

/// Peak bytes. Operands stay, what steps make is kept until its last reader is done, the result to the end.
Bytes peak_memory(const program::Mesh& mesh, const Plan& plan);

}  // namespace assay::plan
