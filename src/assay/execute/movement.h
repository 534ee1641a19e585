// Executes the movements of a program or a plan: slices and collectives, from the shards before to the shards after.
#pragma once
#include "assay/execute/devices.h"
#include "assay/program/step.h"

namespace assay::execute {

/// A tensor after it moved, and what that took.
template <class T>
struct Moved {
  Shards<T> shards;
  Bytes received;  ///< per device, the mean over the devices of this process
  Bytes busiest;   ///< by the device that receives most
};

/// Runs a collective or a slice of a tensor.
/// Bytes: when sizes divide, every device receives exactly the step's bytes, except in a permute, where a device that
/// already holds its shard gets nothing. When they do not divide, the mean over devices equals the step's bytes.
template <class T>
Moved<T> run_movement(VirtualDevices<T>& devices, const program::Step& step, const program::Tensor& before,
                      const program::Tensor& after, const Shards<T>& shards);

/// The part of a tensor that each device keeps in another sharding; no device receives anything.
template <class T>
Shards<T> sliced(const VirtualDevices<T>& devices, const program::Tensor& before, const program::Tensor& after,
                 const Shards<T>& shards);

}  // namespace assay::execute
