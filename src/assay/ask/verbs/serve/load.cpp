#include "assay/ask/verbs/serve/serve.h"

#include <fmt/format.h>

#include <cmath>

#include "assay/base/text.h"
#include "assay/predict/search/serving/under_load.h"
#include "assay/predict/serving/load/batching_simulation.h"
#include "assay/predict/serving/load/loaded_server.h"

namespace assay::verbs::serve {
namespace {

report::Members spread_members(const serving::Spread& spread) {
  return {{"mean", spread.mean}, {"p50", spread.p50}, {"p90", spread.p90}, {"p99", spread.p99}};
}

std::string_view policy_text(serving::BatchingPolicy policy) {
  return policy == serving::BatchingPolicy::interleaved ? "prefill before decode"
         : policy == serving::BatchingPolicy::chunked   ? "continuous batching"
                                                        : "disaggregated prefill";
}

report::Members times_members(const serving::LoadedTimes& times, double replicas) {
  return {{"sequences_in_flight", replicas * times.sequences},
          {"requests_that_wait_for_a_place", times.waiting > 1e-9 ? replicas * times.waiting : 0.0},
          {"prefill_share", times.prefill_share},
          {"time_to_first_token", spread_members(times.first_token)},
          {"time_per_token", spread_members(times.per_token)},
          {"time_to_last_token", times.last_token}};
}

/// Requests that all replicas serve within the latency limits.
Hertz most_within_limits(const ServeQuery& query, const serving::LoadedServer& server) {
  constexpr Seconds no_limit(HUGE_VAL);
  return server.replicas * serving::largest_rate(server, query.choices.first_token.value_or(no_limit),
                                                 query.choices.per_token.value_or(no_limit));
}

/// Of a million tokens at the rate of the request.
std::optional<Dollars> cost_at_rate(const ServeQuery& query, const serving::ServingPoint& point,
                                    const serving::LoadedServer& server) {
  return cost_of_million(query, point, *query.rate * Tokens(server.lengths.output.mean()));
}

}  // namespace

report::Members first_token_parts(const serving::FirstToken& first) {
  report::Members out;
  for (const auto& [part, time] : {std::pair{"front_end", first.front_end}, std::pair{"waits", first.waits},
                                   std::pair{"prompt", first.prompt}, std::pair{"delivery", first.delivery}})
    if (time > Seconds(0)) out.emplace_back(part, time);
  return out;
}

Result<serving::LoadedServer> server_under_load(const ServeQuery& query, const serving::ServingPoint& point) {
  return serving::loaded_server(query.question, query.cluster, point);
}

Result<report::Items> lengths_list(const ServeQuery& query, const serving::ServingPoint& point) {
  ASSAY_TRY(server, server_under_load(query, point));
  const serving::RequestLengths& lengths = *query.question.lengths;
  report::Items rows;
  const auto add = [&](std::string_view which, double prompt, double output, Seconds first) {
    rows.emplace_back(report::Members{{"requests", which},
                                      {"prompt", Tokens(prompt)},
                                      {"output", Tokens(output)},
                                      {"time_to_first_token", Seconds(first)}});
  };
  Seconds mean;
  for (std::int64_t n : lengths.prompt.table())
    mean += server.prefill(static_cast<double>(n)) / static_cast<double>(lengths.prompt.table().size());
  add("mean", lengths.prompt.mean(), lengths.output.mean(), mean);
  for (const auto& [name, share] : {std::pair<std::string_view, double>{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}) {
    const auto prompt = static_cast<double>(lengths.prompt.quantile(share));
    add(name, prompt, static_cast<double>(lengths.output.quantile(share)), server.prefill(prompt));
  }
  const auto longest = static_cast<double>(lengths.prompt.largest());
  add("longest", longest, static_cast<double>(lengths.output.largest()), server.prefill(longest));
  return rows;
}

Result<PointUnderLoad> best_under_rate(const ServeQuery& query, const search::ServingSearch& found) {
  ASSAY_TRY(point, search::best_under_load(query.question, query.cluster, found, query.choices, *query.rate));
  ASSAY_TRY(server, server_under_load(query, point));
  PointUnderLoad out;
  out.point = point;
  out.times = serving::loaded_times(server, *query.rate / server.replicas);
  out.meets = search::meets_limits(out.times, query.choices);
  out.most_requests = most_within_limits(query, server);
  out.cost = cost_at_rate(query, point, server);
  return out;
}

Result<report::Members> load_section(const ServeQuery& query, const serving::ServingPoint& point,
                                     report::Response& response) {
  ASSAY_TRY(server, server_under_load(query, point));
  const Hertz rate = *query.rate / server.replicas;
  const serving::LoadedTimes times = serving::loaded_times(server, rate);
  const Hertz saturation = times.saturation * server.replicas;
  report::Members out{{"requests_per_second", query.rate->value()},
                      {"policy", policy_text(server.policy)},
                      {"replicas", point.strategy.data},
                      {"most_sequences", point.batch},
                      {"saturation_requests_per_second", saturation.value()},
                      {"utilisation", times.utilisation},
                      {"stable", times.stable}};
  std::string on = query.cluster.text;
  if (const double servers = query.question.prefill_servers; servers > 0.0) {
    const std::int64_t each = point.strategy.replica_chips();
    out.emplace_back("prefill_servers", static_cast<std::int64_t>(servers));
    out.emplace_back("chips_of_a_prefill_server", each);
    out.emplace_back("decoding_chips", query.cluster.chips());
    out.emplace_back("chips", static_cast<std::int64_t>(query.all_chips(point.strategy)));
    on += fmt::format(" and {} prefill server{} of {} chip{}", servers, servers > 1.0 ? "s" : "", each,
                      each > 1 ? "s" : "");
  }
  if (server.policy == serving::BatchingPolicy::disaggregated) out.emplace_back("cache_transfer_time", server.transfer);
  if (!times.stable) {
    const double copies = std::ceil(times.utilisation * (1.0 + 1e-9));
    out.emplace_back("copies_needed", copies);
    response.outcome = report::Outcome::infeasible;
    response.headline = fmt::format(
        "{} requests per second exceed the {} that {} can serve with {} and at most {} sequences: the queue grows "
        "without bound; {} such servers are enough",
        human_number(query.rate->value()), human_number(saturation.value()), on, strategy_text(point.strategy),
        human_number(point.batch), human_number(copies));
    return out;
  }
  for (auto& member : times_members(times, server.replicas)) out.push_back(std::move(member));
  out.emplace_back("first_token", first_token_parts(times.first_parts));
  const TokensPerSecond tokens = *query.rate * Tokens(server.lengths.output.mean());
  out.emplace_back("tokens_per_second", tokens);
  std::string cost_text;
  if (const auto cost = cost_at_rate(query, point, server)) {
    out.emplace_back("cost_per_million_tokens", *cost);
    cost_text = fmt::format(" at {} per million", human(*cost));
  }
  const std::string latencies = fmt::format("the 99th percentiles are {} to the first token and {} per token",
                                            human(times.first_token.p99), human(times.per_token.p99));
  response.headline = fmt::format("{} requests per second on {}: {}; {} of output{} with {}, {:.0f} % utilised",
                                  human_number(query.rate->value()), on, latencies, human(tokens), cost_text,
                                  strategy_text(point.strategy), 100.0 * times.utilisation);
  if (query.choices.first_token || query.choices.per_token) {
    const double most = most_within_limits(query, server).value();
    out.emplace_back("meets", search::meets_limits(times, query.choices));
    out.emplace_back("most_requests_per_second_that_meet", most);
    if (!search::meets_limits(times, query.choices)) {
      response.outcome = report::Outcome::infeasible;
      response.headline =
          fmt::format("at {} requests per second on {} {}; the latency limits hold up to {} requests per second",
                      human_number(query.rate->value()), on, latencies, human_number(most));
    }
  }
  if (query.simulated_requests) {
    const serving::SimulatedLoad load{*query.simulated_requests, 1};
    const serving::LoadedTimes played = serving::simulate_batching(server, rate, load);
    report::Members simulated{{"requests", load.requests}, {"seed", static_cast<std::int64_t>(load.seed)}};
    simulated.emplace_back("stable", played.stable);
    for (auto& member : times_members(played, server.replicas)) simulated.push_back(std::move(member));
    simulated.emplace_back("preemptions_per_request", played.preemptions);
    out.emplace_back("simulated", std::move(simulated));
  }
  return out;
}

}  // namespace assay::verbs::serve
