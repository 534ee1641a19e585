// assay fleet: traffic replayed on replicas of a server, and the cheapest fleet that holds it.
#include "assay/ask/verbs/fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/prices.h"
#include "assay/base/text.h"
#include "assay/predict/serving/power.h"

namespace assay::verbs::fleet {
namespace {

using serving::FleetReplay, serving::ServedRequest;

report::Members spread_members(const FleetQuery& query, const FleetReplay& replay, const serving::Quantiles& of,
                               FleetReplay::Blocked counts) {
  const serving::Spread spread = of.spread();
  report::Members out{{"mean", spread.mean}, {"p50", spread.p50}, {"p90", spread.p90}, {"p99", spread.p99}}, range;
  constexpr const char* names[] = {"p50", "p90", "p99"};
  std::size_t i = 0;
  if (replay.counts)
    for (const auto& found : replay.counts->intervals(counts, {0.5, 0.9, 0.99}, query.traffic.seed))
      range.emplace_back(names[i++], report::Members{{"low", Seconds(found.low)}, {"high", Seconds(found.high)}});
  if (!range.empty()) out.emplace_back("interval", std::move(range));
  return out;
}

report::Members fleet_members(const FleetQuery& query, const Candidate& chosen) {
  const FleetServer& server = *chosen.server;
  report::Members out{{"cluster", server.cluster()},
                      {"replicas", chosen.replicas},
                      {"chips", chosen.replicas * server.chips()},
                      {"routing", query.routing_text}};
  if (!server.impossible.empty()) return out;
  out.emplace_back("strategy", serve::strategy_text(server.point.strategy));
  out.emplace_back("batch", static_cast<std::int64_t>(server.server.most));
  if (server.server.policy == serving::BatchingPolicy::chunked)
    out.emplace_back("chunk", Tokens(std::floor(server.server.chunk)));
  if (server.server.cache_tokens > 0.0) out.emplace_back("cache", Tokens(std::floor(server.server.cache_tokens)));
  if (server.engines() > 1) out.emplace_back("engines", server.engines());
  if (server.query->software.named()) out.emplace_back("software", server.query->software.text());
  if (chosen.prefill)
    out.emplace_back("prefill", report::Members{{"cluster", chosen.prefill->cluster()},
                                                {"replicas", chosen.prompts},
                                                {"chips", chosen.prompts * chosen.prefill->chips()},
                                                {"strategy", serve::strategy_text(chosen.prefill->point.strategy)},
                                                {"chunk", Tokens(std::floor(chosen.prefill->server.chunk))}});
  return out;
}

/// The longest part of a late request's time.
std::string why_late(const ServedRequest& one, bool first_token) {
  if (one.replica < 0)
    return fmt::format("{} + {} tokens are more than the context or the cache of a replica", one.request.prompt,
                       one.request.output);
  const std::pair<const char*, double> waits[] = {
      {"waited for a replica", one.for_replica},
      {"waited for a place in the batch", one.for_places},
      {"waited for room in the cache", one.for_cache},
      {"waited behind other prompts", one.for_prompts},
      {"was worked on as a prompt", one.prompted - one.scheduled},
      {"was thrown out of a full cache", first_token ? 0.0 : one.preempted},
      {"was decoded", first_token ? 0.0 : one.decoded - one.prompted - one.preempted}};
  const auto longest = std::max_element(std::begin(waits), std::end(waits),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return fmt::format("it {} for {}", longest->first, human(Seconds(longest->second)));
}

report::Members broke_members(const FleetQuery& query, const FleetReplay& replay) {
  const ServedRequest& one = *replay.first_miss;
  const bool first = query.limits.first_token && one.first_token() > query.limits.first_token->value();
  report::Members out{{"at", Seconds(replay.missed_at)}, {"request", one.request.id}};
  out.emplace_back("limit", one.replica < 0 ? "refused" : first ? "first token" : "time per token");
  if (one.replica >= 0) out.emplace_back("took", Seconds(first ? one.first_token() : one.per_token()));
  out.emplace_back("why", why_late(one, first));
  return out;
}

Result<void> add_cost(const Context& context, const Candidate& chosen, report::Members& out) {
  const FleetReplay& replay = *chosen.replay;
  const double replicas = chosen.mean_replicas();
  const TokensPerSecond tokens = replay.tokens_per_second();
  if (const auto price = chosen.price())
    out.emplace_back("cost", report::Members{{"per_day", *price * 1_day},
                                             {"per_million_output_tokens", Tokens(1e6) * (*price / tokens)}});
  if (chosen.prefill) return {};  // what chips draw that work on prompts alone is not modelled
  const hardware::Chip& chip = chosen.server->query->cluster.chip;
  ASSAY_TRY(load, serving::power_load_of(context.catalogue));
  const auto chips = static_cast<double>(chosen.server->chips());
  if (const auto power = serving::served_power(chip, chips, load, chosen.server->point)) {
    const double working = replay.per_second(replay.busy) / static_cast<double>(chosen.server->engines());
    const Watts mean = serving::mean_power(load, *power, chips, replicas, working);
    out.emplace_back("energy", report::Members{{"per_day", mean * 1_day},
                                               {"per_output_token", mean * (Tokens(1) / tokens)},
                                               {"mean_power", mean}});
  }
  return {};
}

void add_replay(const FleetQuery& query, const Candidate& chosen, report::Members& out) {
  const FleetReplay& replay = *chosen.replay;
  const Seconds span(replay.last_arrival);
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const double growth = span > Seconds(0) ? number(replay.waiting_at_last_arrival) / span.value() : 0.0;
  out.emplace_back("holds", chosen.holds);
  out.emplace_back(
      "requests",
      report::Members{{"sent", replay.requests},
                      {"served", replay.served()},
                      {"refused", replay.refused},
                      {"good", replay.good},
                      {"per_second", span > Seconds(0) ? number(replay.requests) / span.value() : 0.0},
                      {"prompt_tokens", Tokens(number(replay.prompt_tokens))},
                      {"output_tokens", Tokens(number(replay.output_tokens))},
                      {"span", span},
                      {"end", Seconds(replay.end)},
                      {"preemptions", number(replay.preemptions) / number(std::max<std::int64_t>(1, replay.requests))},
                      {"waiting_at_last_arrival", replay.waiting_at_last_arrival},
                      {"queue_growth", growth}});
  out.emplace_back("time_to_first_token",
                   spread_members(query, replay, replay.first_token, FleetReplay::first_token_counts));
  out.emplace_back("time_per_token", spread_members(query, replay, replay.per_token, FleetReplay::per_token_counts));
  out.emplace_back("end_to_end", spread_members(query, replay, replay.whole, FleetReplay::whole_counts));
  report::Members goodput{{"share", replay.good_share()}, {"requests_per_second", replay.good_per_second().value()}};
  if (query.limits.given()) goodput.emplace_back("wanted", query.limits.share);
  out.emplace_back("goodput", std::move(goodput));
  out.emplace_back("tokens_per_second", replay.tokens_per_second());
  out.emplace_back("hit_rate", replay.hit_rate());
  out.emplace_back("utilisation",
                   replay.per_second(replay.busy) / chosen.mean_replicas() / number(chosen.server->engines()));
  if (chosen.prefill) {
    const double prompts = number(chosen.prompts * chosen.prefill->engines());
    const Tokens mean(number(replay.prompt_tokens) / std::max(1.0, number(replay.served())));
    out.emplace_back("pool",
                     report::Members{{"utilisation", replay.per_second(replay.prefill_busy) / prompts},
                                     {"link_utilisation", replay.per_second(replay.sending) / prompts},
                                     {"link", chosen.server->link},
                                     {"transfer", mean.value() * chosen.server->per_token / chosen.server->link}});
  }
  if (replay.first_miss) out.emplace_back("broke", broke_members(query, replay));
}

report::Items alternative_rows(const FleetQuery& query, const FleetChoice& choice) {
  return report::rows_of(choice.candidates, [&](const Candidate& one) {
    const FleetServer& server = *one.server;
    report::Members row{{"cluster", server.cluster()}};
    if (server.impossible.empty()) row.emplace_back("strategy", serve::strategy_text(server.point.strategy));
    row.emplace_back("replicas", one.replicas);
    row.emplace_back("chips", one.replicas * server.chips());
    row.emplace_back("holds", one.holds);
    if (one.replay) {
      row.emplace_back("good_share", one.replay->good_share());
      row.emplace_back("time_to_first_token", one.replay->first_token.spread().p99);
      row.emplace_back("time_per_token", one.replay->per_token.spread().p99);
    }
    if (const auto price = one.price()) row.emplace_back("cost_per_day", *price * 1_day);
    row.emplace_back("fewest_possible", one.fewest);
    if (!server.impossible.empty())
      row.emplace_back("why", server.impossible);
    else if (!one.holds)
      row.emplace_back("why", fmt::format("{} are too few", query.replicas.back()));
    return row;
  });
}

/// The parts of a request's time, which add up to it.
void explain(const ServedRequest& one, report::Response& response) {
  const Traced num{&response.ledger};
  const std::string name = std::to_string(one.request.id);
  const auto part = [&](std::string_view what, double seconds, std::string_view of) {
    return num.given(what, Seconds(seconds), of);
  };
  const auto waits =
      num.named("waits", part("for the running step", one.for_step(), "a step cannot be joined") +
                             part("for a place", one.for_places, "the batch is full") +
                             part("for room in the cache", one.for_cache, "no pages are free") +
                             part("for other prompts", one.for_prompts, "that came before, chunk by chunk"));
  const auto& prefilled = one.request.prefilled;
  auto until = part("front end", prefilled ? 0.0 : one.ready - one.request.arrival, "and tokenising");
  if (prefilled)
    until =
        num.named("prompt elsewhere",
                  part("front end, waits and prompt", prefilled->made - one.request.arrival, "in the pool of prompts") +
                      part("cache over the link", one.ready - prefilled->made, "behind those that went before"));
  if (one.for_replica > 0.0)
    until = until + part("for a replica", one.for_replica, "its own was lost, or none was there");
  const auto made = num.named("first token made",
                              until + waits + part("prompt", one.prompted - one.scheduled, "steps with its pieces"));
  const auto whole =
      num.named(name + " from its arrival to its last token",
                made + part("thrown out", one.preempted, "until its tokens were computed again") +
                    part("decoding", one.decoded - one.prompted - one.preempted, "steps up to its last token") +
                    part("delivery", one.end - one.decoded, "after those of its step"));
  response.derived = {whole.id};
}

/// Plays the chosen fleet again for what a search does not keep: rows, steps, and one request.
Result<void> play_again(const Request& request, const FleetQuery& query, Candidate& chosen,
                        report::Response& response) {
  if (!request.has("rows") && !request.has("steps") && !request.explain()) return {};
  serving::FleetPlan plan = query.plan(*chosen.server, chosen.replicas, chosen.prompts);
  const auto& miss = chosen.replay->first_miss;
  plan.kept = query.explained ? *query.explained : miss && miss->replica >= 0 ? miss->request.id : 0;
  ASSAY_TRY(files, FleetFiles::of(request, plan));
  chosen.replay = serving::replay_fleet(plan, query.traffic);
  return files.write(response);
}

std::string headline_of(const FleetQuery& query, const FleetChoice& choice) {
  const Candidate& chosen = choice.candidates.front();
  const FleetReplay& replay = *chosen.replay;
  std::string text = fmt::format("{} x {}", chosen.replicas_text(), chosen.server->cluster());
  if (chosen.prefill) text = fmt::format("{} x {} for prompts and {}", chosen.prompts, chosen.prefill->cluster(), text);
  if (query.limits.given()) {
    text +=
        fmt::format(" {} the limits: {:.2f} % of {} requests are within, {} wanted", chosen.holds ? "holds" : "misses",
                    100.0 * replay.good_share(), human_count(replay.requests), report::percent(query.limits.share));
  } else {
    text += fmt::format(" {} with {} requests", chosen.holds ? "keeps up" : "does not keep up",
                        human_count(replay.requests));
  }
  text += fmt::format("; p99 {} to the first token, {} per token", human(replay.first_token.spread().p99),
                      human(replay.per_token.spread().p99));
  if (const auto price = chosen.price()) text += fmt::format("; {} per day", human(*price * 1_day));
  return text;
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_fleet_query(request, context));
  report::Response response;
  response.notes = query.notes;
  FleetChoice choice = choose_fleet(query);
  Candidate& chosen = choice.candidates.front();
  if (query.is_any)
    response.notes.insert(response.notes.end(), chosen.server->query->notes.begin(), chosen.server->query->notes.end());
  report::Members& out = response.results;
  out.emplace_back("model", chosen.server->query->model().id);
  out.emplace_back("fleet", fleet_members(query, chosen));
  if (!chosen.replay) {
    response.outcome = report::Outcome::infeasible;
    response.headline = chosen.server->impossible;
    out.emplace_back("impossible", chosen.server->impossible);
    return response;
  }
  if (chosen.replay->requests == 0)
    return fail("--scale", "no request of the trace is left", "a larger scale, or another --seed");
  ASSAY_CHECK(play_again(request, query, chosen, response));
  if (request.explain()) {
    const auto& kept = chosen.replay->kept;
    if (!kept)
      return fail("--explain", fmt::format("there is no request {}", query.explained.value_or(0)),
                  fmt::format("requests are 0 to {}, in the order of arrival", chosen.replay->requests - 1));
    if (kept->replica < 0)
      return fail("--explain", fmt::format("request {} was refused: {}", kept->request.id, why_late(*kept, true)),
                  "ask about one that was served");
    explain(*kept, response);
    out.emplace_back("one_request", report::Members{{"request", kept->request.id},
                                                    {"replica", kept->replica},
                                                    {"prompt", kept->request.prompt},
                                                    {"cached", kept->cached},
                                                    {"output", kept->request.output},
                                                    {"arrival", Seconds(kept->request.arrival)},
                                                    {"time_to_first_token", Seconds(kept->first_token())},
                                                    {"end_to_end", Seconds(kept->whole())}});
  }
  add_replay(query, chosen, out);
  ASSAY_CHECK(add_cost(context, chosen, out));
  add_changes(query, chosen, response);
  add_other_prices(query, chosen, choice.margin, response);
  out.emplace_back("series", series_rows(query, chosen));
  if (choice.margin) out.emplace_back("margin", report::Members{{"scale", *choice.margin}});
  if (query.prices->table && !query.prefill)
    if (report::Items rows = rent_rows(choice); !rows.empty()) out.emplace_back("rent", std::move(rows));
  if (query.is_any) {
    report::Items passed = query.passed_over;
    passed.insert(passed.end(), choice.passed_over.begin(), choice.passed_over.end());
    if (!passed.empty()) out.emplace_back("not_tried", std::move(passed));
    response.table_key = "rent";
  } else if (query.is_search()) {
    out.emplace_back("alternatives", alternative_rows(query, choice));
    response.table_key = "alternatives";
  } else {
    response.table_key = "series";
  }
  out.emplace_back(
      "search",
      report::Members{{"candidates", choice.fleets}, {"proved", choice.proved}, {"replayed", choice.replayed}});
  std::vector<const hardware::Chip*> chips;
  for (const FleetServer& server : query.servers) chips.push_back(&server.query->cluster.chip);
  if (!query.prices->table && !query.prices->owning) add_prices(chips, "cost", response);
  response.headline = headline_of(query, choice);
  if (!chosen.holds) response.outcome = report::Outcome::infeasible;
  if (request.picture()) response.picture = fleet_picture(query, chosen);
  return response;
}

}  // namespace assay::verbs::fleet
