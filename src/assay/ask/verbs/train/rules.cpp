#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "assay/ask/verbs/experts.h"
#include "assay/base/text.h"
#include "assay/predict/clock/chunks.h"
#include "assay/predict/search/divisors.h"

namespace assay::verbs::train {
namespace {

/// "4 or 8": the allowed values nearest to `n` from below and above.
std::string nearest_of(const std::vector<std::int64_t>& allowed, std::int64_t n) {
  std::string text;
  const auto above = std::lower_bound(allowed.begin(), allowed.end(), n);
  if (above != allowed.begin()) text = fmt::format("{}", *(above - 1));
  if (above != allowed.end()) text += fmt::format("{}{}", text.empty() ? "" : " or ", *above);
  return text;
}

struct Factor {
  std::string_view flag;
  std::int64_t ways;
};

std::vector<Factor> factors_of(const search::TrainingChoices& c) {
  std::vector<Factor> out;
  const std::pair<std::string_view, const std::optional<std::int64_t>*> all[] = {
      {"--dp", &c.data}, {"--fsdp", &c.fsdp}, {"--tp", &c.tensor}, {"--cp", &c.context}, {"--pp", &c.pipeline}};
  for (const auto& [flag, ways] : all)
    if (*ways) out.push_back({flag, **ways});
  return out;
}

/// Whether a model can be split so many ways by one flag alone.
bool can_be_split(const model::Transformer& model, std::string_view flag, std::int64_t ways) {
  lower::Parallelism p;
  (flag == "--tp" ? p.tensor : flag == "--cp" ? p.context : flag == "--pp" ? p.pipeline : p.data) = ways;
  return lower::check_parallelism(p, model).has_value();
}

/// The change of one factor that makes the product divide the chips, or equal them where all are given.
std::string nearest_factors(const std::vector<Factor>& factors, std::int64_t chips, bool all_given,
                            const model::Transformer& model) {
  std::vector<std::string> changes;
  for (const Factor& changed : factors) {
    std::int64_t rest = 1;
    for (const Factor& other : factors)
      if (other.flag != changed.flag && rest <= chips) rest *= other.ways;
    if (rest > chips || chips % rest != 0) continue;
    std::vector<std::int64_t> allowed{chips / rest};
    if (!all_given) allowed = search::divisors(chips / rest);
    std::erase_if(allowed, [&](std::int64_t ways) { return !can_be_split(model, changed.flag, ways); });
    if (allowed.empty()) continue;
    changes.push_back(fmt::format("{} {}", changed.flag, nearest_of(allowed, changed.ways)));
  }
  const std::string rule = fmt::format("{} must {} the number of chips", factors.size() > 1 ? "their product" : "it",
                                       all_given ? "equal" : "divide");
  return changes.empty() ? rule : fmt::format("{}: nearest is {}", rule, join(changes, ", or "));
}

Result<void> check_mesh(const TrainQuery& query) {
  const std::int64_t chips = query.cluster.chips();
  const std::vector<Factor> factors = factors_of(query.choices);
  double product = 1.0;
  std::string text;
  for (const Factor& factor : factors) {
    product *= static_cast<double>(factor.ways);
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", factor.flag, factor.ways);
  }
  const bool all_given = factors.size() == 5;
  const auto n = static_cast<double>(chips);
  if (all_given ? product == n : std::fmod(n, product) == 0.0) return {};
  if (factors.size() > 1) text += fmt::format(" = {}", human_number(product));
  return fail("strategy", fmt::format("{}, but {} has {} chips", text, query.cluster.text, chips),
              nearest_factors(factors, chips, all_given, query.imported.model));
}

/// Batches in sequences that some mesh of the space can split, on both sides of the one asked for.
std::string nearest_batches(const TrainQuery& query, const search::TrainingSpace& space) {
  std::set<std::int64_t> groups;
  for (const lower::Parallelism& p : space.meshes())
    groups.insert(p.data * p.fsdp * query.choices.micro_batch.value_or(1));
  const auto asked = static_cast<std::int64_t>(query.question.sequences);
  std::set<std::int64_t> allowed;
  for (std::int64_t n : groups) {
    if (asked / n > 0) allowed.insert(asked / n * n);
    allowed.insert((asked / n + 1) * n);
  }
  return fmt::format(
      "use a multiple of the number of data-parallel groups, nearest {} sequences; a larger --tp, --pp or --cp "
      "means fewer groups",
      nearest_of({allowed.begin(), allowed.end()}, asked));
}

Error error_of(std::string where, std::string what, std::string hint) {
  return Error{Error::Kind::input, std::move(where), std::move(what), std::move(hint), {}};
}

/// More chunks of layers than there are layers, by the flag that asks for them.
Error too_few_layers(const search::TrainingChoices& choices, std::int64_t stages, std::int64_t layers) {
  if (!choices.interleave)
    return error_of(
        "--schedule",
        fmt::format(
            "interleaved stages need at least two chunks of layers each, and {} layers on {} stages are too few",
            layers, stages),
        fmt::format("use at most --pp {}, or --schedule 1f1b", layers / 2));
  const std::int64_t most = clock::most_chunks(layers, stages);
  return error_of(
      "--interleave",
      fmt::format("{} layers on {} stages are too few for {} chunks each", layers, stages, *choices.interleave),
      most > 1 ? fmt::format("at most --interleave {}", most)
               : fmt::format("leave --interleave out, or use at most --pp {}", layers / 2));
}

}  // namespace

Result<void> check_choices(const TrainQuery& query) {
  const search::TrainingChoices& c = query.choices;
  lower::Parallelism given;
  given.tensor = c.tensor.value_or(1);
  given.context = c.context.value_or(1);
  given.pipeline = c.pipeline.value_or(1);
  if (c.context_scheme) given.context_scheme = *c.context_scheme;
  ASSAY_CHECK(lower::check_parallelism(given, query.imported.model));
  ASSAY_CHECK(check_mesh(query));
  if (c.context && query.sequence % *c.context != 0)
    return fail("--cp", fmt::format("sequences of {} tokens cannot be split {} ways", query.sequence, *c.context),
                fmt::format("use a divisor of the sequence length: nearest is {}",
                            nearest_of(search::divisors(query.sequence), *c.context)));
  const std::int64_t source = query.question.setup.source;
  if (c.context && source > 0 && source % *c.context != 0)
    return fail("--cp", fmt::format("encoder sequences of {} tokens cannot be split {} ways", source, *c.context),
                fmt::format("use a divisor of both sequence lengths: nearest is {}",
                            nearest_of(search::divisors(std::gcd(query.sequence, source)), *c.context)));
  if (c.expert) ASSAY_CHECK(check_experts(*c.expert, c.expert_over, given.tensor, given.context, query.imported.model));
  const std::int64_t layers = clock::layers_of(query.imported.model);
  const std::int64_t chunks = c.interleave.value_or(c.schedule == clock::PipelineSchedule::interleaved ? 2 : 1);
  if (c.pipeline && *c.pipeline > 1 && chunks > 1 && chunks > clock::most_chunks(layers, *c.pipeline))
    return tl::unexpected(too_few_layers(c, *c.pipeline, layers));
  return {};
}

Result<void> keep_to_software(TrainQuery& query) {
  query.open_choices = query.choices;
  const AssumedSoftware& software = query.software;
  if (!software.named()) return {};
  if (software.plan.empty()) {
    query.notes.push_back(
        fmt::format("what {} can express is not recorded: every strategy is searched", software.name));
    return {};
  }
  ASSAY_TRY(rules, search::read_plan_rules(software.plan));
  for (const search::PlanConflict& conflict :
       search::plan_conflicts(rules, query.choices, query.imported.model, query.cluster)) {
    if (software.binds()) {
      const auto rule = std::find_if(software.plan.begin(), software.plan.end(),
                                     [&](const auto& one) { return one.option == conflict.rule; });
      std::string allowed;
      if (rule != software.plan.end())
        allowed =
            fmt::format("{}: {}{}; ", rule->option, rule->value, rule->note.empty() ? "" : " (" + rule->note + ")");
      return fail(conflict.option, fmt::format("{} cannot run this: {}", software.text(), conflict.what),
                  allowed + "--software any searches the open space");
    }
    query.refused.push_back(fmt::format("{} cannot be run by {}, {}: {}", conflict.option, software.text(),
                                        software.is_usual ? "the usual software on such chips" : "as it is known here",
                                        conflict.what));
  }
  if (!query.refused.empty()) return {};
  search::TrainingChoices& choices = query.choices;
  if (choices.offloads.size() > 1)
    std::erase_if(choices.offloads,
                  [&](training::Offload way) { return !search::PlanRules::has(rules.offloads, way); });
  choices.rules = std::move(rules);
  return {};
}

void widen(TrainQuery& query, std::string_view why) {
  query.notes.push_back(fmt::format("{}: every strategy is searched", why));
  query.choices = query.open_choices;
  query.refused_by = query.software.name;
}

Error why_nothing_runs(const TrainQuery& query) {
  const search::TrainingSpace space(query.question, query.sequence, query.cluster, query.choices);
  const double sequences = query.question.sequences;
  std::optional<Error> micro, order;
  std::int64_t most_per_group = 0;
  for (const lower::Parallelism& p : space.meshes()) {
    const std::int64_t per_group = space.per_group(p);
    if (per_group == 0) continue;
    const auto micros = space.micro_batches(per_group);
    if (micros.empty()) {
      if (per_group > most_per_group) {
        most_per_group = per_group;
        micro = error_of("--micro-batch",
                         fmt::format("{} sequences per group cannot be split into microbatches of {}", per_group,
                                     query.choices.micro_batch.value_or(1)),
                         fmt::format("nearest is {}",
                                     nearest_of(search::divisors(per_group), query.choices.micro_batch.value_or(1))));
      }
      continue;
    }
    for (const search::StageOrder& tried : space.orders(p)) {
      const auto possible =
          clock::check_pipeline({tried.schedule, p.pipeline, per_group / micros.front(), tried.interleave});
      if (!possible && !order) {
        order = possible.error();
        if (!query.choices.schedule && query.choices.interleave) order->where = "--interleave";
      }
    }
    if (space.orders(p).empty() && !order)
      order = too_few_layers(query.choices, p.pipeline, clock::layers_of(query.imported.model));
  }
  if (order) return *order;
  if (micro) return *micro;
  return error_of("--batch",
                  fmt::format("{} sequences cannot be split over {} chips as asked", human_number(sequences),
                              query.cluster.chips()),
                  nearest_batches(query, space));
}

void add_idle_notes(const Request& request, const TrainQuery& query, const training::Strategy& strategy,
                    std::vector<std::string>& notes) {
  const lower::Parallelism& p = strategy.parallelism;
  const bool tpu = query.steps && query.steps->compiled_whole(query.cluster.chip),
             dense = !query.imported.model.has_experts();
  struct Idle {
    std::string_view option;
    bool idle;
    std::string_view why;
  };
  const Idle options[] = {
      {"schedule", p.pipeline == 1, "has no effect without pipeline stages (--pp N)"},
      {"interleave", p.pipeline == 1, "has no effect without pipeline stages (--pp N)"},
      {"sequence-parallel", p.tensor == 1, "has no effect without tensor parallelism (--tp N)"},
      {"tensor-overlap", p.tensor == 1, "has no effect without tensor parallelism (--tp N)"},
      {"context-scheme", p.context == 1, "has no effect without context parallelism (--cp N)"},
      {"drop-tokens", dense, "has no effect: the model has no experts"},
      {"fused-experts", !query.imported.model.has_gated_experts() || tpu,
       tpu ? "has no effect on TPUs: only one compiler was measured there"
           : "has no effect: the model has no gated experts"},
      {"no-expert-overlap", dense, "has no effect: the model has no experts"},
      {"attention-kernel", !query.question.setup.flash && !query.question.setup.effects.wide_attention,
       "has no effect with --plain-attention"},
      {"explicit-mask", !query.question.setup.flash, "has no effect with --plain-attention"},
      {"fusion", tpu, "has no effect on TPUs: only one compiler was measured there"},
      {"graphs", tpu, "has no effect on TPUs: programs are launched whole there"},
      {"mtbf", !query.tokens, "has no effect without --tokens, which makes it a run"},
      {"restart", !request.has("mtbf"), "has no effect without --mtbf: there are no failures"},
      {"checkpoint-interval", !request.has("mtbf"), "has no effect without --mtbf: there are no failures"},
      {"checkpoint-size", !request.has("mtbf"), "has no effect without --mtbf: there are no failures"},
      {"checkpoint-bandwidth", !request.has("mtbf"), "has no effect without --mtbf: there are no failures"},
  };
  for (const auto& [option, idle, why] : options)
    if (idle && request.has(option)) notes.push_back(fmt::format("--{} {}", option, why));
}

}  // namespace assay::verbs::train
