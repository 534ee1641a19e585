// A server that executes its steps: requests join and leave a running batch between steps (continuous batching), caches
// stay in their sharding while a step runs, and a smaller model may draft tokens that the large one verifies.
// Invariant: tokens do not depend on the strategy, on the batch or on drafts; sampled ones only by their distribution.
#pragma once
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "assay/base/result.h"
#include "assay/execute/program/run_program.h"
#include "assay/execute/serving/sampling.h"
#include "assay/lower/lowering.h"

namespace assay::execute {

struct Prompt {
  std::vector<int> tokens;
  std::int64_t wanted = 1;  ///< new tokens
};

struct ServerOptions {
  lower::Parallelism parallelism = {};
  lower::ServingScheme scheme = {};
  std::int64_t slots = 4;  ///< most sequences at once
  Sampling sampling = {};
  std::uint64_t seed = 1;
  std::int64_t drafts = 0;        ///< tokens that are drafted before each is verified; 0: none
  std::int64_t draft_layers = 1;  ///< the draft comes from the model's first layers
  bool records = false;           ///< every call of the engine
  Transport* transport = nullptr;
};

/// An error where a model cannot be served like that.
Result<void> check_server(const model::Transformer& model, const ServerOptions& options);

struct ServedRequest {
  std::vector<int> tokens;                 ///< new ones
  std::int64_t started = 0, finished = 0;  ///< iterations, from 1
};

/// What the engine is asked to do, one call after the other: a prompt is processed, its cache gets a slot of the batch,
/// and all sequences there make their next tokens.
struct EngineCall {
  enum class Kind { prefill, insert, generate };
  Kind kind = Kind::prefill;
  std::int64_t iteration = 1;
  std::size_t request = 0;
  std::int64_t slot = 0;    ///< from 0; prefill has none
  std::int64_t tokens = 0;  ///< of the sequence afterwards
  Bytes cache;              ///< insert: what moves into the slot, from other devices where prefill has its own
};

struct ServerReport {
  std::vector<ServedRequest> requests;
  std::vector<EngineCall> calls;  ///< where they are recorded
  std::int64_t iterations = 0;
  std::int64_t prefills = 0, decodes = 0;  ///< steps: all sequences of one length are one
  double mean_batch = 0;                   ///< sequences of a decoding step
  std::int64_t drafted = 0, accepted = 0;
  double prefill_seconds = 0, decode_seconds = 0;
  Bytes moved, stated;  ///< by collectives, mean over devices
  double disagreement = 0;
};

class Server {
 public:
  /// The model and weights must outlive it.
  Server(const model::Transformer& model, const NamedArrays& weights, const ServerOptions& options);
  ServerReport serve(const std::vector<Prompt>& prompts);

 private:
  /// The model, or its first layers, which draft.
  struct Side {
    const model::Transformer& model;
    lower::StageRules rules;
    std::int64_t rows = 1;  ///< sequences of a step are a multiple of this
    bool groups = true;     ///< sequences of equal length run together
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, program::Program> programs;
  };
  struct Cached {
    ServedSequences kept;
    std::int64_t tokens = 0;
  };
  struct Sequence {
    std::size_t request = 0;
    std::vector<int> tokens;  ///< prompt, new ones and drafts
    std::int64_t wanted = 0, made = 0, slot = 0;
    Cached large, small;
    Draws draws{0};
    std::vector<Distribution> drafted;
  };
  using Group = std::vector<Sequence*>;

  static Side side_of(const model::Transformer& model, const ServerOptions& options);
  /// Runs the tokens that a cache lacks through a side; returns logits of the last `scored` tokens of each sequence.
  std::vector<Array<double>> advance(Side& side, Cached Sequence::*cache, const Group& group, std::int64_t scored);
  /// Sequences by how many tokens they have, and how many of them are in the cache.
  std::vector<Group> groups_of(const Side& side, Cached Sequence::*cache, const Group& all) const;
  /// Drafts for all sequences that still want tokens.
  void draft(const Group& all);
  void step(const Group& all, bool is_prefill);
  /// The engine's interface, as its orchestrator calls it.
  void prefill(const Group& joining);
  void insert(const Group& joining, Group& running);
  void generate(const Group& running);
  void record(EngineCall::Kind kind, const Group& group);
  void take(Sequence& sequence, const Array<double>& logits);
  void shorten(Cached& cache, std::int64_t tokens) const;

  ServerOptions options_;
  const NamedArrays& weights_;
  model::Transformer draft_model_;
  Side large_, small_;
  ServerReport report_;
};

}  // namespace assay::execute
