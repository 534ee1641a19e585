#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/ask/verbs/fleet/fleet.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/ranges.h"
#include "assay/ask/verbs/table/value_kinds.h"
#include "assay/base/text.h"
#include "assay/predict/serving/load/loaded_server.h"
#include "assay/predict/serving/load/prefix_cache.h"

namespace assay::verbs::fleet {
namespace {

constexpr std::int64_t usual_requests = 20000;

/// Options that are those of `assay serve`.
constexpr std::string_view server_options[] = {"ttft",         "tpot", "chunk", "weights", "kv", "compute",
                                               "software",     "tp",   "pp",    "ep",      "dp", "memory-margin",
                                               "memory-share", "set",  "price", "prices",  "as"};
constexpr std::string_view made_options[] = {"prompt", "output", "prompt-lengths", "output-lengths"};

/// A number above 0.
Result<void> read_factor(const Request& request, std::string_view option, double& out) {
  const auto text = request.value(option);
  if (!text) return {};
  const auto number = parse_number(*text);
  if (!number || !(*number > 0.0) || *number > 1e6)
    return fail(fmt::format("--{}", option),
                fmt::format("{} is no number above 0 and up to a million", in_quotes(*text)), "e.g. 1.5");
  out = *number;
  return {};
}

Result<void> read_trace(const Request& request, const Context& context, FleetQuery& query) {
  const auto value = request.value("trace");
  if (!value) return {};
  ASSAY_TRY(text, serve::text_of_requests(*value, "--trace", context));
  const std::string name = trim(*value).starts_with('{') ? "--trace" : *value;
  ASSAY_TRY(trace, serving::parse_request_trace(text, name));
  const bool has_times = trace.is_timed();
  if (!has_times && !request.has("rate") && !request.has("clients"))
    return fail(name, "some request has no time", "say when they come: --rate 10, or --clients 32");
  if (has_times) {
    const auto earlier = [](const serving::TracedRequest& a, const serving::TracedRequest& b) {
      return *a.arrival < *b.arrival;
    };
    if (!std::is_sorted(trace.requests.begin(), trace.requests.end(), earlier)) {
      std::stable_sort(trace.requests.begin(), trace.requests.end(), earlier);
      query.notes.push_back(name + ": requests are not in the order of their times: sorted");
    }
  }
  if (trace.has_components)
    query.notes.push_back(name + ": hashes of parts of prompts do not say how long the parts are: no prefix is kept");
  auto traced = std::make_shared<TracedTraffic>();
  traced->trace = std::move(trace);
  if (traced->trace.has_blocks()) traced->prefixes.emplace(traced->trace);
  query.traffic.trace = &traced->trace;
  query.traced = std::move(traced);
  return {};
}

Result<void> read_traffic(const Request& request, const Context& context, FleetQuery& query) {
  serving::TrafficPlan& traffic = query.traffic;
  ASSAY_CHECK(read_trace(request, context, query));
  if (!request.has("trace") && !request.has("rate") && !request.has("clients"))
    return fail("fleet", "there is no traffic", "add --rate 10, --clients 32, or --trace FILE", Error::Kind::usage);
  ASSAY_SET(traffic.rate, serve::request_rate(request));
  ASSAY_CHECK(read_count(request, "clients", traffic.clients));
  if (traffic.clients && (*traffic.clients < 1 || *traffic.clients > 1'000'000))
    return fail("--clients", "clients are from 1 to a million", "e.g. 32");
  for (const auto& [option, of] : {std::pair{"burstiness", "rate"}, std::pair{"think", "clients"}})
    if (request.has(option) && !request.has(of))
      return fail(fmt::format("--{}", option), fmt::format("it needs --{}", of), fmt::format("add --{} 10", of),
                  Error::Kind::usage);
  std::optional<Seconds> think;
  ASSAY_CHECK(read_time(request, "think", think));
  traffic.think = think.value_or(Seconds());
  ASSAY_CHECK(read_factor(request, "burstiness", traffic.burstiness));
  ASSAY_CHECK(read_factor(request, "scale", traffic.scale));
  ASSAY_CHECK(read_factor(request, "stretch", traffic.stretch));
  ASSAY_TRY(seed, count_or(request, "seed", 1));
  traffic.seed = static_cast<std::uint64_t>(seed);
  ASSAY_TRY(take, count_or(request, "take", request.has("trace") ? 0 : usual_requests));
  traffic.requests = take;
  constexpr std::int64_t most = 100'000'000;
  if (take > most)
    return fail("--take", fmt::format("more than {} requests", human_count(most)), "20k are usually enough");
  if (take == 0 && request.has("take")) return fail("--take", "no requests", "at least 1");
  if (!request.has("trace") && !request.has("take"))
    query.notes.push_back(fmt::format("--take not given: {} requests", human_count(usual_requests)));
  return {};
}

/// "4" or "1..16", up to 4096.
Result<std::vector<std::int64_t>> replica_range(const Request& request, std::string_view option, std::string usual) {
  constexpr std::int64_t most = 4096;
  const std::string where = fmt::format("--{}", option), text = request.value(option).value_or(std::move(usual));
  const std::size_t dots = text.find("..");
  ASSAY_TRY(from, parse_count(trim(std::string_view(text).substr(0, dots)), where));
  std::int64_t to = from;
  if (dots != text.npos) ASSAY_SET(to, parse_count(trim(std::string_view(text).substr(dots + 2)), where));
  if (from < 1 || to < from || to > most)
    return fail(where, fmt::format("{} is no number from 1 to {}, nor a range of them", in_quotes(text), most),
                "e.g. 4 or 1..16");
  std::vector<std::int64_t> out(static_cast<std::size_t>(to - from + 1));
  std::iota(out.begin(), out.end(), from);
  return out;
}

/// What replicas of prompts do not go with.
Result<void> check_prefill(const Request& request, const FleetQuery& query) {
  if (!request.has("prefill-on")) {
    if (!request.has("prefill-replicas")) return {};
    return fail("--prefill-replicas", "it needs --prefill-on", "add --prefill-on h200-sxm:1", Error::Kind::usage);
  }
  const auto refused = [](std::string_view what, std::string_view hint) -> Result<void> {
    return fail("--prefill-on", std::string(what), std::string(hint), Error::Kind::usage);
  };
  if (request.has("clients"))
    return refused("clients that wait for answers are replayed on servers that also work on prompts", "use --rate");
  if (!query.changes.is_fixed()) return refused("pools keep their replicas", "leave --fail and --autoscale out");
  if (query.routing == serving::FleetRouting::by_prefix)
    return refused("prompts go to the replica with the fewest", "leave --routing out");
  if (request.value("on") == "any") return refused("any is one chip for both", "name the clusters of --on");
  return {};
}

Result<void> read_limits(const Request& request, FleetQuery& query) {
  ASSAY_CHECK(read_time(request, "ttft", query.limits.first_token));
  ASSAY_CHECK(read_time(request, "tpot", query.limits.per_token));
  if (request.has("goodput") && !query.limits.given())
    return fail("--goodput", "it is a share of requests within limits, and there are none",
                "add --ttft 500ms or --tpot 50ms", Error::Kind::usage);
  return read_share(request, "goodput", query.limits.share, true);
}

/// Lengths of the log, as far as the model takes them, become those of the question.
Result<void> set_lengths(const FleetQuery& query, std::int64_t page, serve::ServeQuery& server) {
  serving::ServingQuestion& question = server.question;
  if (query.traced) {
    const std::int64_t most = server.model().max_context;
    std::vector<std::int64_t> prompts, outputs;
    for (const serving::TracedRequest& one : query.traced->trace.requests) {
      if (most > 0 && one.prompt + one.output > most) continue;
      prompts.push_back(one.prompt);
      outputs.push_back(one.output);
    }
    if (prompts.empty())
      return fail("--trace",
                  fmt::format("every request is longer than the context of {} tokens of {}", most, server.model().id),
                  "take a model with a longer context");
    question.lengths = serving::request_lengths(serving::Lengths::sampled(std::move(prompts)),
                                                serving::Lengths::sampled(std::move(outputs)), page);
  }
  question.prompt = std::max<std::int64_t>(1, std::llround(question.lengths->prompt.mean()));
  question.output = std::max<std::int64_t>(1, std::llround(question.lengths->output.mean()));
  if (query.traced && query.traced->prefixes) {
    const auto kept = serving::PrefixReuse(*query.traced->prefixes).with(std::nullopt);
    const auto most = static_cast<double>(question.prompt - 1) / static_cast<double>(question.prompt);
    question.cached_prompt = std::min(kept.share(), most);
  }
  return {};
}

/// The request to `assay serve` that finds a replica.
Result<Request> server_request(const Request& request, const FleetQuery& query, const std::string& cluster) {
  std::vector<std::string> words{"serve",  request.arguments().front(),          "--on",       cluster,
                                 "--page", request.value("page").value_or("16"), "--overflow", "0.01"};
  if (const auto batch = request.value("batch")) words.insert(words.end(), {"--most-batch", *batch});
  if (query.traced) words.insert(words.end(), {"--prompt", "1", "--output", "1"});  // until its lengths are set
  const auto add = [&](std::string_view option) {
    for (const std::string& value : request.values(option)) {
      if (option == "output" && names_output_file(value)) continue;
      words.push_back(fmt::format("--{}={}", option, value));
    }
  };
  for (const std::string_view option : server_options)
    if (option != "prices" || !names_path(request, "prices")) add(option);
  if (query.traced) return parse_request(words);
  for (const std::string_view option : made_options) add(option);
  return parse_request(words);
}

Result<FleetServer> find_server(const Request& request, const Context& context, const FleetQuery& query,
                                const std::string& cluster, bool for_prompts = false) {
  ASSAY_TRY(asked, server_request(request, query, cluster));
  ASSAY_TRY(found_query, serve::read_serve_query(asked, context));
  FleetServer out;
  out.query = std::make_unique<serve::ServeQuery>(std::move(found_query));
  serve::bind(*out.query);
  if (out.query->choices.prompts_only)
    return fail("--output", "a fleet generates tokens", "ask assay serve about prompts alone", Error::Kind::usage);
  const std::int64_t page = out.query->question.lengths->page;
  ASSAY_CHECK(set_lengths(query, page, *out.query));
  out.impossible = out.query->impossible;
  if (!out.impossible.empty()) return out;
  ASSAY_TRY(found, serve::search_as_measured(*out.query));
  const auto& point = found.best ? found.best : found.closest;
  if (!found.fits || !point) {
    out.impossible = fmt::format("{} does not fit on {}", out.query->model().id, cluster);
    return out;
  }
  out.point = *point;
  // An engine that is set up for more sequences than its cache always holds throws some out.
  if (out.query->choices.most_batch) out.point.batch = static_cast<double>(*out.query->choices.most_batch);
  out.query->question.cached_prompt = 0.0;  // the replay knows what is cached
  // An engine packs prompts up to its own limit; where none is named, a short prompt's step also has room for a few.
  const double few_tokens = for_prompts ? 8192 : 512;  // prompts alone fill a step
  const double limit = out.query->question.step_tokens;
  const bool is_engine = (request.has("chunk") || out.query->software.named()) && std::isfinite(limit);
  ASSAY_SET(out.server,
            serving::loaded_server(out.query->question, out.query->cluster, out.point, is_engine ? limit : few_tokens));
  return out;
}

}  // namespace

serving::FleetPlan FleetQuery::plan(const FleetServer& server, std::int64_t of, std::int64_t prompts) const {
  serving::FleetPlan plan;
  plan.server = &server.server;
  plan.replicas = of * server.engines();
  plan.routing = routing;
  plan.limits = limits;
  plan.context = server.query->model().max_context;
  plan.has_intervals = true;
  plan.changes = changes;
  if (prefill && prompts > 0)
    plan.prefill = serving::PrefillPlan{&prefill->server, prompts * prefill->engines(), server.per_token, server.link};
  if (load_rate)
    plan.changes.start.weights = static_cast<double>(server.chips()) * server.point.memory.weights / *load_rate;
  if (traced && traced->prefixes) plan.prefixes = &*traced->prefixes;
  return plan;
}

namespace {

/// How caches come to a server that does not work on prompts.
Result<void> join_pools(const FleetServer& prefill, FleetServer& server) {
  const auto &from = prefill.query->cluster, &to = server.query->cluster;
  if (!from.chip.network.scale_out || !to.chip.network.scale_out)
    return fail("--prefill-on", fmt::format("no file says which network joins {} and {}", from.text, to.text),
                "chips with [network.scale_out]", Error::Kind::missing);
  ASSAY_SET(server.per_token, serving::cache_of_token(server.query->question, to, server.point));
  const auto out = [](const hardware::Cluster& of) {
    return static_cast<double>(of.chips()) * of.chip.network.scale_out->bandwidth.value;
  };
  server.link = std::min(out(from), out(to));
  return {};
}

/// One a cluster of --on; of those that may be any, the ones that can serve the model.
Result<void> find_servers(const Request& request, const Context& context, FleetQuery& query) {
  query.is_any = *request.value("on") == "any";
  std::vector<std::string> clusters;
  if (query.is_any) {
    ASSAY_SET(clusters, clusters_of_any(context, query));
  } else {
    ASSAY_TRY(range, parse_cluster_range(*request.value("on"), "--on", context.catalogue));
    clusters = range.clusters;
  }
  if (const auto text = request.value("prefill-on")) {
    ASSAY_TRY(prefill, find_server(request, context, query, *text, true));
    if (!prefill.impossible.empty())
      return fail("--prefill-on", prefill.impossible, "more chips, or narrower formats: --weights fp8");
    ASSAY_CHECK(add_fleet_prices(*query.prices, context, prefill));
    query.prefill = std::move(prefill);
    ASSAY_SET(query.prefill_replicas, replica_range(request, "prefill-replicas", "1..16"));
  }
  std::optional<Error> first;
  for (const std::string& cluster : clusters) {
    auto server = find_server(request, context, query, cluster);
    if (!server && !query.is_any) return tl::unexpected<Error>(std::move(server).error());
    std::string why = server ? server->impossible : server.error().what;
    if (query.is_any && !why.empty()) {
      query.passed_over.emplace_back(report::Members{{"what", cluster}, {"why", std::move(why)}});
      if (!server && !first) first = std::move(server).error();
      continue;
    }
    if (!query.changes.is_fixed() && server->impossible.empty() && server->engines() > 1)
      return fail("--dp", "a replica that is lost or added is one engine, and this plan has several", "--dp 1");
    ASSAY_CHECK(add_fleet_prices(*query.prices, context, *server));
    if (query.prefill && server->impossible.empty()) ASSAY_CHECK(join_pools(*query.prefill, *server));
    query.servers.push_back(*std::move(server));
  }
  if (!query.servers.empty()) return {};
  if (first) return tl::unexpected<Error>(*std::move(first));
  return fail("--on", "no chip of the table can serve the model",
              "a smaller model, or narrower formats: --weights fp8");
}

}  // namespace

Result<FleetQuery> read_fleet_query(const Request& request, const Context& context) {
  FleetQuery query;
  ASSAY_CHECK(read_traffic(request, context, query));
  ASSAY_CHECK(read_limits(request, query));
  ASSAY_SET(query.replicas, replica_range(request, "replicas", "1..256"));
  ASSAY_CHECK(read_changes(request, context, query));
  query.routing_text = request.value("routing").value_or("least-loaded");
  static constexpr Word<serving::FleetRouting> words[] = {{"random", serving::FleetRouting::random},
                                                          {"round-robin", serving::FleetRouting::in_turn},
                                                          {"least-loaded", serving::FleetRouting::least_loaded},
                                                          {"session", serving::FleetRouting::by_session},
                                                          {"prefix", serving::FleetRouting::by_prefix}};
  std::optional<serving::FleetRouting> routing;
  ASSAY_CHECK(read_word(request, "routing", words, routing));
  query.routing = routing.value_or(query.routing);
  const auto& traced = query.traced;
  const auto has_session = [](const serving::TracedRequest& one) { return one.session >= 0; };
  if (query.routing == serving::FleetRouting::by_session &&
      !(traced && std::any_of(traced->trace.requests.begin(), traced->trace.requests.end(), has_session)))
    return fail("--routing", "no request says which session it is of", "use prefix or least-loaded",
                Error::Kind::usage);
  if (query.routing == serving::FleetRouting::by_prefix && !(traced && traced->prefixes))
    return fail("--routing", "no request says which blocks its prompt has", "use least-loaded", Error::Kind::usage);
  if (const std::string text = request.value("explain").value_or(""); !text.empty() && text != "all") {
    ASSAY_TRY(number, parse_count(text.substr(0, text.find('.')), "--explain"));
    query.explained = number;
  }
  if (!request.has("on"))
    return fail("fleet", "--on is missing", "name the chips of one replica, e.g. --on h100-sxm:8", Error::Kind::usage);
  ASSAY_CHECK(check_prefill(request, query));
  ASSAY_SET(query.prices, read_fleet_prices(request, context));
  ASSAY_CHECK(find_servers(request, context, query));
  for (const FleetServer& server : query.servers)
    for (const std::string& note : server.query->notes)
      if (!query.is_any && std::find(query.notes.begin(), query.notes.end(), note) == query.notes.end())
        query.notes.push_back(note);
  if (!query.traced) {
    query.traffic.prompts = query.servers.front().query->question.lengths->prompt;
    query.traffic.outputs = query.servers.front().query->question.lengths->output;
  }
  return query;
}

}  // namespace assay::verbs::fleet
