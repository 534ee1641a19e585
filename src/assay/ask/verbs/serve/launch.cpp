#include "assay/ask/verbs/serve/launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/emission.h"
#include "assay/ask/verbs/launched.h"
#include "assay/ask/verbs/model_shape.h"
#include "assay/ask/verbs/serve/plans.h"
#include "assay/base/text.h"

namespace assay::verbs::serve {
namespace {

/// Fields of a point that a script must say.
constexpr std::string_view promised_fields[] = {"dp",         "tp",    "pp",    "ep",   "ep-over",      "cache",
                                                "weights-2d", "batch", "chunk", "page", "memory-share", "kv"};

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
  plan["memory-share"] = kernel::text_of(query.memory);
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

}  // namespace assay::verbs::serve
