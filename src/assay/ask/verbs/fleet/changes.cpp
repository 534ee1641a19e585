// Replicas that come and go: what is asked, and what came of it.
#include <fmt/format.h>

#include <cmath>

#include "assay/ask/verbs/fleet/fleet.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"

namespace assay::verbs::fleet {
namespace {

/// "30s,90s": moments; "every 2h": the mean time until a replica is lost.
Result<void> read_failures(const Request& request, serving::FleetChangePlan& changes) {
  const auto text = request.value("fail");
  if (!text) return {};
  constexpr std::string_view every = "every";
  if (trim(*text).starts_with(every)) {
    ASSAY_TRY(mean, parse_as<Seconds>(trim(trim(*text).substr(every.size())), "--fail"));
    if (mean < 60_s)
      return fail("--fail", fmt::format("replicas that last {} never serve", human(mean)), "at least every 1min");
    changes.lost_between = mean;
    return {};
  }
  for (const std::string& part : split(*text, ',')) {
    ASSAY_TRY(moment, parse_as<Seconds>(part, "--fail"));
    if (!(moment >= Seconds()))
      return fail("--fail", fmt::format("{} is before the first request", in_quotes(part)), "e.g. 30s,90s");
    changes.lost_at.push_back(moment);
  }
  return {};
}

constexpr std::string_view scaling_file = "fleets/autoscaling.toml";

/// When replicas are counted, and what a count changes.
Result<void> read_scaling_rule(const hardware::Catalogue& catalogue, serving::ScaleRule& rule) {
  std::string every, down_after;
  for (const auto& [path, text] : catalogue.files(scaling_file)) {
    RecordFile file{.name = path};
    ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) {
      reader.sources();
      reader.table("rule", [&](RecordReader& inner) {
        inner.text("every", every);
        inner.text("down_after", down_after);
        inner.share("tolerance", rule.tolerance);
      });
    }));
  }
  ASSAY_SET(rule.every, parse_as<Seconds>(every, fmt::format("{}: every", scaling_file)));
  ASSAY_SET(rule.down_after, parse_as<Seconds>(down_after, fmt::format("{}: down_after", scaling_file)));
  if (!(rule.every > Seconds()) || rule.down_after < Seconds())
    return fail(std::string(scaling_file), "replicas cannot be counted at such times",
                "every: a time above 0, e.g. \"15 s\"; down_after: one of at least 0");
  return {};
}

/// "queue:4" or "use:0.7".
Result<void> read_scaling(const Request& request, const hardware::Catalogue& catalogue, FleetQuery& query) {
  const auto text = request.value("autoscale");
  if (!text) return {};
  const std::size_t colon = text->find(':');
  const std::string by = text->substr(0, colon);
  const auto target = parse_number(colon == std::string::npos ? "" : trim(std::string_view(*text).substr(colon + 1)));
  serving::ScaleRule rule;
  rule.by = by == "use" ? serving::ScaleRule::By::use : serving::ScaleRule::By::queue;
  if ((by != "use" && by != "queue") || !target || !(*target > 0.0) || *target > (by == "use" ? 1.0 : 1e6))
    return fail("--autoscale", fmt::format("{} is no measure with its target", in_quotes(*text)),
                "queue:4 (requests that wait, per replica) or use:0.7 (share of the places of a batch)");
  rule.target = *target;
  ASSAY_CHECK(read_scaling_rule(catalogue, rule));
  if (!request.has("replicas") || query.replicas.size() < 2)
    return fail("--autoscale", "between how many replicas is not said", "e.g. --replicas 1..8", Error::Kind::usage);
  rule.least = query.replicas.front(), rule.most = query.replicas.back();
  query.replicas = {rule.most};
  query.changes.scale = rule;
  return {};
}

constexpr std::string_view what_words[] = {"ordered", "ready", "lost", "takes no more", "stopped"};

}  // namespace

Result<void> read_changes(const Request& request, const Context& context, FleetQuery& query) {
  ASSAY_CHECK(read_failures(request, query.changes));
  ASSAY_CHECK(read_scaling(request, context.catalogue, query));
  std::optional<Seconds> node, graphs;
  ASSAY_CHECK(read_time(request, "node-start", node));
  ASSAY_CHECK(read_time(request, "capture", graphs));
  const auto rate = request.value("load-rate");
  for (const char* option : {"node-start", "load-rate", "capture"})
    if (request.has(option) && query.changes.is_fixed())
      return fail(fmt::format("--{}", option), "no replica starts during the replay", "add --fail or --autoscale",
                  Error::Kind::usage);
  if (query.changes.is_fixed()) return {};
  if (!rate)
    return fail("--load-rate", "how fast a new replica loads its weights is not known",
                "e.g. --load-rate 2GB/s, and --node-start and --capture, which are 0 otherwise", Error::Kind::usage);
  ASSAY_TRY(bandwidth, parse_as<BytesPerSecond>(*rate, "--load-rate"));
  if (!(bandwidth > BytesPerSecond())) return fail("--load-rate", "weights never arrive", "e.g. 2GB/s");
  query.load_rate = bandwidth;
  query.changes.start = {node.value_or(Seconds()), Seconds(), graphs.value_or(Seconds())};
  return {};
}

double Candidate::mean_replicas() const {
  const auto all = static_cast<double>(replicas);
  if (!replay || !(replay->end > 0.0)) return all;
  const double mean = replay->paid / replay->end / static_cast<double>(server->engines());
  return std::abs(mean - all) < 1e-9 * all ? all : mean;
}

std::optional<DollarsPerSecond> Candidate::price() const {
  auto price = server->price(replicas);
  const auto of_prompts = prefill ? prefill->price(prompts) : std::nullopt;
  if (prefill && !of_prompts) return std::nullopt;
  if (price && of_prompts) price = *price + *of_prompts;
  const double mean = mean_replicas(), all = static_cast<double>(replicas);
  if (!price || mean == all) return price;
  return mean / all * *price;
}

std::string Candidate::replicas_text() const {
  const bool varies = replay && server->query && mean_replicas() != static_cast<double>(replicas);
  if (!varies) return std::to_string(replicas);
  return fmt::format("{} to {}", replay->fewest, replay->most);
}

void add_changes(const FleetQuery& query, const Candidate& chosen, report::Response& response) {
  if (query.changes.is_fixed()) return;
  const serving::FleetReplay& replay = *chosen.replay;
  const serving::StartUp start = query.plan(*chosen.server, chosen.replicas).changes.start;
  response.results.emplace_back("replicas", report::Members{{"fewest", replay.fewest},
                                                            {"most", replay.most},
                                                            {"mean", chosen.mean_replicas()},
                                                            {"hours", Seconds(replay.paid).in(1_h)},
                                                            {"lost", replay.lost},
                                                            {"moved", replay.moved},
                                                            {"start_up", report::Members{{"all", start.time()},
                                                                                         {"node", start.node},
                                                                                         {"weights", start.weights},
                                                                                         {"graphs", start.graphs}}}});
  report::Items rows = report::rows_of(replay.changes, [](const serving::FleetChange& one) {
    return report::Members{{"time", Seconds(one.at)},
                           {"replica", one.replica},
                           {"what", std::string(what_words[static_cast<std::size_t>(one.what)])}};
  });
  if (!rows.empty()) response.results.emplace_back("changes", std::move(rows));
  if (const auto& scale = query.changes.scale)
    response.notes.push_back(fmt::format("replicas are counted every {}; fewer where that was enough for {} ({})",
                                         human(scale->every), human(scale->down_after), scaling_file));
}

}  // namespace assay::verbs::fleet
