#include "assay/ask/verbs/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/interval_members.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/base/text.h"
#include "assay/hardware/calibration.h"
#include "assay/model/cache_mix.h"
#include "assay/predict/numbers/deployment.h"

namespace assay::verbs::serve {
namespace {

/// What an engine leaves of a chip's memory, and how many tokens of prompts it puts into a step.
struct EngineLimits {
  kernel::MemoryShare memory{};
  double step_tokens = HUGE_VAL;
};

/// The least of all engines of the catalogue.
Result<EngineLimits> least_limits(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(engines, kernel::engines_of(catalogue));
  EngineLimits limits;
  for (const kernel::Software& engine : engines) {
    if (engine.defaults.step_tokens > 0.0)
      limits.step_tokens = std::min(limits.step_tokens, engine.defaults.step_tokens);
    kernel::EngineSoftware does;
    for (const kernel::SoftwareProperty& property : engine.serve)
      if (property.option == "memory-share")
        ASSAY_CHECK(kernel::set_software(does, property.option, property.value, engine.id));
    // Shares of what is free are of another whole.
    if (!does.memory.of_free) limits.memory.share = std::min(limits.memory.share, does.memory.share);
  }
  return limits;
}

/// Whether the request itself says a number.
bool is_stated(std::string_view source) { return source.starts_with("--") || source == "this request"; }

/// Memory and prompts of a step as the software limits them, where the request does not.
Result<void> set_limits(const Request& request, const Context& context, const AssumedSoftware& assumed,
                        const kernel::EngineSoftware& software, ServeQuery& query) {
  EngineLimits limits;
  if (assumed.named()) {
    limits.memory = software.memory;
    if (assumed.step_tokens > 0.0) limits.step_tokens = assumed.step_tokens;
  } else {
    ASSAY_TRY(least, context.catalogue.kept<EngineLimits>("least limits of engines",
                                                          [&] { return least_limits(context.catalogue); }));
    limits = *least;
  }
  if (query.memory_margin == "interval") query.set_memory(limits.memory);
  const bool in_chunks = !query.model().encoder && !query.choices.prompts_only;  // whole prompts at once
  if (in_chunks && !request.has("chunk")) query.question.step_tokens = limits.step_tokens;
  return {};
}

}  // namespace

Result<kernel::EngineSoftware> read_serving_software(const Request& request, const Context& context,
                                                     ServeQuery& query) {
  lower::Formats& formats = query.question.setup.formats;
  kernel::SoftwareCase at = kernel::software_case(query.model());
  at.weights = name(formats.quantised ? formats.quantised->format.dtype : formats.weights);
  at.compute = name(query.compute);
  ASSAY_TRY(steps, numbers::serving_steps_of(context.catalogue, query.model().has_experts()));
  if (const numbers::Family* family = steps.family(query.cluster.chip)) at.family = family->id;
  ASSAY_TRY(assumed, read_software_name(request, context, kernel::SoftwareVerb::serve, at));
  kernel::EngineSoftware software;
  ASSAY_CHECK(set_assumed(request, assumed, kernel::engine_software_options(), software));
  if (software.kv && !request.has("kv")) formats.kv_cache = *software.kv;
  if (software.no_windows && !request.has("window") && model::remove_windows(query.imported.model))
    query.notes.push_back("all layers attend to all tokens: the engine has no windows (--no-windows)");
  ASSAY_CHECK(set_limits(request, context, assumed, software, query));
  query.question.setup.effects = steps.effects(query.cluster.chip, software.step);
  if (!steps.has_steps(query.cluster.chip))
    query.notes.push_back(
        fmt::format("no prefill or decode steps were measured on {} chips: the estimate assumes that kernels and "
                    "collectives are as fast in a step as on their own",
                    query.cluster.chip.architecture));
  query.steps = std::move(steps);
  query.notes.push_back(fmt::format("steps as measured: steps/serving.toml for {} kernels and a {} scheduler ({})",
                                    numbers::fusion_names[static_cast<std::size_t>(software.step.fusion)],
                                    numbers::scheduler_names[static_cast<std::size_t>(software.step.scheduler)],
                                    assumed.named() ? assumed.text() : "--software, or --fusion --scheduler"));
  if (!assumed.left_out.empty()) query.notes.push_back(fmt::format("the estimate leaves out: {}", assumed.left_out));
  query.question.path = software.path;
  numbers::visit_path(query.question.path, [&](std::string_view name, auto& part, std::string_view) {
    for (const kernel::SoftwareProperty& property : assumed.properties)
      if (property.option == name) part.source = property.source;
  });
  numbers::RequestPath asked = query.question.path;
  ASSAY_CHECK(numbers::apply_deployment(context.catalogue, query.question.setup.effects, query.question.path));
  if (is_stated(asked.front_end.source)) query.question.path.front_end = asked.front_end;
  if (is_stated(asked.delivery.source)) query.question.path.delivery = asked.delivery;
  const Given<Seconds>& sorting = query.question.path.sorting;
  if (request.has("nucleus"))
    query.question.setup.effects.sampling = {
        static_cast<double>(query.model().vocabulary) * sorting.value,
        fmt::format("{} for each entry of the vocabulary: {}", human(sorting.value), sorting.source)};
  query.software = std::move(assumed);
  return software;
}

bool is_measured_here(std::string_view source) { return is_stated(source) || numbers::is_of_deployment(source); }

report::Items origin_rows(const ServeQuery& query) {
  report::Items rows;
  const auto add = [&](std::string_view number, const auto& given, std::string_view of) {
    if (!(given.value > decltype(given.value){})) return;
    rows.emplace_back(report::Members{{"number", number},
                                      {"value", given.value},
                                      {"of", is_stated(given.source)                   ? "request"
                                             : numbers::is_of_deployment(given.source) ? "measured"
                                                                                       : of},
                                      {"source", given.source}});
  };
  const numbers::ServingEffects& effects = query.question.setup.effects;
  add("matmuls in a step over matmuls alone", effects.product, "chip");
  add("attention over caches in a step over alone", effects.decode, "chip");
  add("waiting for each other at a collective", effects.meet, "chip");
  add("start of a kernel", effects.start, "engine");
  add("launch of a kernel", effects.launch, "engine");
  add("sampling of a sequence", effects.sampling, "engine");
  const bool of_library = effects.expert_kernel == numbers::ExpertKernel::library;
  if (query.model().has_experts())
    add("routing of a layer with experts", of_library ? effects.routing : effects.gathering_routing, "engine");
  add("steps ahead", query.question.path.ahead, "engine");
  add("per step", effects.step, "deployment");
  add("per sequence", effects.sequence, "deployment");
  add("per sequence beside the step", effects.beside, "deployment");
  add("before a first token", effects.first, "deployment");
  add("front end", query.question.path.front_end, "deployment");
  add("tokenising a token", query.question.path.tokenising, "deployment");
  add("delivery of a sequence", query.question.path.delivery, "deployment");
  return rows;
}

report::Members step_interval(const ServeQuery& query, const serving::ServingStrategy& strategy,
                              const serving::ServingTime& time, bool prefill, double batch) {
  const bool measured = prefill ? query.prefill_time || query.mfu : query.step_time.has_value();
  if (!query.steps || measured) return {};
  const auto& unseen = prefill ? query.steps->unseen_prefill : query.steps->unseen_decode;
  const std::string stages = strategy.pipeline > 1 ? std::to_string(strategy.pipeline) : "";
  const numbers::AskedAbout about[] = {{&unseen[0], query.cluster.chip.id}, {&unseen[1], stages}};
  const auto found = numbers::interval_basis(
      prefill ? query.steps->prefill_intervals : query.steps->decode_intervals,
      numbers::serving_classes(query.steps->family(query.cluster.chip), query.model()), "steps/serving.toml", about);
  if (!found) return {};
  const auto context = static_cast<double>(query.question.prompt + (prefill ? 0 : query.question.output));
  return interval_members(time.lower, time.estimate,
                          numbers::serving_coordinates(query.chips(), query.model(), batch, context),
                          query.cluster.chip.architecture, *found);
}

void note_intervals(const ServeQuery& query, const serving::ServingPoint& point, report::Response& response) {
  for (bool prefill : {true, false}) {
    const report::Value interval(prefill ? step_interval(query, point.strategy, point.prefill, true, point.prompts)
                                         : step_interval(query, point.strategy, point.decode, false, point.batch));
    const report::Value *basis = interval.find("basis"), *rows = interval.find("rows"),
                        *outside = interval.find("extrapolates_in");
    if (!basis) continue;
    std::string text = fmt::format("interval of {}: {} rows of {}", prefill ? "prefill" : "decode",
                                   report::scalar_text(*rows), report::scalar_text(*basis));
    std::vector<std::string> names;
    if (outside)
      for (const report::Value& name : *outside->items()) names.push_back(report::scalar_text(name));
    if (!names.empty()) text += fmt::format("; {} outside the measured range", join(names, " and "));
    response.notes.push_back(std::move(text));
  }
}

}  // namespace assay::verbs::serve
