#include "assay/predict/serving/load/fleet.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "assay/base/index.h"

namespace assay::serving {
namespace {

/// The moment a request is late: when its first token should have come, or its last one.
double late_at(const FleetLimits& limits, const ServedRequest& one) {
  if (limits.first_token && one.first_token() > limits.first_token->value())
    return one.request.arrival + limits.first_token->value();
  return one.end;
}

class Fleet {
 public:
  Fleet(const FleetPlan& plan, const TrafficPlan& traffic)
      : plan_(plan),
        block_(plan.prefixes ? plan.prefixes->block() : 0),
        model_(*plan.server, plan.prefill ? 0 : block_),
        traffic_(traffic),
        random_(traffic.seed + 1),
        most_misses_(misses_allowed(plan, traffic)),
        versions_(at(plan.replicas), 0),
        loads_(at(plan.replicas), 0),
        failures_(traffic.seed + 2),
        members_(at(plan.replicas)) {
    if (plan.prefill) pool_.emplace(*plan.prefill, block_);
    if (plan.has_intervals) out_.counts.emplace(FleetReplay::all_counts);
    watchers_.ended = [this](const ServedRequest& one) { ended(one); };
    watchers_.passed = [this](const ReplicaSpan& span) { passed(span); };
    replicas_.reserve(at(plan.replicas));  // they are referred to by nobody, but moving one costs
    for (std::int64_t i = 0; i < plan.replicas; ++i) replicas_.emplace_back(model_, watchers_, i);
  }

  FleetReplay run() {
    begin();
    while (!out_.stopped) {
      const double arrival = traffic_.next(), change = events_.empty() ? Traffic::never : events_.top().time;
      if (pool_) pool_->advance(arrival);
      if (pool_ && pool_->next() != Traffic::never && pool_->next() <= arrival) {
        const FleetRequest request = pool_->take();
        place(request, {}, request.prefilled->here);
        continue;
      }
      if (traffic_.waits_for_answers() && run_to_an_end(std::min(arrival, change))) continue;
      if (arrival == Traffic::never && change == Traffic::never) break;
      if (arrival < change)
        arrive(traffic_.take());
      else if (!happen())
        break;
    }
    for (Replica& replica : replicas_) {
      if (!out_.stopped) replica.advance(Traffic::never);
      out_.preemptions += replica.preemptions();
      out_.evicted_blocks += replica.pool().evicted();
      out_.held_blocks += replica.pool().held();
    }
    end();
    return std::move(out_);
  }

 private:
  static constexpr std::int64_t never_loaded = std::numeric_limits<std::int64_t>::max();
  enum class State { off, starting, ready, draining };
  struct Member {
    State state = State::off;
    double ordered = 0;
    std::int64_t version = 0;  ///< of what is expected of it
  };
  struct Event {
    double time = 0;
    enum Kind { start, lose, lose_some, tick } kind = tick;
    std::size_t place = 0;
    std::int64_t version = 0;
    bool operator>(const Event& other) const { return time != other.time ? time > other.time : place > other.place; }
  };

  /// Misses beyond which the limits cannot be met; none where the number of requests is not known.
  static std::int64_t misses_allowed(const FleetPlan& plan, const TrafficPlan& traffic) {
    const std::int64_t all = traffic.requests > 0                    ? traffic.requests
                             : traffic.trace && traffic.scale == 1.0 ? std::ssize(traffic.trace->requests)
                                                                     : 0;
    if (!plan.may_stop || !plan.limits.given() || all == 0) return std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(std::floor((1.0 - plan.limits.share) * static_cast<double>(all) + 1e-9));
  }

  /// Where answers may bring new requests: takes the replica on whose requests end first, up to that end; false where
  /// the next request arrives before.
  bool run_to_an_end(double next) {
    Replica* first = nullptr;
    double soonest = Traffic::never;
    for (Replica& replica : replicas_)
      if (const double end = replica.soonest_end(); end < soonest) first = &replica, soonest = end;
    if (!first || soonest > next) return false;
    const double start = first->next_start();
    first->advance(soonest > start ? soonest : std::nextafter(start, Traffic::never));
    return true;
  }

