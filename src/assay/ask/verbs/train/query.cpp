#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/experts.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/roofline/operation.h"
#include "assay/program/lower/lowering.h"

namespace assay::verbs::train {

namespace {

/// The order of the mesh axes on the cluster, outermost first; axes that are not named are outermost.
Result<void> read_order(const Request& request, std::optional<collective::AxisLayout>& layout) {
  const auto text = request.value("order");
  if (!text) return {};
  std::vector<std::uint8_t> named;
  for (const std::string& word : split(*text, ',')) {
    const auto axis = training::whole_mesh_axis(trim(word));
    if (!axis || std::find(named.begin(), named.end(), *axis) != named.end())
      return fail("--order", fmt::format("{} is not an axis, or is named twice", in_quotes(trim(word))),
                  "list pp, dp, fsdp, ep, cp and tp, or some of them, outermost first");
    named.push_back(*axis);
  }
  layout.emplace();
  std::stable_partition(layout->order.begin(), layout->order.end(),
                        [&](std::uint8_t axis) { return std::find(named.begin(), named.end(), axis) == named.end(); });
  std::copy(named.begin(), named.end(), layout->order.end() - static_cast<std::ptrdiff_t>(named.size()));
  return {};
}

/// No expert gets a token twice, so one expert gets at most all tokens.
Result<void> check_load(const model::Transformer& model, double load, std::string_view option) {
  if (load > 1.0 && !model.has_experts())
    return fail(std::string(option), fmt::format("{} has no experts", model.id), "leave it out");
  for (const model::Layer& layer : model.decoder.kinds) {
    if (!layer.feed_forward || layer.feed_forward->experts == 0) continue;
    const model::FeedForward& f = *layer.feed_forward;
    const double most = static_cast<double>(f.experts) / static_cast<double>(f.experts_per_token);
    if (load > most)
      return fail(
          std::string(option),
          fmt::format("{} is more than all tokens: {} sends each token to {} of {} experts", human_number(load),
                      model.id, f.experts_per_token, f.experts),
          fmt::format("at most {}, where every token picks the same expert; 1 is an even load", human_number(most)));
  }
  return {};
}

/// Offloading needs the size of host memory from the chip's file.
Result<void> check_host(const Request& request, TrainQuery& query) {
  const hardware::Chip& chip = query.cluster.chip;
  if (query.choices.offloads == std::vector<training::Offload>{training::Offload::none}) return {};
  if (chip.host.memory && chip.host.memory_bandwidth) return {};
  if (!request.has("offload")) {
    query.choices.offloads = {training::Offload::none};
    query.notes.push_back(fmt::format("offload is off: the file of {} gives no host memory", chip.id));
    return {};
  }
  return fail("--offload", fmt::format("the file of {} gives no host memory", chip.id),
              "set it with --set host.memory=2TiB --set host.memory_bandwidth=500GB/s");
}

Result<void> read_formats(const Request& request, TrainQuery& query) {
  ASSAY_CHECK(read_dtype(request, "compute", query.compute));
  const hardware::Chip& chip = query.cluster.chip;
  const bool has_rate = hardware::peak_rate(chip, query.compute, "--compute").has_value();
  if (!request.has("compute") && !has_rate && hardware::peak_rate(chip, Dtype::fp16, "--compute")) {
    query.notes.push_back(fmt::format("{} has no {} arithmetic: using fp16 (--compute)", chip.id, name(query.compute)));
    query.compute = query.question.setup.formats.weights = Dtype::fp16;
  }
  lower::Formats& formats = query.question.setup.formats;
  lower::Optimizer& optimizer = query.question.setup.optimizer;
  formats.compute = query.compute;
  formats.gradients = Dtype::fp32;
  ASSAY_CHECK(read_dtype(request, "params", formats.weights));
  if (query.imported.model.adapters && !request.has("params")) formats.freeze();
  if (facts(query.compute).bits >= 16) formats.activations = query.compute;
  // Tools that quantise frozen weights leave embedding and head as they are.
  if (query.imported.model.adapters && !formats.outer && facts(formats.weights).bits < 16)
    formats.outer = formats.activations;
  ASSAY_CHECK(read_dtype(request, "grads", formats.gradients));
  if (facts(formats.gradients).bits < 8 || facts(formats.gradients).is_integer)
    return fail("--grads", fmt::format("gradient accumulation in {} is not modelled", name(formats.gradients)),
                "use fp32, or a narrower floating-point format");
  ASSAY_CHECK(read_dtype(request, "moments", optimizer.first_moment));
  optimizer.second_moment = optimizer.first_moment;
  optimizer.master = facts(formats.weights).bits < 32;
  if (const auto text = request.value("optimizer")) {
    if (*text == "none") {
      optimizer.master = false;
    } else if (*text == "shared") {
      optimizer.master = optimizer.cast_when_gathered = true;
    } else {
      ASSAY_TRY(master, parse_dtype(*text, "--optimizer"));
      if (master != Dtype::fp32)
        return fail("--optimizer", fmt::format("a master copy in {} is not modelled", name(master)),
                    "fp32 (separate master weights), shared (the master copy is the only copy of the weights) or none");
    }
  }
  ASSAY_SET(query.question.setup.rates, kernel::kernel_rates(query.cluster.chip, query.compute, "--compute"));
  query.notes.push_back(fmt::format(
      "formats: weights {}, products {}, gradients {}, Adam moments {}{}; change them with --params --compute --grads "
      "--moments --optimizer",
      name(formats.weights), name(query.compute), name(formats.gradients), name(optimizer.first_moment),
      optimizer.master ? ", fp32 master copy" : ", no master copy"));
  return {};
}

/// Lengths that positions limit: an error where there is no weight for more, a note where more may be tried.
Result<void> check_length(const model::Transformer& model, std::string_view option, std::int64_t tokens,
                          std::vector<std::string>& notes) {
  const std::int64_t longest = model.max_context;
  if (longest == 0 || tokens <= longest) return {};
  if (model.learned_positions > 0)
    return fail(std::string(option), fmt::format("{} has {} learned positions, not {}", model.id, longest, tokens),
                fmt::format("at most {}", longest));
  notes.push_back(fmt::format("{} {} exceeds the context of {} tokens of {}: use at most {} {} to stay within it",
                              option, tokens, longest, model.id, option, longest));
  return {};
}

/// Notes parts of a --recompute list that no layer of the model has. Whether there are collectives depends on the
/// strategy.
void note_absent_parts(TrainQuery& query) {
  using enum lower::ForwardPart;
  const std::optional<lower::Recompute>& asked = query.choices.recompute;
  const bool named = std::any_of(std::begin(lower::recompute_policies), std::end(lower::recompute_policies),
                                 [&](const lower::RecomputePolicy& policy) { return policy.parts == asked; });
  if (!asked || named) return;
  const model::Transformer& model = query.imported.model;
  lower::TrainingPlan plan;
  plan.work.queries = plan.work.keys = plan.work.source = query.sequence;
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.feed_forward) plan.work.sequences = std::max(plan.work.sequences, layer.feed_forward->experts);
  const auto [mesh, rules] = lower::training_stage({}, model);
  const program::Program program = lower::lower_training(model, mesh, rules, plan);
  lower::Recompute had = lower::Recompute::of({second_products, residual, reductions, exchanges});
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last && block.phase == program::Phase::forward; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      for (const int id : step.out)
        if (id >= 0) had.parts |= lower::parts_of(program, step, id, 0).parts;
    }
  if (const lower::Recompute absent = asked->without(had); absent != lower::Recompute::none())
    query.notes.push_back(
        fmt::format("--recompute {}: {} has no such part, so it is ignored", lower::name(absent), model.id));
}

