// One step of a plan, executed: shards before it in, shards after it out.
#pragma once
#include "assay/execute/devices.h"
#include "assay/execute/kernels/product.h"
#include "assay/plan/planner.h"

namespace assay::execute {

/// Runs a collective or a slice.
/// Bytes: when sizes divide, every device receives exactly what the plan says, but for a permute, where a device that
/// already holds its shard gets nothing. When they do not, the mean over devices is what the plan says.
template <class T>
Shards<T> run_step(VirtualDevices<T>& devices, const plan::PlanStep& step, const Shards<T>& shards);

/// Runs the local products of a multiply.
template <class T>
Shards<T> run_multiply(const plan::PlanStep& step, const Shards<T>& left, const Shards<T>& right);

/// The names of a tensor's dimensions in order.
DimensionNames names_of(const program::Tensor& tensor);

}  // namespace assay::execute
