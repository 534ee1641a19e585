// Executes the movements of a program or a plan: slices and collectives, from the shards before to the shards after.
#pragma once
#include "assay/engine/devices.h"
#include "assay/program/form/program.h"
#include "assay/program/form/step.h"

namespace assay::engine {

/// A tensor after it moved, and what that took.
template <class T>
struct Moved {
  Shards<T> shards;
  Bytes received;  ///< per device, the mean over the devices of this process
  Bytes busiest;   ///< by the device that receives most
};

/// Runs a collective or a slice of a tensor.
/// Bytes: when sizes divide, every device receives exactly the step's bytes, except in a permute, where a device that
/// already holds its shard gets nothing, and one that sends to itself. With a permutation, the step sends along its
/// axis what the pairs say. When they do not divide, the mean over devices equals the step's bytes.
template <class T>
Moved<T> run_movement(VirtualDevices<T>& devices, const program::Step& step, const program::Tensor& before,
                      const program::Tensor& after, const Shards<T>& shards,
                      const program::Permutation* permutation = nullptr);

/// Rows that go to the devices that `to` names, one number a row, among those along the axes: each device gets its rows
/// in the order of their senders, and zeros behind them. Back (Step::detail is 1, else 0): received rows return to
/// where they came from.
template <class T>
struct RaggedMove {
  Moved<T> moved;
  Bytes routed;  ///< received by a device as the routing says, the mean over the devices of this process
};
template <class T>
RaggedMove<T> run_ragged(VirtualDevices<T>& devices, const program::Step& step, const Shards<T>& shards,
                         const Shards<T>& to, const program::Tensor& after);

/// The part of a tensor that each device keeps in another sharding; no device receives anything.
template <class T>
Shards<T> sliced(const VirtualDevices<T>& devices, const program::Tensor& before, const program::Tensor& after,
                 const Shards<T>& shards);

}  // namespace assay::engine
