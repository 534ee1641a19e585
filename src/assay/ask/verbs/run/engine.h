// The engine that a run is executed by: virtual devices in this process, ranks of MPI with a device each, or a GPU.
#pragma once
#include <functional>

#include "assay/ask/verbs/run/run.h"
#include "assay/engine/ranks/mpi.h"

namespace assay::verbs::run {

/// Whether a request asks for a GPU.
bool is_on_gpu(const Request& request);

/// The GPU of a process, what a run takes of its memory, and what carries collectives between GPUs, if anything.
struct UsedGpu {
  std::string device;
  Bytes memory;
  std::string network;
};
void add_gpu(const UsedGpu& gpu, report::Response& response);

/// A run that is ready: how many devices it takes (nothing: any number), and what does it.
struct PreparedRun {
  std::optional<std::int64_t> devices;
  std::function<Result<report::Response>(engine::Transport*)> run;
};

/// Prepares a run in every process and, if all of them could, runs it. Rank 0 answers. A run on one GPU does without a
/// transport; on several, every rank has one.
Result<report::Response> run_on_engine(const Request& request, const Context& context,
                                       const std::function<Result<PreparedRun>()>& prepare);

/// The same on ranks, whatever --engine says.
Result<report::Response> run_on_ranks(const Request& request, const Context& context,
                                      const std::function<Result<PreparedRun>()>& prepare);

}  // namespace assay::verbs::run
