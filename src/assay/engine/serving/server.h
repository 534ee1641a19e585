// A server that executes its steps: requests join and leave a running batch between steps (continuous batching), caches
// stay in their sharding while a step runs, and a smaller model may draft tokens that the large one verifies.
// Invariant: tokens do not depend on the strategy, on the batch or on drafts; sampled ones only by their distribution.
#pragma once
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/program/run_program.h"
#include "assay/engine/serving/sampling.h"
#include "assay/program/lower/lowering.h"

namespace assay::engine {

struct Prompt {
  std::vector<int> tokens;
  std::int64_t wanted = 1;  ///< new tokens
};

/// What a step says about the next tokens of a sequence.
struct Scores {
  Array logits;           ///< [1, scored, vocabulary]; of a greedy step elsewhere, nothing
  std::vector<int> best;  ///< the likeliest tokens, where only they are known
};

/// What runs the steps of a server elsewhere than on virtual devices. Caches stay there, by the place of a sequence.
class ServingEngine {
 public:
  virtual ~ServingEngine() = default;

  struct Asked {
    bool drafts = false;      ///< by the model's first layers
    std::vector<int> places;  ///< of the sequences, below the number of slots
    std::vector<int> tokens;  ///< [sequences, new ones]
    std::int64_t known = 0;   ///< tokens of each sequence in its cache
    std::int64_t scored = 1;
    bool greedy = false;  ///< the likeliest tokens are enough
  };
  struct Made {
    std::vector<Scores> scores;  ///< by sequence
    Seconds time;
    std::map<std::string_view, Seconds> by_kind;  ///< by work_kind(), where they were taken
    bool has_clocks = true;                       ///< whether they were, and may have slowed the step
    Bytes moved, stated;                          ///< by collectives of a device, and as its program says
  };
  virtual Result<Made> run(const Asked& asked) = 0;
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
  bool keeps_logits = false;      ///< of every new token; virtual devices and ranks only
  std::vector<int> ends = {};     ///< tokens after which an answer is complete
  bool forgets = false;           ///< no cache: every step reads all tokens of its sequences again
  /// Prompts are processed by a thread of their own, on virtual devices; so many that are ready may wait for a slot
  /// before it waits too. Nothing: one thread does both in turn.
  std::optional<std::int64_t> queue = {};
  /// Prompts are processed by other devices, split so, which then hand their caches over; nothing: by the same ones.
  std::optional<lower::Parallelism> prefill = {};
  Transport* transport = nullptr;
  ServingEngine* engine = nullptr;  ///< instead of virtual devices
};

/// The model's first layers, with its embedding and head: what drafts.
model::Transformer first_layers(model::Transformer model, std::int64_t layers);

/// An error where a model cannot be served like that.
Result<void> check_server(const model::Transformer& model, const ServerOptions& options);

struct ServedRequest {
  std::vector<int> tokens;                  ///< new ones
  std::vector<std::vector<double>> logits;  ///< that each was chosen from, where they are kept
  std::int64_t started = 0, finished = 0;   ///< iterations, from 1
};

/// A step as it ran.
struct ServedStep {
  bool drafts = false;
  std::int64_t sequences = 1, queries = 1, keys = 1, scored = 1;
  Seconds time;
  std::map<std::string_view, Seconds> by_kind;  ///< as an engine has them
  bool has_clocks = true;

  bool is_prompt() const { return queries == keys; }
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

/// What a thread of the server did: the one of the prompts prefills, the other one inserts and generates.
struct ServerActivity {
  EngineCall::Kind kind = EngineCall::Kind::prefill;
  std::size_t request = 0;     ///< of prefill and insert
  std::int64_t slot = -1;      ///< from 0, of insert
  std::int64_t sequences = 1;  ///< of generate
  Seconds start, end;          ///< since both threads started
};

struct ServerReport {
  std::vector<ServedRequest> requests;
  std::vector<EngineCall> calls;  ///< where they are recorded
  std::int64_t iterations = 0;
  std::int64_t prefills = 0, decodes = 0;  ///< steps: all sequences of one length are one
  double mean_batch = 0;                   ///< sequences of a decoding step
  std::int64_t drafted = 0, accepted = 0;
  Seconds prefill_time, decode_time;
  Bytes moved, stated;   ///< by collectives, mean over devices
  Bytes handed, cached;  ///< caches that went to other devices, and what the prompts' tokens should take
  double disagreement = 0;
  std::vector<ServedStep> steps;  ///< in the order in which they ran
  bool is_interrupted = false;    ///< requests that had not finished have fewer tokens, or none

