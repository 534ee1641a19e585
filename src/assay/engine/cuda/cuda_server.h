// Steps of a server on GPUs, in bf16: caches stay there, and every step is timed.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "assay/base/index.h"
#include "assay/engine/cuda/connection.h"
#include "assay/engine/cuda/serving_tasks.h"
#include "assay/engine/program/run_program.h"
#include "assay/engine/serving/replicas.h"

namespace assay::engine {

/// How devices share the model of a server; with a transport, the others are in its other processes. Those of a replica
/// serve the same requests.
struct ServerShare {
  lower::Parallelism parallelism = {};
  Transport* transport = nullptr;
};

/// A device of a replica, whose first one has rank `first`.
struct ReplicaPlace {
  std::size_t first = 0, device = 0;
};
ReplicaPlace replica_place(const ServerShare& share);

class CudaServer : public ServingEngine {
 public:
  struct Room {
    std::int64_t sequences = 1;  ///< at once
    std::int64_t prompt = 1;     ///< tokens of the longest prompt
    std::int64_t tokens = 1;     ///< of the longest sequence
    std::int64_t drafts = 0;
    std::int64_t draft_layers = 1;
  };
  /// Weights are drawn on the GPU, as initial_weights() draws them.
  static Result<std::unique_ptr<CudaServer>> open(const AssayCuda& engine, const model::Transformer& model,
                                                  const Room& room, std::uint64_t seed, const ServerShare& share = {});

  /// Replaces weights; those that are not given stay.
  Result<void> set_weights(const NamedArrays& weights);

  Result<Made> run(const Asked& asked) override;

  /// The processes that serve the same requests; null: this one alone.
  Transport* replica() { return replica_ ? &*replica_ : nullptr; }

  std::string device() const { return engine_.device(session_.get()); }
  /// What carries collectives: "NCCL 2.28.3"; empty: there are none.
  std::string network() const { return engine_.network(session_.get()); }
  Bytes memory() const { return Bytes(static_cast<double>(bytes_)); }

 private:
  using Owned = std::unique_ptr<void, void (*)(void*)>;
  CudaServer(const AssayCuda& engine, const model::Transformer& model, const Room& room, const ServerShare& share)
      : engine_(engine),
        model_(model),
        draft_model_(first_layers(model, room.draft_layers)),
        parallelism_(replica_of(share.parallelism)),
        place_(replica_place(share)),
        movements_(lower::serving_stage(parallelism_, {}, model).mesh, place_.device, place_.first),
        session_(nullptr, engine.close) {
    if (share.transport) replica_.emplace(*share.transport, place_.first, at(parallelism_.devices()));
  }
  /// The logits of all devices, each of which has those of its part of the vocabulary.
  std::vector<float> gathered(const std::vector<float>& mine, const std::vector<Extent>& vocabulary);

  const AssayCuda& engine_;
  const model::Transformer& model_;
  model::Transformer draft_model_;
  lower::Parallelism parallelism_;  ///< of one replica
  ReplicaPlace place_;
  std::optional<TransportPart> replica_;  ///< nothing: one process
  Movements movements_;
  std::unique_ptr<Connection> connection_;  ///< nothing: one process
  KeptArrays kept_;
  std::int64_t bytes_ = 0;
  Owned session_;
  std::set<std::tuple<bool, std::int64_t, std::int64_t>> warm_;  ///< steps whose kernels are chosen and loaded
  std::int64_t steps_ = 0;
};

}  // namespace assay::engine
