// Executes the movements of a program or a plan: slices and collectives, from the shards before to the shards after.
#pragma once
#include "assay/engine/devices.h"
#include "assay/program/form/program.h"
#include "assay/program/form/step.h"

namespace assay::engine {

/// A tensor after it moved, and what that took.
struct Moved {
  Shards shards;
  Bytes received;  ///< per device, the mean over the devices of this process
  Bytes busiest;   ///< by the device that receives most
};

/// Runs a collective or a slice of a tensor.
/// Bytes: when sizes divide, every device receives exactly the step's bytes, except in a permute, where a device that
/// already holds its shard gets nothing, and one that sends to itself. With a permutation, the step sends along its
/// axis what the pairs say. When they do not divide, the mean over devices equals the step's bytes.
Moved run_movement(VirtualDevices& devices, const program::Step& step, const program::Tensor& before,
                   const program::Tensor& after, const Shards& shards,
                   const program::Permutation* permutation = nullptr);

/// Rows that go to the devices that `to` names, one number a row, among those along the axes: each device gets its rows
/// in the order of their senders, and zeros behind them. Back (Step::detail is 1, else 0): received rows return to
/// where they came from.
struct RaggedMove {
  Moved moved;
  Bytes routed;  ///< received by a device as the routing says, the mean over the devices of this process
};
RaggedMove run_ragged(VirtualDevices& devices, const program::Step& step, const Shards& shards, const Shards& to,
                      const program::Tensor& after);

/// The part of a tensor that each device keeps in another sharding; no device receives anything.
Shards sliced(const VirtualDevices& devices, const program::Tensor& before, const program::Tensor& after,
              const Shards& shards);

}  // namespace assay::engine