/// The encoder's sequence. Batches and runs are counted in the decoder's tokens.
Result<void> read_source(const Request& request, TrainQuery& query) {
  const model::Transformer& model = query.imported.model;
  const auto text = request.value("encoder-seq");
  if (!text) {
    if (model.encoder)
      query.notes.push_back(
          fmt::format("--encoder-seq not given: {} tokens, as --seq; --batch counts decoder tokens", query.sequence));
    return {};
  }
  if (!model.encoder)
    return fail("--encoder-seq", fmt::format("{} has no encoder", model.id),
                "leave it out: --seq is the only sequence length");
  ASSAY_TRY(source, parse_count(*text, "--encoder-seq"));
  ASSAY_CHECK(check_length(model, "--encoder-seq", source, query.notes));
  query.question.setup.source = source;
  return {};
}

/// Low-rank adapters of a frozen model.
Result<void> read_adapters(const Request& request, model::Transformer& model, std::vector<std::string>& notes) {
  const auto text = request.value("lora");
  if (!text) {
    if (request.has("lora-on")) return fail("--lora-on", "--lora is missing", "e.g. --lora 16", Error::Kind::usage);
    return {};
  }
  model::Adapters adapters;
  ASSAY_TRY(rank, parse_count(*text, "--lora"));
  if (rank > model.d_model)
    return fail("--lora",
                fmt::format("rank {} is larger than d_model of {}, which is {}", rank, model.id, model.d_model),
                "8 to 64 are usual");
  if (model.encoder)
    return fail("--lora", fmt::format("{} has an encoder", model.id), "adapters are modelled for decoder-only models");
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.shared && layer.shared->attention_rank + layer.shared->feed_forward_rank > 0)
      return fail("--lora", fmt::format("{} already has adapters", model.id),
                  "they are trained with the other weights");
  adapters.rank = rank;
  const std::string on = request.value("lora-on").value_or("all");
  adapters.attention = on != "feed-forward";
  adapters.feed_forward = on != "attention";
  model.adapters = adapters;
  const model::ParameterCounts counts = model::parameter_counts(model);
  if (counts.trained == 0)
    return fail("--lora", fmt::format("{} has no matrices to adapt there", model.id),
                "attention, dense feed-forward blocks and shared experts can have adapters");
  notes.push_back(fmt::format("--lora {}: {} of {} parameters are trained, as adapters of {}; all others are frozen{}",
                              rank, human_count(counts.trained), human_count(counts.total),
                              on == "all" ? "attention and feed-forward" : on,
                              counts.of(model::Part::experts) > 0 ? ", including routed experts" : ""));
  return {};
}

