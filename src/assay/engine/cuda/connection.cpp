#include "assay/engine/cuda/connection.h"

#include <cstring>

#include "assay/engine/cuda/load.h"
#include "assay/engine/ranks/mpi.h"

namespace assay::engine {
namespace {

/// The id that rank 0 made, in all processes.
Result<std::string> shared_id(const AssayCuda& engine, Transport& transport) {
  std::string id(ASSAY_CUDA_ID_BYTES, '\0');
  if (transport.rank() > 0) {
    const Message got = transport.receive(0, control_tag);
    if (got.size() != id.size()) return fail("--engine cuda", "rank 0 could not start NCCL", "see its error");
    std::memcpy(id.data(), got.data(), id.size());
    return id;
  }
  const char* why = engine.unique_id(id.data());
  Message sent(why ? 0 : id.size());
  std::memcpy(sent.data(), id.data(), sent.size());
  for (std::size_t to = 1; to < transport.count(); ++to) transport.send(to, control_tag, sent);
  ASSAY_CHECK(told_by_engine(why, "install NCCL (Debian: libnccl2), or run on one GPU"));
  return id;
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const AssayCuda& engine, Transport& transport) {
  std::unique_ptr<Connection> made(new Connection(transport));
  const LocalRank here = local_rank(transport);
  ASSAY_TRY(id, shared_id(engine, transport));
  made->id_ = id;
  made->ranks_ = {static_cast<int>(transport.rank()),
                  static_cast<int>(transport.count()),
                  static_cast<int>(here.rank),
                  static_cast<int>(here.count),
                  made->id_.data(),
                  &made->exchange_,
                  &HostExchange::call};
  return made;
}

void Connection::join(AssayCudaJob& job, const TaskGroups& groups) {
  groups_.clear();
  for (std::size_t i = 0; i < groups.devices.size(); ++i)
    groups_.push_back({groups.devices[i].data(), static_cast<int>(groups.devices[i].size()), groups.places[i]});
  job.groups = groups_.data();
  job.group_count = static_cast<int>(groups_.size());
  job.ranks = &ranks_;
}

}  // namespace assay::engine
