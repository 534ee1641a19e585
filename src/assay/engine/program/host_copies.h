// Offloading: host memory as a second place for what devices hold. What is there cannot be read by a step until it is
// back.
#pragma once
#include <map>

#include "assay/engine/program/adam.h"
#include "assay/engine/program/local_step.h"

namespace assay::engine {

/// What a run offloads.
struct Offloading {
  bool activations = false;  ///< of layers: out after their forward pass, in before their backward pass
  bool states = false;       ///< of the optimizer, for layers: in before their update, out after it
  Bytes state_bytes;         ///< of one element of a weight, as predicted
};

/// Copies between the devices of this process and their hosts, counted.
class HostCopies {
 public:
  HostCopies(const program::Program& program, const Offloading& what) : program_(program), what_(what) {}

  const Offloading& what() const { return what_; }
  Bytes out() const { return out_; }  ///< of all devices of this process
  Bytes in() const { return in_; }

  /// Results of a layer on the host.
  using Away = std::map<int, Shards>;
  /// Takes what the backward pass reads out of a layer's memory; what other layers read as well is copied.
  Away send(const program::Block& forward, ProgramMemory& memory);
  void fetch(Away& away, ProgramMemory& memory);
  void send(const std::map<int, Moments>& moments);
  void fetch(const std::map<int, Moments>& moments);

  /// The bytes that a device copies each way for one pass of a layer, and for its update, as they are predicted.
  Bytes stated_activations(const program::Block& forward) const;
  Bytes stated_states(int kind) const;

 private:
  Bytes bytes_of(int tensor, const Shards& shards) const;
  static Bytes bytes_of(const std::map<int, Moments>& moments);

  const program::Program& program_;
  Offloading what_;
  Bytes out_, in_;
};

}  // namespace assay::engine