  void arrive(const FleetRequest& request) {
    ++out_.requests;
    out_.last_arrival = request.arrival;
    out_.series.count(FleetReplay::arriving, request.arrival);
    const bool is_too_long = plan_.context > 0 && request.prompt + request.output > plan_.context;
    if (is_too_long || !model_.holds(request.prompt, request.output) || (pool_ && !pool_->holds(request))) {
      ++out_.refused;
      ++misses_;
      ServedRequest refused;
      refused.request = request;
      refused.first = refused.end = request.arrival;
      note_miss(refused, request.arrival);
      if (plan_.kept == request.id) out_.kept = refused;
      if (plan_.each) plan_.each(refused);
      traffic_.ended(request, request.arrival);
      return;
    }
    if (!pool_) return place(request, path_of(request), request.arrival);
    pool_->add(request, path_of(request));
    if (traffic_.next() == Traffic::never) {
      count_waiting(request.arrival);
      out_.waiting_at_last_arrival += pool_->waiting();
    }
  }

  /// To a replica that generates its tokens, at a moment.
  void place(const FleetRequest& request, std::vector<std::int64_t> path, double moment) {
    const bool is_alone = replicas_.size() == 1 && is_fixed_;
    if (!is_alone) reach(moment);
    if (ready_.empty()) {
      ServedRequest of;
      of.request = request;
      of.ready = ready_time(request, model_.server());
      pending_.push_back({of, std::move(path), block_, 0, -1.0, of.ready});
      return;
    }
    const std::size_t chosen = is_alone ? 0 : routed(request, path);
    Replica& to = replicas_[chosen];
    to.advance(moment);
    if (traffic_.next() == Traffic::never && !traffic_.waits_for_answers() && !pool_) count_waiting(moment);
    to.add(request, std::move(path), pool_ ? 0 : block_);
    if (plan_.routing == FleetRouting::least_loaded && !is_alone) note_end(chosen, moment);
  }
  void count_waiting(double moment) {
    out_.waiting_at_last_arrival = std::ssize(pending_);
    for (Replica& replica : replicas_) {
      replica.advance(moment);
      out_.waiting_at_last_arrival += replica.waiting();
    }
  }

  /// Takes the replicas up to a moment as far as the routing looks at them: where requests may have ended, or all.
  void reach(double moment) {
    if (plan_.routing == FleetRouting::by_prefix)
      for (const std::size_t i : ready_) {
        replicas_[i].advance(moment);
        loads_[i] = replicas_[i].requests_at(moment);
      }
    while (!ends_.empty() && ends_.top().time < moment) {
      const End end = ends_.top();
      ends_.pop();
      if (end.version != versions_[end.replica]) continue;
      replicas_[end.replica].advance(moment);
      note_end(end.replica, moment);
    }
  }
  /// Notes the requests of a replica, and when there may be fewer.
  void note_end(std::size_t place, double moment) {
    Replica& replica = replicas_[place];
    if (members_[place].state != State::ready) return;
    loads_[place] = replica.requests_at(moment);
    const double soonest = loads_[place] > replica.requests() ? replica.now() : replica.soonest_end();
    ++versions_[place];
    if (soonest != Traffic::never) ends_.push({soonest, place, versions_[place]});
  }

  std::vector<std::int64_t> path_of(const FleetRequest& request) const {
    std::vector<std::int64_t> path;
    if (!plan_.prefixes || request.traced < 0) return path;
    const std::int64_t from = request.copy * plan_.prefixes->size();
    for (const int node : plan_.prefixes->path(at(request.traced))) path.push_back(from + node);
    return path;
  }