/// Slots that every expert has, filled or not. What is dropped depends on the router, which no configuration tells.
Result<void> read_capacity(const Request& request, TrainQuery& query) {
  const auto text = request.value("capacity");
  if (!text) return {};
  if (!query.imported.model.has_experts())
    return fail("--capacity", fmt::format("{} has no experts", query.imported.model.id), "leave it out");
  const auto factor = parse_number(*text);
  if (!factor || !(*factor >= 1.0) || *factor > 1e6)
    return fail(
        "--capacity",
        fmt::format("{} is not a number of at least 1: with fewer slots than an even load, tokens are always dropped",
                    in_quotes(*text)),
        "1.25 is usual");
  ASSAY_CHECK(check_load(query.imported.model, *factor, "--capacity"));
  query.question.setup.expert_load = *factor;
  query.notes.push_back(fmt::format(
      "--capacity {}: experts compute and exchange that multiple of an even load; how many tokens are dropped "
      "depends on the router and is not modelled",
      human_number(*factor)));
  return {};
}

}  // namespace

Result<void> read_choices(const Request& request, const AssumedSoftware& software, search::TrainingChoices& choices) {
  ASSAY_CHECK(read_count(request, "dp", choices.data));
  ASSAY_CHECK(read_count(request, "fsdp", choices.fsdp));
  ASSAY_CHECK(read_count(request, "tp", choices.tensor));
  ASSAY_CHECK(read_count(request, "pp", choices.pipeline));
  ASSAY_CHECK(read_count(request, "cp", choices.context));
  ASSAY_CHECK(read_count(request, "ep", choices.expert));
  ASSAY_CHECK(read_count(request, "micro-batch", choices.micro_batch));
  ASSAY_CHECK(read_count(request, "interleave", choices.interleave));
  ASSAY_CHECK(read_expert_axes(request, choices.expert_over));
  static constexpr Word<int> stages[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}};
  ASSAY_CHECK(read_word(request, "zero", stages, choices.zero));
  if (const auto text = request.value("schedule"))
    ASSAY_SET(choices.schedule, clock::parse_schedule(*text, "--schedule"));
  if (const auto text = request.value("recompute"); text && *text != "auto") {
    const std::string policy = kernel::recompute_meaning(software.recompute, *text).value_or(*text);
    ASSAY_SET(choices.recompute, lower::parse_recompute(policy, "--recompute"));
  }
  static constexpr Word<lower::ResidualScheme> residuals[] = {{"replicated", lower::ResidualScheme::replicated},
                                                              {"sequence", lower::ResidualScheme::sequence},
                                                              {"model", lower::ResidualScheme::model}};
  ASSAY_CHECK(read_word(request, "residual", residuals, choices.residual));
  if (request.has("sequence-parallel")) choices.residual = lower::ResidualScheme::sequence;
  static constexpr Word<lower::ContextScheme> schemes[] = {{"ring", lower::ContextScheme::gather},
                                                           {"all-to-all", lower::ContextScheme::exchange}};
  ASSAY_CHECK(read_word(request, "context-scheme", schemes, choices.context_scheme));
  ASSAY_CHECK(read_order(request, choices.layout));
  const std::string offload = request.value("offload").value_or("auto");
  choices.offloads.clear();
  for (const training::Offload way :
       {training::Offload::none, training::Offload::optimizer, training::Offload::activations, training::Offload::both})
    if (offload == "auto" || offload == training::name(way)) choices.offloads.push_back(way);
  return {};
}

