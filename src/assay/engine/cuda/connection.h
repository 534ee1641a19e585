// What connects the GPU of a process with those of others.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/cuda/cuda_table.h"
#include "assay/engine/cuda/host_exchange.h"
#include "assay/engine/cuda/movement_task.h"

namespace assay::engine {

class Connection {
 public:
  /// All processes make one at the same time; they share what NCCL needs to find them. It stays where it is.
  static Result<std::unique_ptr<Connection>> open(const AssayCuda& engine, Transport& transport);

  /// Gives a job its ranks and the groups of its collectives, which must outlive its opening.
  void join(AssayCudaJob& job, const TaskGroups& groups);

 private:
  explicit Connection(Transport& transport) : exchange_(transport) {}

  HostExchange exchange_;
  std::string id_;
  AssayCudaRanks ranks_{};
  std::vector<AssayCudaGroup> groups_;
};

}  // namespace assay::engine