  /// The next replica in turn among those with the fewest requests.
  std::size_t least_loaded() {
    const auto turn = loads_.begin() + static_cast<std::ptrdiff_t>(turn_);
    const auto before = std::min_element(loads_.begin(), turn), behind = std::min_element(turn, loads_.end());
    const auto least = before == turn || *behind <= *before ? behind : before;
    const auto place = static_cast<std::size_t>(least - loads_.begin());
    turn_ = (place + 1) % loads_.size();
    return place;
  }

  std::size_t routed(const FleetRequest& request, const std::vector<std::int64_t>& path) {
    const std::size_t n = ready_.size(), in_turn = ready_[at(request.id) % n];
    switch (plan_.routing) {
      case FleetRouting::random:
        return ready_[random_.below(n)];
      case FleetRouting::in_turn:
        return in_turn;
      case FleetRouting::least_loaded:
        return least_loaded();
      case FleetRouting::by_session:
        // Fibonacci hashing spreads sessions that are numbered.
        return request.session < 0
                   ? in_turn
                   : ready_[(static_cast<std::uint64_t>(request.session) * 0x9e3779b97f4a7c15u >> 32) % n];
      case FleetRouting::by_prefix:
        break;
    }
    std::size_t best = 0, most = 0;
    for (const std::size_t i : ready_)
      if (const std::size_t cached = replicas_[i].pool().cached(path); cached > most) best = i, most = cached;
    return 2 * most > path.size() ? best : least_loaded();
  }

  /// The replicas that serve from the start.
  void begin() {
    const auto& scale = plan_.changes.scale;
    if (scale) scaler_.emplace(*scale), events_.push({scale->every.value(), Event::tick});
    const std::size_t first = scale ? at(scale->least) : replicas_.size();
    ready_.reserve(replicas_.size());
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      if (i < first)
        set_ready(i, 0.0), expect_loss(i, 0.0);
      else
        loads_[i] = never_loaded;
    }
    out_.fewest = out_.most = std::ssize(ready_);
    for (const Seconds moment : plan_.changes.lost_at) events_.push({moment.value(), Event::lose_some});
  }
  void end() {
    if (pool_) out_.prefill_busy = pool_->busy(), out_.sending = pool_->sending(), out_.held_blocks += pool_->held();
    for (const Member& member : members_)
      if (member.state != State::off) out_.paid += std::max(0.0, out_.end - member.ordered);
    if (!is_fixed_) out_.series.add(FleetReplay::ready, counted_from_, out_.end, static_cast<double>(ready_.size()));
  }

  /// The next change; false where nothing is left that it could touch.
  bool happen() {
    const Event event = events_.top();
    events_.pop();
    bool has_requests = !pending_.empty();
    for (Replica& replica : replicas_) {
      replica.advance(event.time);
      has_requests |= replica.requests() > 0;
    }
    if (!has_requests && traffic_.next() == Traffic::never) return false;
    const bool is_current = event.version == members_[event.place].version;
    if (event.kind == Event::tick)
      scale(event.time);
    else if (event.kind == Event::start && is_current)
      start(event.place, event.time);
    else if (event.kind == Event::lose && is_current)
      lose(event.place, event.time);
    else if (event.kind == Event::lose_some && !ready_.empty())
      lose(ready_[failures_.below(ready_.size())], event.time);
    return true;
  }

  void note(std::size_t place, double moment, FleetChange::What what) {
    constexpr std::size_t most = 1000;
    if (out_.changes.size() < most) out_.changes.push_back({moment, static_cast<std::int64_t>(place), what});
  }
  /// Before the number of replicas that are ready changes.
  void count_ready(double moment) {
    if (is_fixed_) return;
    out_.series.add(FleetReplay::ready, counted_from_, moment, static_cast<double>(ready_.size()));
    counted_from_ = moment;
  }
  void set_ready(std::size_t place, double moment) {
    count_ready(moment);
    members_[place].state = State::ready;
    ready_.insert(std::upper_bound(ready_.begin(), ready_.end(), place), place);
    out_.most = std::max(out_.most, std::ssize(ready_));
    note_end(place, moment);
  }
  void set_unready(std::size_t place, double moment, State state) {
    count_ready(moment);
    std::erase(ready_, place);
    out_.fewest = std::min(out_.fewest, std::ssize(ready_));
    members_[place].state = state;
    loads_[place] = never_loaded;
    ++versions_[place];
  }