namespace {

Result<TrainQuery> read_once(const Request& request, const Context& context, const hardware::Cluster& cluster) {
  TrainQuery query;
  ASSAY_TRY(imported, model::load_model(request.arguments().front(), context.catalogue, "MODEL",
                                        request.value("as").value_or("")));
  ASSAY_CHECK(lower::check_lowers(imported.model, "MODEL"));
  query.imported = imported;
  ASSAY_CHECK(read_adapters(request, query.imported.model, query.notes));
  query.cluster = cluster;
  query.notes.insert(query.notes.end(), cluster.notes.begin(), cluster.notes.end());
  query.question.chips = static_cast<double>(cluster.chips());
  const std::int64_t longest = query.imported.model.max_context;
  if (const auto text = request.value("seq")) {
    ASSAY_TRY(sequence, parse_count(*text, "--seq"));
    query.sequence = sequence;
    ASSAY_CHECK(check_length(query.imported.model, "--seq", sequence, query.notes));
  } else {
    constexpr std::int64_t usual = 8192;
    query.sequence = longest > 0 ? std::min(longest, usual) : usual;
    query.notes.push_back(fmt::format("--seq not given: {} tokens", query.sequence));
  }
  ASSAY_CHECK(read_source(request, query));
  const auto batch = request.value("batch");
  if (!batch)
    return fail("train", "--batch is missing", "tokens per step or sequences, e.g. --batch 4Mi or --batch 1024seq",
                Error::Kind::usage);
  ASSAY_TRY(sequences, parse_batch(*batch, query.sequence, query.notes));
  query.question.sequences = sequences;
  query.batch_tokens = sequences * static_cast<double>(query.sequence);
  if (const auto text = request.value("tokens")) {
    ASSAY_TRY(tokens, parse_count(*text, "--tokens"));
    query.tokens = static_cast<double>(tokens);
  }
  if (const auto text = request.value("top")) {
    ASSAY_TRY(top, parse_count(*text, "--top"));
    query.top = static_cast<std::size_t>(std::min<std::int64_t>(top, 100));
  }
  query.question.host = training::host_link(cluster);
  if (const auto text = request.value("expert-load")) {
    const auto load = parse_number(*text);
    if (!load || *load < 1.0)
      return fail("--expert-load", fmt::format("{} is not a number from 1 up", in_quotes(*text)), "1 is an even load");
    ASSAY_CHECK(check_load(query.imported.model, *load, "--expert-load"));
    query.question.setup.expert_load = *load;
  }
  ASSAY_CHECK(read_dispatch(request, query.imported.model, query.question.setup.dispatch));
  ASSAY_CHECK(read_capacity(request, query));
  ASSAY_CHECK(read_formats(request, query));
  ASSAY_CHECK(read_train_software(request, context, query));
  ASSAY_CHECK(read_memory_margin(request, query));
  ASSAY_CHECK(read_choices(request, query.software, query.choices));
  note_absent_parts(query);
  ASSAY_CHECK(check_host(request, query));
  ASSAY_CHECK(check_choices(query));
  ASSAY_CHECK(keep_to_software(query));
  return query;
}

}  // namespace

Result<TrainQuery> read_train_query(const Request& request, const Context& context, const hardware::Cluster& cluster) {
  ASSAY_TRY(query, read_once(request, context, cluster));
  if (query.refused.empty()) return query;
  // What the usual software cannot run, it does not run: another one does, of which nothing is known but what was best.
  ASSAY_TRY(open, read_once(request.with("software", "any"), context, cluster));
  open.refused_by = query.software.name;
  open.notes.insert(open.notes.end(), query.refused.begin(), query.refused.end());
  open.notes.emplace_back("the best that was measured on such chips is assumed instead (--software any)");
  return open;
}

}  // namespace assay::verbs::train
