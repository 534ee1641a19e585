#include "assay/ask/verbs/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/emission.h"
#include "assay/ask/verbs/launched.h"
#include "assay/ask/verbs/model_shape.h"
#include "assay/base/text.h"

namespace assay::verbs::serve {
namespace {

/// Fields of a point that a script must say.
constexpr std::string_view promised_fields[] = {"dp",    "tp",         "pp",    "ep",    "ep-over", "redundant-experts",
                                                "cache", "weights-2d", "batch", "chunk", "page",    "memory-share",
                                                "kv"};

/// How servers share nodes: replicas whose chips fit in a node are in one server with those of the same node, larger
/// ones have nodes of their own, and replicas that share experts are one server on all nodes.
void add_servers(launch::Settings& plan) {
  const auto count = [&](const char* field) { return *parse_number(plan.at(field)); };
  const double nodes = count("nodes"), replica = count("tp") * count("pp");
  const double own = replica <= count("node_chips") ? nodes : count("dp");
  const double servers = plan.at("dp-attention") == "yes" ? 1.0 : own;
  plan["servers"] = exact_number(servers);
  plan["server_nodes"] = exact_number(nodes / servers);
}

}  // namespace

Result<Request> to_run(const Request& given, const Context& context) {
  Request request = given;
  if (!request.has("emit")) return request;
  ASSAY_TRY(target, launch::find_target(context.catalogue, "serve", *request.value("emit"), "--emit"));
  if (!target.software.empty()) ASSAY_CHECK(request.fill("software", target.software, "--emit"));
  for (const auto& [option, value] : target.assumed) ASSAY_CHECK(request.fill(option, value, "--emit"));
  return request;
}

namespace {

/// Sets the fields of a strategy, of a server or several.
void set_strategy(const hardware::Cluster& cluster, const serving::ServingStrategy& s, launch::Settings& plan) {
  for (auto& [field, value] : cluster_fields(cluster)) plan[field] = value;
  for (const auto& [field, count] : {std::pair<std::string_view, std::int64_t>{"dp", s.data},
                                     {"tp", s.tensor},
                                     {"pp", s.pipeline},
                                     {"ep", s.expert},
                                     {"weights-2d", s.second}})
    plan[std::string(field)] = std::to_string(count);
  plan["ep-over"] = expert_axes(s);
  plan["dp-attention"] = s.data > 1 && s.expert > 1 ? "yes" : "no";  // replicas of attention that share experts
  plan["cache"] = cache_name(s.scheme.cache);
  add_servers(plan);
}

}  // namespace

launch::Settings plan_of(const Request& request, const ServeQuery& query, const serving::ServingPoint& point) {
  launch::Settings plan = model_shape(query.model(), query.question.prompt + query.question.output);
  set_strategy(query.cluster, point.strategy, plan);
  plan["context"] = std::to_string(query.question.prompt + query.question.output);
  plan["model"] = query.model().id;
  plan["batch"] = exact_number(point.batch);
  plan["kv"] = name(query.question.setup.formats.kv_cache);
  plan["weights"] = request.value("weights").value_or("published");
  plan["compute"] = name(query.compute);
  plan["graphs"] = request.flag("graphs").value_or(true) ? "yes" : "no";
  plan["memory-share"] = kernel::text_of(query.memory);
  if (request.has("chunk")) plan["chunk"] = exact_number(query.question.step_tokens);
  if (const auto page = request.value("page")) plan["page"] = *page;
  if (query.redundant_experts > 0) plan["redundant-experts"] = std::to_string(query.redundant_experts);
  plan["draft"] = "none";
  return plan;
}

Result<void> keep_to_software(const Request& request, const Context& context, ServeQuery& query) {
  if (!query.software.named()) return {};
  ASSAY_TRY(target, launch::target_of_software(context.catalogue, query.software.name));
  if (!target || target->verb != "serve") return {};
  const launch::Settings asked = plan_of(request, query, {});
  query.choices.refuses = [target = target, asked, batch = query.choices.batch](
                              const serving::ServingStrategy& strategy, const hardware::Cluster& cluster) {
    launch::Settings plan = asked;
    set_strategy(cluster, strategy, plan);
    plan.erase("batch");
    if (batch) plan["batch"] = exact_number(static_cast<double>(*batch));
    if (plan.at("dp-attention") == "no") {  // replicas are servers of their own
      if (batch) plan["batch"] = exact_number(static_cast<double>(*batch) / static_cast<double>(strategy.data));
      plan["nodes"] = plan.at("server_nodes");
      plan["dp"] = plan["servers"] = "1";
    }
    const auto refused = launch::refusal_of(*target, plan);
    return refused ? fmt::format("{}; {}", refused->what, refused->hint) : std::string();
  };
  return {};
}

Result<void> add_launch(const Request& request, const Context& context, const ServeQuery& query,
                        const serving::ServingPoint& point, const std::optional<search::Speculation>& speculation,
                        report::Response& response) {
  const Bytes total = point.memory.total();
  if (memory_verdict(query, total) == "tight")
    return fail("--emit " + *request.value("emit"),
                fmt::format("this plan takes {} of each chip, and the server uses {}", human(total),
                            human(query.question.capacity)),
                "--weights fp8 takes less, as do more chips; --memory-share 0.99 lets the server use more");
  Emission emission{query.cluster, plan_of(request, query, point), promised_fields, response.headline};
  emission.plan["model_path"] = hub_name(request.arguments().front(), context.catalogue);
  if (speculation) {
    const std::string draft = *request.value("draft");
    emission.plan["draft"] = draft == "mtp" ? "mtp" : "model";
    emission.plan["draft_path"] = hub_name(draft, context.catalogue);
    emission.plan["draft-length"] = std::to_string(speculation->loops[speculation->best].length);
  }
  return add_script(request, context, emission, response);
}

namespace {

/// What asks for other points, for limits that choose one, or for more than a point.
constexpr std::string_view other_questions[] = {"ttft",     "tpot",    "rate",           "simulate", "prefill-servers",
                                                "compare",  "formats", "vary",           "fits",     "list",
                                                "products", "picture", "emit",           "launcher", "from",
                                                "var",      "improve", "gather-weights", "ep-over"};

}  // namespace

std::string_view cache_name(lower::CacheScheme scheme) {
  return scheme == lower::CacheScheme::heads ? "heads" : scheme == lower::CacheScheme::batch ? "batch" : "sequence";
}

std::string cache_name(const serving::ServingStrategy& strategy) {
  return fmt::format("{}{}", strategy.cache_ways > 1 ? "heads-" : "", cache_name(strategy.scheme.cache));
}

std::string expert_axes(const serving::ServingStrategy& s) {
  return s.expert == 1 ? "none" : s.expert_over.tensor && s.tensor > 1 ? "tp" : "dp";
}

std::string_view memory_verdict(const ServeQuery& query, Bytes total) {
  if (total > query.question.chip_memory) return "no";
  return total <= query.question.capacity ? "fits" : "tight";
}

Request plan_request(const Request& request, const ServeQuery& query, const serving::ServingPoint& point) {
  const serving::ServingStrategy& s = point.strategy;
  Request out = query.sizes.size() > 1 ? request.with("on", query.cluster.text) : request;
  for (const std::string_view option : other_questions) out = out.without(option);
  const std::pair<std::string_view, std::int64_t> degrees[] = {
      {"dp", s.data}, {"tp", s.tensor}, {"pp", s.pipeline}, {"ep", s.expert}, {"weights-2d", s.second}};
  for (const auto& [option, ways] : degrees) out = out.with(option, std::to_string(ways));
  out = out.with("batch", exact_number(point.batch)).with("cache", cache_name(s));
  if (s.expert > 1) out = out.with("ep-over", expert_axes(s));
  if (s.scheme.weights == lower::WeightScheme::gathered) out = out.with("gather-weights", "");
  return out;
}

void add_plan(const std::optional<Request>& request, const ServeQuery& query, const serving::ServingPoint& point,
              report::Members& row) {
  serving::ServingTime token = point.decode;  // measured steps tell how far tokens of a loaded server are off, too
  token.estimate = point.served.per_token;
  if (report::Members interval = step_interval(query, point.strategy, token, false, point.batch); !interval.empty())
    row.emplace_back("interval", std::move(interval));
  row.emplace_back("memory", report::Members{{"total", point.memory.total()},
                                             {"verdict", memory_verdict(query, point.memory.total())}});
  if (request) row.emplace_back("arguments", plan_request(*request, query, point).named_arguments());
}

}  // namespace assay::verbs::serve
