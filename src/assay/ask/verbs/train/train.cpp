// assay train: how long a training step takes, what limits it, whether it fits, what it costs, and the best way to
// shard it.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/verbs/launched.h"
#include "assay/ask/verbs/prices.h"
#include "assay/ask/verbs/train/timeline_members.h"
#include "assay/ask/verbs/train/train.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/predict/clock/closed_forms.h"
#include "assay/predict/roofline/operation.h"
#include "assay/predict/search/training/nearest_fit.h"
#include "assay/predict/training/step_derivation.h"

namespace assay::verbs::train {
namespace {

Dtype measure_of(const TrainQuery& query) {
  return training::utilisation_format(query.cluster.chip, query.compute, query.question.setup.formats.activations);
}

/// "8 each", or "7, 14 x 8, 7".
std::string layers_text(const model::Transformer& model, const training::Strategy& s) {
  const clock::StageSplit split = training::stage_split(model, s);
  std::vector<std::string> words;
  std::int64_t before = -1, alike = 0;
  const auto say = [&] {
    if (alike > 0) words.push_back(alike > 1 ? fmt::format("{} x {}", alike, before) : fmt::format("{}", before));
  };
  for (const std::int16_t part : split.part_of) {
    std::int64_t layers = 0;
    for (const std::int16_t n : split.parts[static_cast<std::size_t>(part)].layers) layers += n;
    if (layers != before) {
      say();
      before = layers;
      alike = 0;
    }
    ++alike;
  }
  if (words.empty()) return fmt::format("{} each", before);
  say();
  return join(words, ", ");
}

report::Members strategy_members(const TrainQuery& query, const training::Strategy& s) {
  const lower::Parallelism& p = s.parallelism;
  report::Members out{{"dp", p.data},
                      {"fsdp", p.fsdp},
                      {"tp", p.tensor},
                      {"pp", p.pipeline},
                      {"cp", p.context},
                      {"ep", p.expert},
                      {"zero", static_cast<std::int64_t>(p.zero)},
                      {"micro_batch", s.micro_batch},
                      {"microbatches", training::microbatches(query.question, s)},
                      {"interleave", s.interleave},
                      {"schedule", p.pipeline > 1 ? clock::schedule_name(s.schedule) : std::string_view("none")},
                      {"recompute", lower::name(s.recompute)},
                      {"offload", training::name(s.offload)},
                      {"sequence_parallel", p.residual == lower::ResidualScheme::sequence && p.tensor > 1}};
  if (p.expert > 1) out.emplace_back("ep_over", lower::expert_axes_text(p));
  if (p.pipeline > 1) out.emplace_back("layers_by_stage", layers_text(query.imported.model, s));
  const program::Mesh mesh = training::whole_mesh(p, s.layout);
  out.emplace_back("mesh", program::mesh_text(mesh));
  if (query.cluster.chips() > 1 && !query.cluster.torus)
    out.emplace_back("placement", "the last mesh axis maps to adjacent ranks");
  else if (query.cluster.chips() > 1)
    if (const auto placement = training::whole_placement(p, s.layout, query.cluster))
      out.emplace_back("placement", collective::placement_text(*placement, mesh, query.cluster));
  return out;
}

/// Every stage at its peak.
Result<report::Items> stage_rows(const TrainQuery& query, const training::Strategy& strategy) {
  const clock::StageSplit split = training::stage_split(query.imported.model, strategy);
  ASSAY_TRY(microbatch, training::price_stages(query.question, query.sequence, query.cluster, strategy, split));
  return report::rows_of(training::stage_memory(microbatch, split, strategy), [&](const training::MemoryParts& m) {
    return report::Members{{"stage", m.stage},
                           {"parameters", m.weights},
                           {"gradients", m.gradients},
                           {"optimizer", m.master + m.moments},
                           {"activations", m.activations},
                           {"logits_and_loss", m.head},
                           {"buffers_and_workspace", m.buffers + m.workspace},
                           {"total", m.total()}};
  });
}

report::Members breakdown_members(const training::TrainingCost& cost) {
  const training::StepParts& part = cost.parts;
  report::Members members{{"compute", part.compute},
                          {"of_which_recompute", part.recompute},
                          {"of_which_uneven_stages", cost.uneven},
                          {"tensor_collectives", part.tensor},
                          {"context_collectives", part.context},
                          {"expert_collectives", part.expert},
                          {"weights_exposed", part.weights},
                          {"stage_handover", part.handover},
                          {"pipeline_bubble", part.bubble},
                          {"gradients_exposed", part.gradients},
                          {"update", part.update}};
  if (part.host > Seconds()) members.emplace_back("host_link_exposed", part.host);
  if (part.overhead > Seconds()) members.emplace_back("overhead", part.overhead);
  return members;
}

/// The option that makes one strategy of another that differs in one thing.
std::string change_text(const training::Strategy& from, const training::Strategy& to) {
  if (to.recompute != from.recompute) return fmt::format("--recompute {}", lower::name(to.recompute));
  if (to.parallelism.zero != from.parallelism.zero) return fmt::format("--zero {}", to.parallelism.zero);
  if (to.offload != from.offload) return fmt::format("--offload {}", training::name(to.offload));
  return fmt::format("--micro-batch {}", to.micro_batch);
}

/// The change of one thing that would fit, or lacks the least memory.
std::string nearest_fit_text(const TrainQuery& query, const training::Strategy& strategy) {
  const search::NearestFit nearest =
      search::nearest_fit(query.question, query.sequence, query.cluster, strategy, query.choices.rules);
  if (!nearest.change)
    return fmt::format("its weights, gradients and optimizer states take {}, which needs {} such chips",
                       report::short_quantity(nearest.states), nearest.chips);
  const search::NearestFit::Change& change = *nearest.change;
  std::string text =
      fmt::format("{} needs {}", change_text(strategy, change.strategy), report::short_quantity(change.on_chip));
  if (change.host_shortfall > Bytes(0))
    text += fmt::format(" and {} of host memory, {} more than the chip's share", report::short_quantity(change.on_host),
                        report::short_quantity(change.host_shortfall));
  else if (change.fits)
    text += ", which fits";
  return text;
}

Result<void> explain(const Request& request, const TrainQuery& query, const search::Candidate& best,
                     report::Response& response) {
  const Traced num{&response.ledger};
  const training::TrainingCost& cost = best.cost;
  const auto chips = num.given("chips", query.question.chips, query.cluster.text);
  const Dtype measure = measure_of(query);
  const auto peak =
      num.given(fmt::format("peak {}", name(measure)), *hardware::peak_rate(query.cluster.chip, measure, "--compute"));
  ASSAY_TRY(derived, training::derive_step(num, {query.question, query.sequence, query.cluster, best.strategy, cost}));
  const auto sequences = num.given("sequences", query.question.sequences, "--batch");
  const auto useful =
      num.named("training flops of a sequence", model::training_flops(num, *query.question.setup.model, query.sequence,
                                                                      query.question.setup.source_of(query.sequence)));
  const auto model = num.named("model flops per chip", sequences / chips * useful);
  const auto mfu = num.named("mfu", model / (derived.time * peak));
  const auto batch = num.given("batch", Tokens(query.batch_tokens), "--batch");
  const auto rate = num.named("tokens per second per chip", batch / derived.time / chips);
  const auto limit = num.named("limit of ideal hardware",
                               max(max(derived.ideal_compute, derived.ideal_memory), derived.ideal_network));
  response.derived = {derived.time.id, mfu.id, rate.id, limit.id, derived.memory.id};
  if (query.tokens) ASSAY_CHECK(explain_run(num, request, query, cost, derived.time, response.derived));
  return {};
}

void add_question(const TrainQuery& query, report::Members& out) {
  out.emplace_back("model", query.imported.model.id);
  out.emplace_back("cluster", query.cluster.text);
  out.emplace_back("chips", query.cluster.chips());
  add_software(query.software, out);
  out.emplace_back("batch", Tokens(query.batch_tokens));
  out.emplace_back("sequences", query.question.sequences);
  out.emplace_back("sequence_length", query.sequence);
  if (query.imported.model.adapters)
    out.emplace_back("trained_parameters", model::parameter_counts(query.imported.model).trained);
  if (query.imported.model.encoder)
    out.emplace_back("encoder_sequence_length", query.question.setup.source_of(query.sequence));
}

void add_rates(const training::Utilisation& reached, report::Members& out) {
  out.emplace_back("mfu", reached.mfu);
  out.emplace_back("hfu", reached.hfu);
  out.emplace_back("tokens_per_second", reached.rate);
  out.emplace_back("tokens_per_second_per_chip", reached.chip_rate);
  out.emplace_back("flops_per_second_per_chip", reached.useful);
}

/// Which tensor-parallel collectives overlap, where the request does not say.
void note_tensor_overlap(const Request& request, const TrainQuery& query, const training::Strategy& strategy,
                         std::vector<std::string>& notes) {
  const numbers::StepEffects& effects = query.question.setup.effects;
  if (strategy.parallelism.tensor == 1 || request.has("tensor-overlap")) return;
  if (effects.overlap.tensor == numbers::TensorOverlap::all)
    notes.emplace_back(
        "tensor-parallel collectives are split and overlap the matrix products that need them (--tensor-overlap all)");
  else if (effects.overlap.tensor == numbers::TensorOverlap::backward &&
           !(strategy.parallelism.pipeline > 1 && clock::splits_backward(strategy.schedule)))
    notes.emplace_back(
        "tensor-parallel collectives of the backward pass overlap the weight-gradient products (--tensor-overlap all)");
}

void note_offload(const Request& request, const TrainQuery& query, const search::Candidate& best,
                  std::vector<std::string>& notes) {
  if (best.strategy.offload == training::Offload::none || request.has("offload")) return;
  notes.push_back(fmt::format(
      "offload {} is fastest: each chip needs {} of host memory and a host link of {} each way; --offload none turns "
      "it off",
      training::name(best.strategy.offload), human(Bytes(best.cost.host_memory)),
      human(BytesPerSecond(query.question.host.rate))));
}

report::Items alternative_rows(const Request& request, const TrainQuery& query, const search::TrainingSearch& found) {
  report::Items rows;
  const training::TrainingCost& best = found.best.front().cost;
  for (std::size_t i = 1; i < found.best.size(); ++i) {
    const search::Candidate& other = found.best[i];
    report::Members row{{"strategy", strategy_text(other.strategy)},
                        {"step_time", other.cost.estimate},
                        {"slower_by", other.cost.estimate / best.estimate - 1.0},
                        {"why", why_slower(best, other.cost)}};
    add_plan(request, query, other, row);
    rows.emplace_back(std::move(row));
  }
  return rows;
}

/// Adds memory by stage and over the step, breakdown, run and thresholds.
Result<void> add_details(const Request& request, const TrainQuery& query, const search::Candidate& best,
                         const Result<SimulatedStep>& simulated, report::Response& response) {
  const training::TrainingCost& cost = best.cost;
  report::Members& out = response.results;
  if (best.strategy.parallelism.pipeline > 1) {
    ASSAY_TRY(rows, stage_rows(query, best.strategy));
    out.emplace_back("memory_by_stage", std::move(rows));
  }
  if (simulated) out.emplace_back("memory_over_the_step", memory_rows(*simulated));
  response.notes.emplace_back(cost.memory.head > Bytes()
                                  ? "peak memory occurs at the loss, when no layer workspace is in use"
                                  : "peak memory occurs in the backward pass of a layer, when no logits are held");
  note_tensor_overlap(request, query, best.strategy, response.notes);
  note_offload(request, query, best, response.notes);
  if (report::Members interval = memory_interval(query, cost.memory); !interval.empty())
    out.emplace_back("memory_interval", std::move(interval));
  out.emplace_back("breakdown", breakdown_members(cost));
  ASSAY_CHECK(report::put(out, "breakdown_by_kind", kind_rows(query, best.strategy)));
  out.emplace_back("bubble", cost.parts.bubble / cost.estimate);
  if (query.tokens) ASSAY_CHECK(add_run(request, query, cost, response));
  out.emplace_back("thresholds", threshold_members(query, best));
  return {};
}

/// Adds what --list, --timeline and --sensitivity ask for.
Result<void> add_requested(const Request& request, const Context& context, const SizedTraining& size,
                           const Result<SimulatedStep>& simulated, report::Response& response) {
  const TrainQuery& query = size.query;
  const search::Candidate& best = *size.shown();
  report::Members& out = response.results;
  if (request.has("list")) {
    ASSAY_TRY(rows, program_rows(query, best.strategy));
    out.emplace_back("program_totals", program_totals(query, best.strategy));
    out.emplace_back("program", std::move(rows));
    response.table_key = "program";
  }
  if (const auto file = request.value("timeline")) {
    if (!simulated) return tl::unexpected(simulated.error());
    ASSAY_TRY(timeline, step_timeline(query, best, *simulated));
    if (file->empty())
      out.emplace_back("timeline", timeline_members(timeline));
    else
      response.files.emplace_back(*file, draw::chrome_trace_json(timeline));
  }
  if (request.has("improve")) {
    ASSAY_CHECK(report::put(out, "changes", change_rows(request, context.catalogue, query, best, size.fits())));
    response.table_key = "changes";
  }
  if (size.fits() && request.has("sensitivity")) {
    ASSAY_CHECK(add_sensitivity(request, context, size, response));
    response.table_key = "sensitivity";
  }
  return {};
}

/// What the search did not try or did differently, and what MFU and HFU count.
void add_search_notes(const Request& request, const TrainQuery& query, const training::Strategy& strategy,
                      std::vector<std::string>& notes) {
  add_idle_notes(request, query, strategy, notes);
  const lower::Parallelism& p = strategy.parallelism;
  if (!query.cluster.torus && !query.choices.layout &&
      training::axis_order(p, strategy.layout) != training::axis_order(p, {}))
    notes.emplace_back(
        "the fastest order of mesh axes is not the usual one; --order pp,dp,fsdp,ep,cp,tp selects the usual order");
  if (const std::int64_t most = search::largest_microbatch(query.sequence);
      !query.choices.micro_batch && strategy.micro_batch == most &&
      training::microbatches(query.question, strategy) > 1.0)
    notes.push_back(fmt::format("microbatches of more than {} sequences are not searched; set one with --micro-batch",
                                human_count(most)));
  notes.push_back(
      fmt::format("MFU counts three forward passes{} and only unmasked attention; HFU counts executed FLOP, including "
                  "recomputation",
                  query.imported.model.adapters ? " (two for products with frozen weights)" : ""));
}

/// What padding the vocabulary would save, where rows of logits are so odd that libraries fall back to slow kernels.
void add_padding_note(const TrainQuery& query, const training::Strategy& strategy, std::vector<std::string>& notes) {
  training::TrainingQuestion question = query.question;
  const Bytes element = storage(query.compute, 1.0);
  const auto vocabulary = static_cast<double>(query.imported.model.vocabulary);
  const double padded = kernel::padded_row(vocabulary, element);
  if (question.setup.rates.pads_vocabulary || padded == vocabulary) return;
  const auto now = training::price_strategy(question, query.sequence, query.cluster, strategy);
  question.setup.rates.pads_vocabulary = true;
  const auto then = training::price_strategy(question, query.sequence, query.cluster, strategy);
  constexpr double noticeable = 0.001;
  if (!now || !then || !(then->estimate < (1.0 - noticeable) * now->estimate)) return;
  notes.push_back(fmt::format(
      "a vocabulary of {} runs on slow kernels: padded to {} (--padded-vocabulary), a step takes {} less, {:.1f} %",
      human_count(query.imported.model.vocabulary), human_count(static_cast<std::int64_t>(padded)),
      human(Seconds(now->estimate - then->estimate)), 100.0 * (1.0 - then->estimate / now->estimate)));
}

/// The headline where the strategy does not fit: what is missing, and the nearest change that would fit.
std::string too_large_text(const TrainQuery& query, const search::Candidate& best) {
  const training::TrainingCost& cost = best.cost;
  const Bytes capacity = query.cluster.chip.hbm().capacity.value;
  const Bytes short_by = cost.memory.total() - capacity;
  const Bytes short_on_host = cost.host_memory - query.question.host.capacity;
  std::string shortfall;
  if (short_by > Bytes())
    shortfall = fmt::format("{} per chip, {} more than it has", report::short_quantity(cost.memory.total()),
                            report::short_quantity(short_by));
  if (short_on_host > Bytes())
    shortfall += fmt::format("{}{} of host memory per chip, {} more than its share", shortfall.empty() ? "" : ", and ",
                             report::short_quantity(Bytes(cost.host_memory)), report::short_quantity(short_on_host));
  return fmt::format("does not fit: {} with {} needs {}; {}", query.imported.model.id, strategy_text(best.strategy),
                     shortfall, nearest_fit_text(query, best.strategy));
}

}  // namespace

Result<report::Response> answer(const Request& given, const Context& context) {
  Request request = given;
  std::vector<std::string> launch_notes;
  ASSAY_TRY(sizes, sizes_to_run(request, context, launch_notes));
  const TrainQuery& query = sizes.best().query;
  const search::TrainingSearch& found = sizes.best().found;
  const bool fits = sizes.best().fits();
  const search::Candidate& best = *sizes.best().shown();
  const training::TrainingCost& cost = best.cost;
  report::Response response;
  response.notes = query.imported.notes;
  response.notes.insert(response.notes.end(), launch_notes.begin(), launch_notes.end());
  response.notes.insert(response.notes.end(), query.notes.begin(), query.notes.end());
  response.important = query.cluster.notes;
  const Dtype measure = measure_of(query);
  ASSAY_TRY(peak, hardware::peak_rate(query.cluster.chip, measure, "--compute"));
  if (measure != query.compute)
    response.notes.push_back(fmt::format("{} multiplies {} faster than {}: utilisation is relative to the {} peak",
                                         query.cluster.chip.id, name(measure), name(query.compute), name(measure)));
  report::Members& out = response.results;
  add_question(query, out);
  out.emplace_back("strategy", strategy_members(query, best.strategy));
  out.emplace_back("step_time", time_range(query, cost.lower, cost.estimate, cost.upper));
  out.emplace_back("limiter", fits ? training::limiter_of(cost) : std::string_view("memory capacity"));
  out.emplace_back("limits", limit_rows(cost));
  const training::Utilisation reached = training::utilisation(query.question, query.sequence, cost, peak.value);
  add_rates(reached, out);
  out.emplace_back("memory", memory_members(query, cost));
  const Result<SimulatedStep> simulated = simulated_step(query, best, request.picture() || request.has("timeline"));
  ASSAY_CHECK(add_details(request, query, best, simulated, response));
  out.emplace_back("alternatives", fits ? alternative_rows(request, query, found) : report::Items());
  out.emplace_back("search", report::Members{{"considered", found.count.considered},
                                             {"evaluated", found.count.evaluated},
                                             {"feasible", found.count.feasible}});
  ASSAY_CHECK(add_requested(request, context, sizes.best(), simulated, response));
  if (sizes.several || request.has("tokens")) {
    std::vector<const hardware::Chip*> chips;
    for (const SizedTraining& size : sizes.all) chips.push_back(&size.query.cluster.chip);
    add_prices(chips, "cost", response);
  }
  if (sizes.several) add_sizes(request, sizes, response);
  if (request.picture() && !response.picture)
    response.picture = sizes.several ? sizes_picture(sizes) : training_picture(query, best, simulated);
  if (request.explain()) ASSAY_CHECK(explain(request, query, best, response));
  add_search_notes(request, query, best.strategy, response.notes);
  add_padding_note(query, best.strategy, response.notes);
  if (fits) {
    response.headline =
        fmt::format("{} per step, {:.1f} % MFU, {} with {}{}", human(cost.estimate), 100.0 * reached.mfu,
                    verdict_text(query, cost), strategy_text(best.strategy),
                    query.refused_by.empty() ? "" : fmt::format(", which {} cannot run", query.refused_by));
  } else {
    response.outcome = report::Outcome::infeasible;
    response.headline = too_large_text(query, best);
    if (!context.within && !sizes.several) out.emplace_back("ways_out", ways_out(request, context, query));
  }
  if (fits && !context.within && !sizes.several)
    if (auto fewer = fewer_chips(request, context, sizes.best())) out.emplace_back("fewer_chips", std::move(*fewer));
  if (request.has("improve")) ASSAY_CHECK(add_open_space(sizes.best(), response));
  if (sizes.several || !sizes.best().meets) say_choice(sizes, response);
  if (request.has("emit") && fits) ASSAY_CHECK(add_launch(request, context, sizes.best(), launch_notes, response));
  response.screen = train_screen(request, response, strategy_text(best.strategy));
  return response;
}

}  // namespace assay::verbs::train
