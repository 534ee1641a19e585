// One replica of a fleet, step by step: continuous batching with chunks of prompts, a cache in pages, and sequences
// that are thrown out and computed again where it is full. Steps between which nothing changes are taken together.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "assay/predict/serving/load/block_pool.h"
#include "assay/predict/serving/load/queueing.h"
#include "assay/predict/serving/load/traffic.h"

namespace assay::serving {

/// The steps and limits of every replica. Steps without prompts are tabulated: they are linear in the contexts.
class ReplicaModel {
 public:
  /// The server has to outlive it. `block`: tokens of a block that prompts share; 0 where they share none.
  ReplicaModel(const LoadedServer& server, std::int64_t block);

  const LoadedServer& server() const { return server_; }
  std::int64_t places() const { return places_; }
  std::int64_t page() const { return page_; }
  std::int64_t pages() const { return pages_; }              ///< 0: enough for all places
  std::int64_t block_pages() const { return block_pages_; }  ///< in which caches are kept
  std::int64_t budget() const { return budget_; }            ///< most computed tokens of prompts in one step
  /// Whether its cache can ever hold a request.
  bool holds(std::int64_t prompt, std::int64_t output) const;

  /// A step of so many sequences takes `fixed`, and `each` more for each token of their mean context.
  struct Step {
    double fixed = 0, each = 0;
  };
  const Step& step(std::int64_t sequences) const { return steps_[static_cast<std::size_t>(sequences)]; }
  /// A step with computed tokens of prompts beside sequences; `before`: tokens before each of them, added up.
  double mixed(std::int64_t sequences, double context, std::int64_t tokens, double before) const;

 private:
  const LoadedServer& server_;
  std::int64_t places_, page_, pages_, block_pages_, budget_;
  std::vector<Step> steps_;
};

/// What became of a request; moments in seconds.
struct ServedRequest {
  FleetRequest request;
  std::int64_t replica = -1;                              ///< negative: refused, no replica can hold it
  std::int64_t cached = 0;                                ///< tokens of its prompt that were cached
  std::int64_t preemptions = 0, moves = 0;                ///< times it was thrown out, and its replica was lost
  double ready = 0;                                       ///< behind the front end
  double scheduled = 0;                                   ///< its first step begins
  double prompted = 0;                                    ///< the step with the last piece of its prompt ends
  double first = 0;                                       ///< the first token is with the client
  double decoded = 0;                                     ///< the last step ends
  double end = 0;                                         ///< the last token is with the client
  double for_places = 0, for_cache = 0, for_prompts = 0;  ///< waits: batch full, cache full, others' prompts
  double for_replica = 0;                                 ///< at a replica that was lost, or until there is one
  double preempted = 0;                                   ///< from being thrown out to having its tokens again

  /// The wait for the end of the step that runs when the request comes.
  double for_step() const { return scheduled - ready - for_replica - for_places - for_cache - for_prompts; }
  double first_token() const { return first - request.arrival; }
  double whole() const { return end - request.arrival; }
  /// Mean time between tokens; 0 for a single one.
  double per_token() const {
    return request.output > 1 ? (end - first) / static_cast<double>(request.output - 1) : 0.0;
  }
};

/// What a replica did from one moment to another.
struct ReplicaSpan {
  std::int64_t replica = 0;
  double from = 0, to = 0;
  std::int64_t steps = 1;  ///< each takes a little longer than the one before it
  double last = 0;         ///< time of the last one
  std::int64_t running = 0, waiting = 0, pages = 0;
  double for_prompts = 0;  ///< part of the time that prompts added
  bool is_full = false;    ///< what waits has no place, or no room in the cache
};

/// When a request may be scheduled: behind the front end, or where its cache comes from another server.
double ready_time(const FleetRequest& request, const LoadedServer& server);

/// A request between replicas.
struct MovedRequest {
  ServedRequest of;
  std::vector<std::int64_t> path{};
  std::int64_t block = 0;  ///< tokens of a block of the path
  std::int64_t made = 0;   ///< tokens of its output
  double thrown_out = -1;  ///< when its tokens were lost; negative: it had none
  double since = 0;        ///< since when it waits for its first step
};

class Replica {
 public:
  struct Watchers {
    std::function<void(const ServedRequest&)> ended;
    std::function<void(const ReplicaSpan&)> passed;
  };
  /// Model and watchers have to outlive it.
  Replica(const ReplicaModel& model, const Watchers& watchers, std::int64_t index);