  /// A replica that was ordered takes requests.
  void start(std::size_t place, double moment) {
    replicas_[place].start(moment);
    ++members_[place].version;
    set_ready(place, moment);
    note(place, moment, FleetChange::What::ready);
    expect_loss(place, moment);
    for (MovedRequest& one : std::exchange(pending_, {})) send(std::move(one), moment, moment);
  }
  void expect_loss(std::size_t place, double moment) {
    if (const auto& mean = plan_.changes.lost_between)
      events_.push({moment + failures_.exponential(mean->value()), Event::lose, place, members_[place].version});
  }
  /// Another one takes its place, which starts at once; one that was to stop stops.
  void lose(std::size_t place, double moment) {
    Replica& replica = replicas_[place];
    out_.evicted_blocks += replica.pool().evicted();
    std::vector<MovedRequest> moved = replica.lose(moment);
    ++out_.lost;
    out_.moved += std::ssize(moved);
    note(place, moment, FleetChange::What::lost);
    ++members_[place].version;
    if (members_[place].state == State::draining) {
      stop(place, moment);
    } else {
      set_unready(place, moment, State::starting);
      events_.push({moment + plan_.changes.start.time().value(), Event::start, place, members_[place].version});
    }
    for (MovedRequest& one : moved) send(std::move(one), moment, replica.now());
  }
  /// A request that came before, to another replica; `from`: when it may join.
  void send(MovedRequest one, double moment, double from) {
    if (ready_.empty()) return void(pending_.push_back(std::move(one)));
    reach(moment);
    const std::size_t place = routed(one.of.request, one.path);
    replicas_[place].advance(moment);
    replicas_[place].add(std::move(one), from);
    if (plan_.routing == FleetRouting::least_loaded) note_end(place, moment);
  }

  /// What the rule makes of the load.
  void scale(double moment) {
    const ScaleRule& rule = *plan_.changes.scale;
    const auto places = static_cast<double>(model_.places());
    auto load = static_cast<double>(pending_.size()) / (rule.by == ScaleRule::By::queue ? 1.0 : places);
    std::int64_t there = 0;
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      const Replica& replica = replicas_[i];
      const State state = members_[i].state;
      if (state == State::draining && replica.requests() == 0) stop(i, moment);
      if (state == State::ready || state == State::starting) ++there;
      if (state == State::ready)
        load += rule.by == ScaleRule::By::queue ? static_cast<double>(replica.waiting())
                                                : static_cast<double>(replica.requests()) / places;
    }
    const std::int64_t wanted = scaler_->wanted(moment, there, load);
    for (; there < wanted; ++there) order(moment);
    for (; there > wanted; --there) drain(moment);
    events_.push({moment + rule.every.value(), Event::tick});
  }
  /// One that is to stop stays; else a new one starts.
  void order(double moment) {
    for (const State state : {State::draining, State::off})
      for (std::size_t i = 0; i < members_.size(); ++i) {
        if (members_[i].state != state) continue;
        if (state == State::draining) return set_ready(i, moment);
        members_[i].state = State::starting;
        members_[i].ordered = moment;
        note(i, moment, FleetChange::What::ordered);
        events_.push({moment + plan_.changes.start.time().value(), Event::start, i, ++members_[i].version});
        return;
      }
  }
  /// One that starts stops; else the one with the fewest requests takes no more.
  void drain(double moment) {
    for (std::size_t i = members_.size(); i-- > 0;)
      if (members_[i].state == State::starting) return stop(i, moment);
    const auto fewer = [&](std::size_t a, std::size_t b) { return replicas_[a].requests() < replicas_[b].requests(); };
    const std::size_t place = *std::min_element(ready_.rbegin(), ready_.rend(), fewer);
    set_unready(place, moment, State::draining);
    note(place, moment, FleetChange::What::drains);
    if (replicas_[place].requests() == 0) stop(place, moment);
  }
  void stop(std::size_t place, double moment) {
    ++members_[place].version;
    members_[place].state = State::off;
    out_.paid += moment - members_[place].ordered;
    note(place, moment, FleetChange::What::stopped);
  }

