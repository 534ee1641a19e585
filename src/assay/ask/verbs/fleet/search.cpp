#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/ask/verbs/fleet/fleet.h"
#include "assay/base/text.h"
#include "assay/predict/serving/load/fleet_bound.h"

namespace assay::verbs::fleet {
namespace {

void replay(const FleetQuery& query, std::int64_t replicas, Candidate& out, FleetChoice& choice) {
  serving::FleetPlan plan = query.plan(*out.server, replicas, out.prompts);
  plan.may_stop = replicas != query.replicas.back();
  out.replicas = replicas;
  out.replay = serving::replay_fleet(plan, query.traffic);
  out.holds = serving::holds(plan, *out.replay);
  ++choice.replayed;
}

/// A candidate that is not replayed yet, with the fewest replicas that have the time for the traffic at all.
Candidate unplayed(const FleetQuery& query, const FleetServer& server) {
  Candidate out;
  out.server = &server, out.replicas = query.replicas.back();
  if (query.prefill) out.prefill = &*query.prefill, out.prompts = query.prefill_replicas.back();
  if (!server.impossible.empty() || !query.is_search() || query.prefill) return out;
  const serving::FleetPlan one = query.plan(server, 1);
  out.fewest = (serving::fewest_replicas(one, query.traffic) + server.engines() - 1) / server.engines();
  return out;
}

/// The fewest replicas of a cluster that hold, or the most that may be chosen; false where more would cost as much as
/// `below`.
bool find_fewest(const FleetQuery& query, Candidate& out, FleetChoice& choice,
                 std::optional<DollarsPerSecond> below = std::nullopt) {
  if (!out.server->impossible.empty()) return true;
  for (const std::int64_t replicas : query.replicas) {
    if (replicas < out.fewest)
      ++choice.proved;
    else if (!out.holds && below && out.server->price(replicas).value_or(*below) >= *below)
      return false;
    else if (!out.holds)
      replay(query, replicas, out, choice);
  }
  return true;
}

double size_of(const Candidate& candidate, bool priced);

/// The cheapest pair of pools of a cluster that holds: for each number of replicas of prompts the fewest others.
void find_pools(const FleetQuery& query, Candidate& best, FleetChoice& choice) {
  for (const std::int64_t prompts : query.prefill_replicas) {
    Candidate one = unplayed(query, *best.server);
    one.prompts = prompts;
    find_fewest(query, one, choice);
    const bool priced = one.price() && best.price();
    const bool is_better = one.holds != best.holds ? one.holds
                           : one.holds             ? size_of(one, priced) < size_of(best, priced)
                                       : !best.replay || one.replay->good_share() > best.replay->good_share();
    if (is_better) best = std::move(one);
    // More replicas of prompts cost more than they can save: one that decodes is the least.
    if (!best.holds) continue;
    Candidate next = unplayed(query, *best.server);
    next.prompts = prompts + 1, next.replicas = query.replicas.front();
    if (size_of(next, priced) >= size_of(best, priced)) return;
  }
}

/// Cost, or chips where a chip has no price.
double size_of(const Candidate& candidate, bool priced) {
  if (priced) return candidate.price()->value();
  const std::int64_t prompts = candidate.prefill ? candidate.prompts * candidate.prefill->chips() : 0;
  return static_cast<double>(candidate.replicas * candidate.server->chips() + prompts);
}

/// The ten cheapest instances of all that are on offer. A cluster whose fewest possible replicas cost more than the
/// tenth found so far is left out: it cannot be among them.
void choose_offers(const FleetQuery& query, FleetChoice& choice) {
  constexpr std::size_t wanted = 10;
  struct Open {
    Candidate candidate;
    DollarsPerSecond least;
  };
  std::vector<Open> open;
  for (const FleetServer& server : query.servers) {
    Candidate one = unplayed(query, server);
    const auto least = server.price(std::max(one.fewest, query.replicas.front()));
    const std::string reason = !least ? "no instance holds a replica" : "";
    if (one.fewest > query.replicas.back() || !least)
      choice.passed_over.emplace_back(
          report::Members{{"what", server.cluster()},
                          {"why", least ? fmt::format("{} replicas are too few", query.replicas.back()) : reason}});
    else
      open.push_back({std::move(one), *least});
  }
  std::stable_sort(open.begin(), open.end(), [](const Open& a, const Open& b) { return a.least < b.least; });
  std::map<const hardware::InstanceOffer*, DollarsPerSecond> found;
  const auto tenth = [&]() -> std::optional<DollarsPerSecond> {
    if (found.size() < wanted) return std::nullopt;
    std::vector<DollarsPerSecond> prices;
    for (const auto& [offer, price] : found) prices.push_back(price);
    std::nth_element(prices.begin(), prices.begin() + wanted - 1, prices.end());
    return prices[wanted - 1];
  };
  for (Open& one : open) {
    const auto most = tenth();
    const bool is_cheap = (!most || one.least < *most) && find_fewest(query, one.candidate, choice, most);
    if (!one.candidate.holds) {
      const std::string why = !is_cheap
                                  ? fmt::format("at least {} a day, and ten are cheaper", human(one.least * 1_day))
                                  : fmt::format("{} replicas are too few", query.replicas.back());
      choice.passed_over.emplace_back(report::Members{{"what", one.candidate.server->cluster()}, {"why", why}});
      if (!choice.candidates.empty()) continue;
    }
    if (one.candidate.holds)
      for (const Rental& rental : one.candidate.server->rentals(one.candidate.replicas)) {
        const auto [at, is_new] = found.try_emplace(rental.offer, rental.price);
        at->second = std::min(at->second, rental.price);
      }
    choice.candidates.push_back(std::move(one.candidate));
  }
}

/// The scale up to which a fleet holds the traffic, within two percent; at most 16 times as much.
double margin_of(const FleetQuery& query, const Candidate& chosen, FleetChoice& choice) {
  const double own = query.traffic.scale;
  const auto holds_at = [&](double scale) {
    serving::TrafficPlan traffic = query.traffic;
    traffic.scale = own * scale;
    serving::FleetPlan plan = query.plan(*chosen.server, chosen.replicas, chosen.prompts);
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
  choice.fleets = static_cast<std::int64_t>(query.replicas.size() * query.servers.size() *
                                            std::max<std::size_t>(1, query.prefill_replicas.size()));
  if (query.is_any) {
    choose_offers(query, choice);
    if (choice.candidates.empty()) choice.candidates.push_back(unplayed(query, query.servers.front()));
  }
  for (const FleetServer& server : query.servers) {
    if (query.is_any) break;
    Candidate& best = choice.candidates.emplace_back(unplayed(query, server));
    query.prefill ? find_pools(query, best, choice) : static_cast<void>(find_fewest(query, best, choice));
  }
  const bool priced = std::all_of(choice.candidates.begin(), choice.candidates.end(),
                                  [](const Candidate& one) { return one.price().has_value(); });
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