  /// A request arrives, in the order of arrivals; `path` are the blocks of its prompt, each of so many tokens.
  void add(const FleetRequest& request, std::vector<std::int64_t> path, std::int64_t block);
  /// The same for what a lost replica had, or nobody yet, at a moment.
  void add(MovedRequest moved, double moment);
  /// Loses all that it holds at the end of the step that runs; its requests in the order in which they came. Tokens
  /// that were made are computed again, as those of sequences that are thrown out.
  std::vector<MovedRequest> lose(double moment);
  /// Takes no time before a moment: it starts.
  void start(double moment) { now_ = started_ = std::max(now_, moment); }
  /// Takes all steps that begin before a moment.
  void advance(double until);
  /// When the next step begins; `Traffic::never` where there is nothing to do.
  double next_start() const;
  /// No request ends before this moment, unless more arrive: the end of the last step before a sequence ends, or the
  /// beginning of the next step where prompts wait.
  double soonest_end() const;

  std::int64_t requests() const { return running() + std::ssize(waiting_) + std::ssize(incoming_); }
  /// With those that end with a step that still runs then.
  std::int64_t requests_at(double moment) const { return requests() + (now_ > moment ? ended_now_ : 0); }
  std::int64_t running() const { return running_; }
  std::int64_t waiting() const { return std::ssize(waiting_) + std::ssize(incoming_); }
  double now() const { return now_; }
  const BlockPool& pool() const { return pool_; }
  std::int64_t preemptions() const { return preemptions_; }

 private:
  struct Sequence {
    ServedRequest of;
    std::vector<std::int64_t> path;
    std::int64_t block = 0;   ///< tokens of a block of the path
    std::int64_t done = 0;    ///< tokens of prompt and output that are in the cache
    std::int64_t made = 0;    ///< tokens of the output, when it joined
    std::int64_t joined = 0;  ///< the step it joined after
    std::int64_t stamp = 0;   ///< differs each time it joins
    bool has_pages = false;
    double since = 0;       ///< it waits here
    std::int64_t left = 0;  ///< blocks of its own that were kept when it was thrown out
    double places_before = 0, cache_before = 0, prompts_before = 0;  ///< clocks of waits, when it came
    double thrown_out = -1;                                          ///< when; negative: it is not
  };
  struct End {
    std::int64_t step = 0, stamp = 0;
    std::int32_t slot = 0;
    bool operator>(const End& other) const { return step != other.step ? step > other.step : stamp > other.stamp; }
  };
  enum class Wait { none, places, cache, prompts };

  std::int32_t unused_slot();
  void queue(std::int32_t slot);
  double prepared() const;
  void admit_ready();
  void step_with_prompts(double until);
  void steps_of_sequences(double until, bool is_full);
  /// Steps until the first end or, if that is sooner, until one begins at or after a moment.
  std::int64_t steps_until(double moment, double first, double more) const;
  std::int64_t steps_until_full(std::int64_t steps) const;
  void pass(std::int64_t steps, double time, double last, double for_prompts, bool is_full);
  void end_step(std::int64_t steps);
  void join(std::int32_t slot, double delivered);
  void finish(std::int32_t slot, double delivered);
  void leave(Sequence& sequence);
  void throw_out_until_it_fits();
  std::int64_t own_tokens(const Sequence& sequence) const;
  std::int64_t own_pages(const Sequence& sequence) const;
  void place(Sequence& sequence);
  bool is_running(std::int32_t slot, std::int64_t stamp) const;
  std::int64_t now_made(const Sequence& s) const { return s.stamp > 0 ? s.made + steps_ - s.joined : s.made; }
  std::int64_t& crossings(std::int64_t step);
  double delivery(std::int64_t sequences) const;
  void forget_dead();

  const ReplicaModel& model_;
  const Watchers& watchers_;
  std::int64_t index_;
  BlockPool pool_;
  std::vector<Sequence> sequences_;
  std::vector<std::int32_t> unused_;             ///< places of `sequences_`
  std::deque<std::int32_t> incoming_, waiting_;  ///< not ready yet, by that; and ready
  std::vector<End> ends_;                        ///< a heap; those thrown out stay until they come up
  std::vector<End> joined_;                      ///< in the order they joined; the same
  std::vector<std::int32_t> complete_;           ///< prompts that end with this step
  std::vector<std::int64_t> crossings_;          ///< running sequences that need a page in step i, i + page, ...
  std::int64_t steps_ = 0, stamps_ = 0, running_ = 0, preemptions_ = 0;
  std::int64_t ended_now_ = 0;    ///< with the last step
  double context_ = 0;            ///< of all running sequences
  double now_ = 0, started_ = 0;  ///< the last step ended and began
  double waited_places_ = 0, waited_cache_ = 0, waited_prompts_ = 0;
};

}  // namespace assay::serving
