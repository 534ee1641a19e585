#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "assay/ask/launch/plan.h"
#include "assay/ask/verbs/emission.h"
#include "assay/ask/verbs/launched.h"
#include "assay/ask/verbs/model_shape.h"
#include "assay/base/text.h"
#include "assay/predict/search/training/neighbours.h"
#include "assay/predict/training/limits.h"

namespace assay::verbs::train {
namespace {

/// Fields of a strategy that a script must say, and formats.
constexpr std::string_view promised_fields[] = {"seq",     "sequences",  "dp",        "fsdp",          "tp",
                                                "pp",      "cp",         "ep",        "ep-over",       "order",
                                                "zero",    "schedule",   "residual",  "offload",       "micro-batch",
                                                "compute", "interleave", "recompute", "context-scheme"};

std::string order_of(const training::Strategy& strategy) {
  if (strategy.layout.torus_order > 0) return "chosen axis by axis of the torus";
  return training::axis_order(strategy.parallelism, strategy.layout);
}

std::string expert_axes(const lower::Parallelism& p) {
  if (p.expert == 1) return "none";
  const bool tensor = p.expert_over.tensor && p.tensor > 1, context = p.expert_over.context && p.context > 1;
  return tensor && context ? "tp,cp" : tensor ? "tp" : context ? "cp" : "dp";
}

/// Layers of each stage and chunk.
std::vector<int> layers_of_parts(const model::Transformer& model, const training::Strategy& s) {
  const clock::StageSplit runs = training::stage_runs(model, s.parallelism.pipeline, s.schedule, s.interleave);
  std::vector<int> layers;
  for (const std::int16_t part : runs.part_of) {
    const auto& by_kind = runs.parts[static_cast<std::size_t>(part)].layers;
    layers.push_back(std::accumulate(by_kind.begin(), by_kind.end(), 0));
  }
  return layers;
}

/// How layers are split into stages and chunks: evenly, with one fewer where the embedding or the loss is, or
/// otherwise.
std::string_view split_of(const model::Transformer& model, const training::Strategy& s) {
  if (s.parallelism.pipeline == 1) return "even";
  const std::vector<int> layers = layers_of_parts(model, s);
  const int most = *std::max_element(layers.begin(), layers.end());
  for (std::size_t i = 1; i + 1 < layers.size(); ++i)
    if (layers[i] != most) return "uneven";
  const int first = most - layers.front(), last = most - layers.back();
  if (std::max(first, last) > 1) return "uneven";
  return first > 0 ? (last > 0 ? "ends" : "embedding") : last > 0 ? "loss" : "even";
}

std::string residual_name(const lower::Parallelism& p) {
  if (p.tensor == 1) return "none";
  return p.residual == lower::ResidualScheme::sequence     ? "sequence"
         : p.residual == lower::ResidualScheme::replicated ? "replicated"
                                                           : "model";
}

void add_formats(const TrainQuery& query, launch::Settings& plan) {
  const training::TrainingSetup& setup = query.question.setup;
  plan["compute"] = name(query.compute);
  plan["params"] = name(setup.formats.weights);
  plan["grads"] = name(setup.formats.gradients);
  plan["moments"] = name(setup.optimizer.first_moment);
  plan["optimizer"] = !setup.optimizer.master ? "none" : setup.optimizer.cast_when_gathered ? "shared" : "fp32";
  plan["no-overlap"] = query.question.overlap ? "no" : "yes";
  static constexpr std::string_view overlaps[] = {"none", "backward", "all"};
  plan["tensor-overlap"] = overlaps[static_cast<std::size_t>(setup.effects.overlap.tensor)];
  plan["fusion"] = query.software.fusion.empty() ? "default" : query.software.fusion;
  const std::optional<model::Adapters>& adapters = query.imported.model.adapters;
  plan["adapters"] = adapters ? "yes" : "no";
  if (adapters) {
    plan["lora"] = std::to_string(adapters->rank);
    plan["lora-on"] = !adapters->feed_forward ? "attention" : adapters->attention ? "all" : "feed-forward";
  }
}

/// Whether these are options that the request leaves open.
bool may_change(const Request& request, const launch::Pairs& changes) {
  const auto& options = request.verb().options;
  return std::all_of(changes.begin(), changes.end(), [&](const auto& change) {
    return !request.has(change.first) && std::any_of(options.begin(), options.end(), [&](const OptionSpec& option) {
      return option.name == change.first && !option.value.empty();
    });
  });
}

Seconds step_time(TrainSizes& sizes) { return sizes.best().shown()->cost.estimate; }

}  // namespace

launch::Settings plan_of(const TrainQuery& query, const training::Strategy& s) {
  const lower::Parallelism& p = s.parallelism;
  launch::Settings plan = model_shape(query.imported.model, query.sequence);
  plan.merge(cluster_fields(query.cluster));
  const std::pair<std::string_view, std::int64_t> counts[] = {
      {"seq", query.sequence},
      {"sequences", static_cast<std::int64_t>(query.question.sequences)},
      {"dp", p.data},
      {"fsdp", p.fsdp},
      {"tp", p.tensor},
      {"pp", p.pipeline},
      {"cp", p.context},
      {"ep", p.expert},
      {"zero", p.zero},
      {"micro-batch", s.micro_batch},
      {"interleave", s.interleave}};
  for (const auto& [field, count] : counts) plan[std::string(field)] = std::to_string(count);
  plan["microbatches"] = exact_number(training::microbatches(query.question, s));
  plan["model"] = query.imported.model.id;
  plan["schedule"] = p.pipeline > 1 ? clock::schedule_name(s.schedule) : std::string_view("none");
  plan["split"] = split_of(query.imported.model, s);
  if (plan["split"] == "uneven") {
    std::vector<std::string> parts;
    for (const int layers : layers_of_parts(query.imported.model, s))
      parts.emplace_back(static_cast<std::size_t>(layers), 't');
    plan["layout"] = "E" + join(parts, "|") + "L";
  }
  plan["layer_places"] = *launch::layer_places(plan);
  plan["recompute"] = lower::name(s.recompute);
  plan["offload"] = training::name(s.offload);
  plan["residual"] = residual_name(p);
  plan["context-scheme"] = p.context == 1                                       ? "none"
                           : p.context_scheme == lower::ContextScheme::exchange ? "all-to-all"
                                                                                : "ring";
  plan["ep-over"] = expert_axes(p);
  // On a torus the program's compiler places the axes, unless the request says how.
  if (!query.cluster.torus || query.choices.layout) plan["order"] = order_of(s);
  add_formats(query, plan);
  return plan;
}

Result<TrainSizes> sizes_to_run(Request& request, const Context& context, std::vector<std::string>& notes) {
  std::optional<launch::Target> named;
  if (const auto program = request.value("emit")) {
    ASSAY_SET(named, launch::find_target(context.catalogue, "train", *program, "--emit"));
    if (!named->software.empty()) ASSAY_CHECK(request.fill("software", named->software, "--emit"));
    for (const auto& [option, value] : named->assumed) ASSAY_CHECK(request.fill(option, value, "--emit"));
  }
  ASSAY_TRY(first, train_sizes(request, context));
  TrainSizes sizes = std::move(first);
  const launch::Target* usual = nullptr;
  if (!named) ASSAY_SET(usual, launch::target_of_software(context.catalogue, sizes.best().query.software.name));
  if (!named && !usual) return sizes;
  const launch::Target& target = named ? *named : *usual;
  for (;;) {
    const SizedTraining& best = sizes.best();
    const auto refused =
        best.fits() ? launch::refusal_of(target, plan_of(best.query, best.shown()->strategy)) : std::nullopt;
    if (!refused || (!named && request.has(refused->about))) return sizes;  // what the request says is asked about
    std::optional<TrainSizes> fastest;
    std::optional<Request> asked;
    std::string change;
    for (const launch::Pairs& changes : refused->changes) {
      Request other = request;
      if (!may_change(request, changes)) continue;
      std::string text;
      for (const auto& [field, value] : changes) {
        const auto said = option_of(field, value, {});
        if (!said) continue;
        ASSAY_CHECK(other.fill(said->first, said->second, "--emit"));
        text += fmt::format(" --{} {}", said->first, said->second);
      }
      if (text.empty()) continue;
      auto found = train_sizes(other, context);
      if (!found || !found->best().fits() || !found->best().query.refused_by.empty()) continue;
      if (fastest && step_time(*found) >= step_time(*fastest)) continue;
      fastest = std::move(*found);
      asked = std::move(other);
      change = std::move(text);
    }
    if (!fastest) return sizes;
    notes.push_back(fmt::format("{}: searched again with{}", refused->what, change));
    sizes = std::move(*fastest);
    request = std::move(*asked);
  }
}

Result<void> add_launch(const Request& request, const Context& context, const SizedTraining& size,
                        const std::vector<std::string>& notes, report::Response& response) {
  Emission emission{size.query.cluster, plan_of(size.query, size.shown()->strategy), promised_fields, response.headline,
                    notes};
  emission.plan["model_path"] = hub_name(request.arguments().front(), context.catalogue);
  return add_script(request, context, emission, response);
}

Result<report::Items> change_rows(const Request& request, const hardware::Catalogue& catalogue, const TrainQuery& query,
                                  const search::Candidate& plan, bool fits) {
  ASSAY_TRY(found,
            search::better_neighbours({query.question, query.sequence, query.cluster, query.choices}, plan, fits));
  ASSAY_TRY(target, launch::target_of_software(catalogue, query.software.name));
  const auto is_refused = [&](const search::Candidate& candidate) {
    return target && launch::refusal_of(*target, plan_of(query, candidate.strategy));
  };
  if (!is_refused(plan)) std::erase_if(found, [&](const search::Neighbour& one) { return is_refused(one.candidate); });
  return report::rows_of(found, [&](const search::Neighbour& one) {
    const training::TrainingCost& cost = one.candidate.cost;
    report::Members row{{"change", one.change},
                        {"step_time", cost.estimate},
                        {"faster_by", 1.0 - cost.estimate / plan.cost.estimate},
                        {"why", why_slower(cost, plan.cost)}};
    add_plan(request, query, one.candidate, row);
    return row;
  });
}

namespace {

/// Choices of a strategy. The order of mesh axes is not among them: the search finds the best one of a strategy.
constexpr std::string_view plan_fields[] = {"dp",        "fsdp",    "tp",          "pp",         "cp",
                                            "ep",        "ep-over", "zero",        "schedule",   "residual",
                                            "recompute", "offload", "micro-batch", "interleave", "context-scheme"};
/// What asks for other plans, or for more than a plan.
constexpr std::string_view other_questions[] = {
    "sequence-parallel", "objective", "pareto", "top",      "list", "timeline",
    "sensitivity",       "improve",   "emit",   "launcher", "from", "var"};

}  // namespace

Request plan_request(const Request& request, const TrainQuery& query, const training::Strategy& strategy) {
  const bool one_of_several = request.value("on").value_or("").find_first_of(",.") != std::string::npos;
  Request out = one_of_several ? request.with("on", query.cluster.text) : request;
  for (const std::string_view option : other_questions) out = out.without(option);
  const launch::Settings plan = plan_of(query, strategy);
  for (const std::string_view field : plan_fields) {
    out = out.without(field);
    const auto value = plan.find(std::string(field));
    if (value == plan.end()) continue;
    if (const auto said = option_of(value->first, value->second, plan)) out = out.with(said->first, said->second);
  }
  return out;
}

void add_plan(const Request& request, const TrainQuery& query, const search::Candidate& plan, report::Members& row) {
  const training::TrainingCost& cost = plan.cost;
  report::Members time = time_range(query, cost.lower, cost.estimate, cost.upper);
  for (auto& [key, value] : time)
    if (key == "interval") row.emplace_back(key, std::move(value));
  row.emplace_back("memory", report::Members{{"total", Bytes(cost.memory.total())},
                                             {"verdict", name_of(memory_verdict(query, cost))}});
  row.emplace_back("arguments", plan_request(request, query, plan.strategy).named_arguments());
}

}  // namespace assay::verbs::train
