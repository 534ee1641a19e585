#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/fleet/fleet.h"
#include "assay/predict/serving/load/fleet_bound.h"

namespace assay::verbs::fleet {
namespace {

void replay(const FleetQuery& query, std::int64_t replicas, Candidate& out, FleetChoice& choice) {
  serving::FleetPlan plan = query.plan(*out.server, replicas);
  plan.may_stop = replicas != query.replicas.back();
  out.replicas = replicas;
  out.replay = serving::replay_fleet(plan, query.traffic);
  out.holds = serving::holds(plan, *out.replay);
  ++choice.replayed;
}

/// The fewest replicas of a cluster that hold, or the most that may be chosen. Replays start from the fewest that have
/// the time at all.
Candidate fewest_that_hold(const FleetQuery& query, const FleetServer& server, FleetChoice& choice) {
  Candidate out{&server, query.replicas.back(), 1, {}, false};
  if (!server.impossible.empty()) return out;
  const serving::FleetPlan one = query.plan(server, 1);
  if (query.is_search())
    out.fewest = (serving::fewest_replicas(one, query.traffic) + server.engines() - 1) / server.engines();
  for (const std::int64_t replicas : query.replicas)
    if (replicas < out.fewest)
      ++choice.proved;
    else if (!out.holds)
      replay(query, replicas, out, choice);
  return out;
}

/// Cost, or chips where a chip has no price.
double size_of(const Candidate& candidate, bool priced) {
  const auto replicas = static_cast<double>(candidate.replicas);
  return replicas * (priced ? candidate.server->price()->value() : static_cast<double>(candidate.server->chips()));
}

/// The scale up to which a fleet holds the traffic, within two percent; at most 16 times as much.
double margin_of(const FleetQuery& query, const Candidate& chosen, FleetChoice& choice) {
  const double own = query.traffic.scale;
  const auto holds_at = [&](double scale) {
    serving::TrafficPlan traffic = query.traffic;
    traffic.scale = own * scale;
    serving::FleetPlan plan = query.plan(*chosen.server, chosen.replicas);
    plan.may_stop = true;
    ++choice.replayed;
    return serving::holds(plan, serving::replay_fleet(plan, traffic));
  };
  double low = 1.0, high = 1.25;
  while (high < 16.0 && holds_at(high)) low = high, high *= 1.5;
  if (high >= 16.0) return low;
  while (high > 1.02 * low) {
    const double middle = std::sqrt(low * high);
    (holds_at(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

FleetChoice choose_fleet(const FleetQuery& query) {
  FleetChoice choice;
  choice.fleets = static_cast<std::int64_t>(query.replicas.size() * query.servers.size());
  for (const FleetServer& server : query.servers) choice.candidates.push_back(fewest_that_hold(query, server, choice));
  const bool priced = std::all_of(query.servers.begin(), query.servers.end(),
                                  [](const FleetServer& server) { return server.price().has_value(); });
  std::stable_sort(choice.candidates.begin(), choice.candidates.end(), [&](const Candidate& a, const Candidate& b) {
    if (a.holds != b.holds) return a.holds;
    if (a.holds) return size_of(a, priced) < size_of(b, priced);
    if (!a.replay || !b.replay) return a.replay && !b.replay;
    return a.replay->good_share() > b.replay->good_share();
  });
  // An answer where none can hold: what the largest fleet makes of it.
  Candidate& best = choice.candidates.front();
  if (!best.replay && best.server->impossible.empty()) replay(query, query.replicas.back(), best, choice);
  if (query.is_search() && choice.candidates.front().holds)
    choice.margin = margin_of(query, choice.candidates.front(), choice);
  return choice;
}

}  // namespace assay::verbs::fleet
