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

Result<void> read_replicas(const Request& request, FleetQuery& query) {
  constexpr std::int64_t most_searched = 256, most = 4096;
  const std::string text = request.value("replicas").value_or(fmt::format("1..{}", most_searched));
  const std::size_t dots = text.find("..");
  ASSAY_TRY(from, parse_count(trim(std::string_view(text).substr(0, dots)), "--replicas"));
  std::int64_t to = from;
  if (dots != text.npos) ASSAY_SET(to, parse_count(trim(std::string_view(text).substr(dots + 2)), "--replicas"));
  if (from < 1 || to < from || to > most)
    return fail("--replicas", fmt::format("{} is no number from 1 to {}, nor a range of them", in_quotes(text), most),
                "e.g. 4 or 1..16");
  query.replicas.resize(static_cast<std::size_t>(to - from + 1));
  std::iota(query.replicas.begin(), query.replicas.end(), from);
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
                                const std::string& cluster) {
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
  constexpr double few_tokens = 512;
  const double limit = out.query->question.step_tokens;
  const bool is_engine = (request.has("chunk") || out.query->software.named()) && std::isfinite(limit);
  ASSAY_SET(out.server,
            serving::loaded_server(out.query->question, out.query->cluster, out.point, is_engine ? limit : few_tokens));
  return out;
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
  for (const std::string& cluster : clusters) {
    auto server = find_server(request, context, query, cluster);
    if (!server && !query.is_any) return tl::unexpected<Error>(std::move(server).error());
    std::string why = server ? server->impossible : server.error().what;
    if (query.is_any && !why.empty()) {
      query.passed_over.emplace_back(report::Members{{"what", cluster}, {"why", std::move(why)}});
      continue;
    }
    if (!query.changes.is_fixed() && server->impossible.empty() && server->engines() > 1)
      return fail("--dp", "a replica that is lost or added is one engine, and this plan has several", "--dp 1");
    ASSAY_CHECK(add_fleet_prices(*query.prices, context, *server));
    query.servers.push_back(*std::move(server));
  }
  if (!query.servers.empty()) return {};
  return fail("--on", "no chip of the table can serve the model",
              "a smaller model, or narrower formats: --weights fp8");
}

}  // namespace

serving::FleetPlan FleetQuery::plan(const FleetServer& server, std::int64_t of) const {
  serving::FleetPlan plan;
  plan.server = &server.server;
  plan.replicas = of * server.engines();
  plan.routing = routing;
  plan.limits = limits;
  plan.context = server.query->model().max_context;
  plan.has_intervals = true;
  plan.changes = changes;
  if (load_rate)
    plan.changes.start.weights = static_cast<double>(server.chips()) * server.point.memory.weights / *load_rate;
  if (traced && traced->prefixes) plan.prefixes = &*traced->prefixes;
  return plan;
}

Result<FleetQuery> read_fleet_query(const Request& request, const Context& context) {
  FleetQuery query;
  ASSAY_CHECK(read_traffic(request, context, query));
  ASSAY_CHECK(read_limits(request, query));
  ASSAY_CHECK(read_replicas(request, query));
  ASSAY_CHECK(read_changes(request, query));
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
