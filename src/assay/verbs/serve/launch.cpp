#include "assay/verbs/serve/launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/verbs/emission.h"
#include "assay/verbs/launched.h"
#include "assay/verbs/model_shape.h"
#include "assay/verbs/serve/plans.h"

namespace assay::verbs::serve {
namespace {

/// Fields of a point that a script must say.
constexpr std::string_view promised_fields[] = {"dp",         "tp",    "pp",    "ep",   "ep-over",      "cache",
                                                "weights-2d", "batch", "chunk", "page", "memory-share", "kv"};

/// Every choice as the point makes it.
search::ServingChoices fixed_choices(const serving::ServingPoint& point) {
  const serving::ServingStrategy& s = point.strategy;
  search::ServingChoices out;
  out.tensor = s.tensor;
  out.second = s.second;
  out.pipeline = s.pipeline;
  out.expert = s.expert;
  out.data = s.data;
  out.expert_over = s.expert_over;
  out.cache = s.scheme.cache;
  out.weights = s.scheme.weights;
  out.batch = static_cast<std::int64_t>(point.batch);
  return out;
}

using ServingOpening = void (*)(search::ServingChoices&);
constexpr ServingOpening serving_openings[] = {
    [](search::ServingChoices& c) { c.batch.reset(); },
    [](search::ServingChoices& c) { c.tensor.reset(), c.data.reset(); },
    [](search::ServingChoices& c) { c.pipeline.reset(), c.data.reset(); },
    [](search::ServingChoices& c) { c.tensor.reset(), c.pipeline.reset(); },
    [](search::ServingChoices& c) { c.expert.reset(), c.expert_over.reset(); },
    [](search::ServingChoices& c) { c.cache.reset(); },
};

std::string change_of(const serving::ServingPoint& from, const serving::ServingPoint& to) {
  std::string out;
  const auto add = [&](std::string_view option, const auto& before, const auto& after) {
    if (before != after) out += fmt::format("{}--{} {}", out.empty() ? "" : " ", option, after);
  };
  const serving::ServingStrategy &a = from.strategy, &b = to.strategy;
  add("batch", from.batch, to.batch);
  add("dp", a.data, b.data);
  add("tp", a.tensor, b.tensor);
  add("pp", a.pipeline, b.pipeline);
  add("ep", a.expert, b.expert);
  if (b.expert > 1) add("ep-over", expert_axes(a), expert_axes(b));
  static constexpr std::string_view caches[] = {"heads", "batch", "sequence"};
  add("cache", caches[static_cast<std::size_t>(a.scheme.cache)], caches[static_cast<std::size_t>(b.scheme.cache)]);
  return out;
}

}  // namespace

std::vector<OptionSpec> serve_launch_options() {
  return {emit_option,
          launcher_option,
          from_option,
          {"improve", "", "better plans next to this one, one change at a time"}};
}

Result<Request> to_run(const Request& given, const Context& context) {
  Request request = given;
  if (!request.has("emit")) return request;
  ASSAY_TRY(target, launch::find_target(context.catalogue, "serve", *request.value("emit"), "--emit"));
  if (!target.software.empty()) ASSAY_CHECK(request.fill("software", target.software, "--emit"));
  for (const auto& [option, value] : target.assumed) ASSAY_CHECK(request.fill(option, value, "--emit"));
  return request;
}

launch::Settings plan_of(const Request& request, const ServeQuery& query, const serving::ServingPoint& point) {
  const serving::ServingStrategy& s = point.strategy;
  launch::Settings plan = model_shape(query.model());
  plan.merge(cluster_fields(query.cluster));
  const lower::Formats& formats = query.question.setup.formats;
  static constexpr std::string_view caches[] = {"heads", "batch", "sequence"};
  for (const auto& [field, count] : {std::pair<std::string_view, std::int64_t>{"dp", s.data},
                                     {"tp", s.tensor},
                                     {"pp", s.pipeline},
                                     {"ep", s.expert},
                                     {"weights-2d", s.second},
                                     {"context", query.question.prompt + query.question.output}})
    plan[std::string(field)] = std::to_string(count);
  plan["model"] = query.model().id;
  plan["batch"] = exact_number(point.batch);
  plan["ep-over"] = expert_axes(s);
  plan["dp-attention"] = s.data > 1 && s.expert > 1 ? "yes" : "no";  // replicas of attention that share experts
  plan["cache"] = caches[static_cast<std::size_t>(s.scheme.cache)];
  plan["kv"] = name(formats.kv_cache);
  plan["weights"] = request.value("weights").value_or("published");
  plan["compute"] = name(query.compute);
  plan["graphs"] = request.flag("graphs").value_or(true) ? "yes" : "no";
  plan["memory-share"] = exact_number(query.memory_share);
  if (request.has("chunk")) plan["chunk"] = exact_number(query.question.step_tokens);
  if (const auto page = request.value("page")) plan["page"] = *page;
  return plan;
}

Result<void> add_launch(const Request& request, const Context& context, const ServeQuery& query,
                        const serving::ServingPoint& point, report::Response& response) {
  Emission emission{query.cluster, plan_of(request, query, point), promised_fields, response.headline};
  emission.plan["model_path"] = hub_name(request.arguments().front(), context.catalogue);
  return add_script(request, context, emission, response);
}

Result<report::Items> change_rows(const Request& request, const ServeQuery& query, const serving::ServingPoint& given) {
  struct Better {
    std::string change;
    serving::ServingPoint point;
  };
  std::vector<Better> better;
  for (const ServingOpening open : serving_openings) {
    search::ServingChoices choices = fixed_choices(given);
    open(choices);
    choices.first_token = query.choices.first_token;
    choices.per_token = query.choices.per_token;
    const auto found = search::search_serving(query.question, query.cluster, choices);
    if (!found || !found->best ||
        !(found->best->served.tokens_per_second > given.served.tokens_per_second * (1.0 + 1e-6)))
      continue;
    std::string change = change_of(given, *found->best);
    const bool known = std::any_of(better.begin(), better.end(), [&](const Better& b) { return b.change == change; });
    if (!known && !change.empty()) better.push_back({std::move(change), *found->best});
  }
  std::stable_sort(better.begin(), better.end(), [](const Better& a, const Better& b) {
    return a.point.served.tokens_per_second > b.point.served.tokens_per_second;
  });
  report::Items rows;
  for (const Better& one : better) {
    report::Members row{{"change", one.change},
                        {"tokens_per_second", TokensPerSecond(one.point.served.tokens_per_second)},
                        {"gain", one.point.served.tokens_per_second / given.served.tokens_per_second - 1.0},
                        {"time_per_token", Seconds(one.point.served.per_token)},
                        {"time_to_first_token", Seconds(one.point.prefill.estimate)}};
    add_plan(request, query, one.point, row);
    rows.emplace_back(std::move(row));
  }
  return rows;
}

}  // namespace assay::verbs::serve