  void note_miss(const ServedRequest& one, double moment) {
    if (!out_.first_miss || moment < out_.missed_at) {
      out_.first_miss = one;
      out_.missed_at = moment;
    }
  }

  void add(Quantiles& to, FleetReplay::Blocked counts, const ServedRequest& one, double time) {
    const std::int64_t bin = to.add(time);
    if (out_.counts) out_.counts->add(counts, one.request.arrival, bin);
  }

  void ended(const ServedRequest& one) {
    add(out_.first_token, FleetReplay::first_token_counts, one, one.first_token());
    if (one.request.output > 1) add(out_.per_token, FleetReplay::per_token_counts, one, one.per_token());
    add(out_.whole, FleetReplay::whole_counts, one, one.whole());
    out_.prompt_tokens += one.request.prompt;
    out_.cached_tokens += one.cached;
    out_.output_tokens += one.request.output;
    out_.end = std::max(out_.end, one.end);
    if (plan_.limits.met_by(one)) {
      ++out_.good;
    } else {
      note_miss(one, late_at(plan_.limits, one));
      if (++misses_ > most_misses_) out_.stopped = true;
    }
    if (plan_.kept == one.request.id) out_.kept = one;
    if (plan_.each) plan_.each(one);
    traffic_.ended(one.request, one.end);
  }

  void passed(const ReplicaSpan& span) {
    if (plan_.each_span) plan_.each_span(span);
    out_.busy += span.to - span.from;
    out_.series.add(FleetReplay::waiting, span.from, span.to, static_cast<double>(span.waiting));
    out_.series.add(FleetReplay::running, span.from, span.to, static_cast<double>(span.running));
    out_.series.add(FleetReplay::cached_pages, span.from, span.to, static_cast<double>(span.pages));
  }

  const FleetPlan& plan_;
  std::int64_t block_;
  ReplicaModel model_;
  Traffic traffic_;
  Random random_;
  std::int64_t most_misses_, misses_ = 0;
  Replica::Watchers watchers_;
  std::vector<Replica> replicas_;
  std::optional<PrefillPool> pool_;  ///< for prompts
  /// When requests of a replica may end next; only the last version counts.
  struct End {
    double time = 0;
    std::size_t replica = 0;
    std::int64_t version = 0;
    bool operator>(const End& other) const { return time != other.time ? time > other.time : replica > other.replica; }
  };
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<std::int64_t> versions_, loads_;  ///< of each replica; the requests that it has
  std::size_t turn_ = 0;

  const bool is_fixed_ = plan_.changes.is_fixed();
  Random failures_;
  std::vector<Member> members_;
  std::vector<std::size_t> ready_;    ///< in ascending order
  std::deque<MovedRequest> pending_;  ///< no replica is ready
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::optional<Scaler> scaler_;
  double counted_from_ = 0;
  FleetReplay out_;
};

}  // namespace

bool FleetLimits::met_by(const ServedRequest& one) const {
  return one.replica >= 0 && !(first_token && one.first_token() > first_token->value()) &&
         !(per_token && one.per_token() > per_token->value());
}

FleetReplay replay_fleet(const FleetPlan& plan, const TrafficPlan& traffic) { return Fleet(plan, traffic).run(); }

bool holds(const FleetPlan& plan, const FleetReplay& replay) {
  if (replay.stopped) return false;
  if (plan.limits.given()) return replay.good_share() >= plan.limits.share;
  const double batch = plan.server->most * static_cast<double>(plan.replicas);
  return static_cast<double>(replay.waiting_at_last_arrival) <=
         std::max(batch, 0.05 * static_cast<double>(replay.requests));
}

}  // namespace assay::serving