  std::vector<ServerActivity> activities;       ///< of both threads, by their start, where there are two
  Seconds time;                                 ///< until both had ended
  Seconds waited_for_room, waited_for_prompts;  ///< how long the queue stopped one thread and the other
};

template <class T>
class BoundedQueue;

class Server {
 public:
  /// The model and weights must outlive it.
  Server(const model::Transformer& model, const NamedArrays& weights, const ServerOptions& options);
  /// All requests; fewer where somebody asks this process, or another rank, to stop.
  Result<ServerReport> serve(const std::vector<Prompt>& prompts);

 private:
  /// The model, or its first layers, which draft.
  struct Side {
    const model::Transformer& model;
    lower::StageRules rules;
    std::int64_t rows = 1;  ///< sequences of a step are a multiple of this
    bool groups = true;     ///< sequences of equal length run together
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, program::Program> programs;
    PlacedWeights placed = {};
  };
  struct Cached {
    ServedSequences kept;
    std::int64_t tokens = 0;
  };
  struct Sequence {
    std::size_t request = 0;
    std::vector<int> tokens;  ///< prompt, new ones and drafts
    std::int64_t wanted = 0, made = 0;
    std::vector<std::vector<double>> logits;
    Cached large, small;
    int place = -1;  ///< of its cache, among the slots
    Draws draws{0};
    std::vector<Distribution> drafted;
  };
  using Group = std::vector<Sequence*>;
  struct Clock;

  /// A fresh report, and the prompts as sequences.
  std::vector<Sequence> start(const std::vector<Prompt>& prompts);
  /// Those that have all their tokens leave.
  void retire(Group& running);
  /// What is left of an interrupted run, and means.
  void finish(const Group& running);
  Result<ServerReport> serve_in_threads(const std::vector<Prompt>& prompts);
  /// What the two threads do.
  Result<void> prefill_all(std::vector<Sequence>& sequences, BoundedQueue<Sequence*>& ready, const Clock& clock);
  Result<void> generate_all(BoundedQueue<Sequence*>& ready, Group& running, const Clock& clock);

  static Side side_of(const model::Transformer& model, const lower::Parallelism& parallelism,
                      const ServerOptions& options);
  /// Counts the caches of prompts that leave the devices which processed them.
  void hand_over(const Group& group);
  /// Runs the tokens that a cache lacks through a side; returns logits of the last `scored` tokens of each sequence.
  Result<std::vector<Scores>> advance(Side& side, Cached Sequence::*cache, const Group& group, std::int64_t scored);
  Result<std::vector<Scores>> advance_elsewhere(Cached Sequence::*cache, const Group& group, std::int64_t scored);
  /// Sequences by how many tokens they have, and how many of them are in the cache.
  std::vector<Group> groups_of(const Side& side, Cached Sequence::*cache, const Group& all) const;
  /// Drafts for all sequences that still want tokens.
  Result<void> draft(const Group& all);
  Result<void> step(const Group& all, bool is_prefill);
  /// The engine's interface, as its orchestrator calls it.
  Result<void> prefill(const Group& joining);
  void insert(const Group& joining, Group& running);
  Result<void> generate(const Group& running);
  void record(EngineCall::Kind kind, const Group& group);
  void take(Sequence& sequence, const Scores& scores);
  /// Ends an answer at the first of its last `added` tokens that ends it.
  void end(Sequence& sequence, std::int64_t added) const;
  /// Gives those that join a place; those that finished leave theirs.
  void seat(const Group& joining);
  void shorten(Cached& cache, std::int64_t tokens) const;

  ServerOptions options_;
  const NamedArrays& weights_;
  model::Transformer draft_model_;
  Side large_, prompts_, small_;
  std::vector<int> free_places_;
  ServerReport report_;
};

/// What it takes to make the next token of a sequence on one device, reading only the newest one or all of them.
Flops next_token_flops(const model::Transformer& model, std::int64_t tokens, bool cached);

/// How far the logits of an answer's tokens are from the best ones, in one pass over all of them on one device.
double largest_shortfall(const model::Transformer& model, const NamedArrays& weights, std::vector<int> prompt,
                         const std::vector<int>& answer);

}  // namespace assay::engine
