// Executes one step of a plan: takes the shards before it, returns the shards after it.
#pragma once
#include "assay/execute/devices.h"
#include "assay/execute/kernels/product.h"
#include "assay/plan/planner.h"

namespace assay::execute {

/// Runs a collective or a slice.
/// Bytes: when sizes divide, every device receives exactly the plan's bytes, except in a permute, where a device that
/// already holds its shard gets nothing. When they do not divide, the mean over devices equals the plan's bytes.
template <class T>
Shards<T> run_step(VirtualDevices<T>& devices, const plan::PlanStep& step, const Shards<T>& shards);

/// Runs the local products of a multiply.
template <class T>
Shards<T> run_multiply(const plan::PlanStep& step, const Shards<T>& left, const Shards<T>& right);

/// The names of a tensor's dimensions in order.
DimensionNames names_of(const program::Tensor& tensor);

}  // namespace assay::execute
