// Collectives of GPUs over the messages of their processes: where NCCL does not connect them.
#pragma once
#include "assay/base/units.h"
#include "assay/engine/cuda/cuda_table.h"
#include "assay/engine/transport.h"

namespace assay::engine {

class HostExchange {
 public:
  explicit HostExchange(Transport& transport) : transport_(transport) {}

  /// Parts are summed in the order of the group, so that all devices get the same.
  void run(const AssayCudaExchange& what);
  /// What AssayCudaRanks calls; the context is a HostExchange.
  static const char* call(void* self, const AssayCudaExchange* what);

 private:
  void send(int to, const std::byte* from, std::size_t bytes);
  Message receive(int from);

  Transport& transport_;
};

/// Bytes that a device receives in a collective, by what it is: the same that a step of a program states.
Bytes exchanged_bytes(int kind, int devices, std::int64_t elements, int type);

}  // namespace assay::engine
