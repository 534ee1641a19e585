#include "assay/predict/serving/load/fleet.h"

#include <algorithm>
#include <cmath>
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
        model_(*plan.server, block_),
        traffic_(traffic),
        random_(traffic.seed + 1),
        most_misses_(misses_allowed(plan, traffic)),
        versions_(at(plan.replicas), 0),
        loads_(at(plan.replicas), 0) {
    if (plan.has_intervals) out_.counts.emplace(FleetReplay::all_counts);
    watchers_.ended = [this](const ServedRequest& one) { ended(one); };
    watchers_.passed = [this](const ReplicaSpan& span) { passed(span); };
    replicas_.reserve(at(plan.replicas));  // they are referred to by nobody, but moving one costs
    for (std::int64_t i = 0; i < plan.replicas; ++i) replicas_.emplace_back(model_, watchers_, i);
  }

  FleetReplay run() {
    while (!out_.stopped) {
      const double next = traffic_.next();
      if (traffic_.waits_for_answers() && run_to_an_end(next)) continue;
      if (next == Traffic::never) break;
      arrive(traffic_.take());
    }
    for (Replica& replica : replicas_) {
      if (!out_.stopped) replica.advance(Traffic::never);
      out_.preemptions += replica.preemptions();
      out_.evicted_blocks += replica.pool().evicted();
      out_.held_blocks += replica.pool().held();
    }
    return std::move(out_);
  }

 private:
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
    if (is_too_long || !model_.holds(request.prompt, request.output)) {
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
    std::vector<std::int64_t> path = path_of(request);
    const bool is_alone = replicas_.size() == 1;
    if (!is_alone) reach(request.arrival);
    const std::size_t place = is_alone ? 0 : routed(request, path);
    Replica& to = replicas_[place];
    to.advance(request.arrival);
    if (traffic_.next() == Traffic::never && !traffic_.waits_for_answers())
      for (Replica& replica : replicas_) {
        replica.advance(request.arrival);
        out_.waiting_at_last_arrival += replica.waiting();
      }
    to.add(request, std::move(path), block_);
    if (plan_.routing == FleetRouting::least_loaded && !is_alone) note_end(place, request.arrival);
  }

  /// Takes the replicas up to a moment as far as the routing looks at them: where requests may have ended, or all.
  void reach(double moment) {
    for (std::size_t i = 0; plan_.routing == FleetRouting::by_prefix && i < replicas_.size(); ++i) {
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
    const std::size_t n = replicas_.size(), in_turn = at(request.id) % n;
    switch (plan_.routing) {
      case FleetRouting::random:
        return random_.below(n);
      case FleetRouting::in_turn:
        return in_turn;
      case FleetRouting::least_loaded:
        return least_loaded();
      case FleetRouting::by_session:
        // Fibonacci hashing spreads sessions that are numbered.
        return request.session < 0 ? in_turn
                                   : (static_cast<std::uint64_t>(request.session) * 0x9e3779b97f4a7c15u >> 32) % n;
      case FleetRouting::by_prefix:
        break;
    }
    std::size_t best = 0, most = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (const std::size_t cached = replicas_[i].pool().cached(path); cached > most) best = i, most = cached;
    return 2 * most > path.size() ? best : least_loaded();
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
