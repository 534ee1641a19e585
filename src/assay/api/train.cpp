// assay train: how long a training step takes, what limits it, whether it fits, what it costs, and the best way to
// shard it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "assay/api/train_list.h"
#include "assay/api/train_query.h"
#include "assay/api/verbs.h"
#include "assay/base/text.h"
#include "assay/cost/operation.h"
#include "assay/model/accounting.h"

namespace assay {
namespace {

std::string strategy_text(const Strategy& s) {
  std::string text;
  const auto part = [&](std::string_view word, std::int64_t n) {
    if (n > 1) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word, n);
  };
  const Parallelism& p = s.parallelism;
  part("dp", p.data), part("fsdp", p.fsdp), part("tp", p.tensor), part("cp", p.context), part("ep", p.expert),
      part("pp", p.pipeline);
  if (text.empty()) text = "one chip";
  if (p.zero > 0) text += fmt::format(", zero {}", p.zero);
  if (p.residual == ResidualScheme::sequence && p.tensor > 1) text += ", sequence-parallel";
  text += fmt::format(", micro-batch {}", s.micro_batch);
  if (p.pipeline > 1) text += fmt::format(", {}", schedule_name(s.schedule));
  if (s.interleave > 1) text += fmt::format(" x{}", s.interleave);
  if (s.recompute != RecomputePolicy::none) text += fmt::format(", recompute {}", name(s.recompute));
  return text;
}

Members strategy_members(const TrainQuery& query, const Strategy& s) {
  const Parallelism& p = s.parallelism;
  Members out{{"dp", p.data},
              {"fsdp", p.fsdp},
              {"tp", p.tensor},
              {"pp", p.pipeline},
              {"cp", p.context},
              {"ep", p.expert},
              {"zero", static_cast<std::int64_t>(p.zero)},
              {"micro_batch", s.micro_batch},
              {"microbatches", microbatches(query.question, s)},
              {"interleave", s.interleave},
              {"schedule", p.pipeline > 1 ? schedule_name(s.schedule) : std::string_view("none")},
              {"recompute", name(s.recompute)},
              {"sequence_parallel", p.residual == ResidualScheme::sequence}};
  const Mesh mesh = whole_mesh(p, s.layout);
  out.emplace_back("mesh", mesh_text(mesh));
  if (query.cluster.chips() > 1 && !query.cluster.torus)
    out.emplace_back("placement", "the last axis of the mesh lies innermost");
  else if (query.cluster.chips() > 1)
    if (const auto placement = Placement::make(mesh, query.cluster, "strategy"))
      out.emplace_back("placement", placement_text(*placement, mesh, query.cluster));
  return out;
}

/// What the lower bound waits for.
std::string_view limiter_of(const TrainingCost& cost) {
  const double network = *std::max_element(cost.network.begin(), cost.network.end());
  if (network > cost.compute && network >= cost.memory_time) return "network";
  return cost.memory_time > cost.compute ? "memory" : "compute";
}

Members memory_members(const MemoryParts& m, Bytes capacity, bool fits) {
  return {{"parameters", Bytes(m.weights)},
          {"gradients", Bytes(m.gradients)},
          {"optimizer", Bytes(m.optimizer)},
          {"activations", Bytes(m.activations)},
          {"head", Bytes(m.head)},
          {"gathered_weights", Bytes(m.gathered)},
          {"workspace", Bytes(m.workspace)},
          {"total", Bytes(m.total())},
          {"capacity", capacity},
          {"fits", fits}};
}

Members breakdown_members(const StepParts& part) {
  Members members{{"compute", Seconds(part.compute)},
                  {"of_which_recompute", Seconds(part.recompute)},
                  {"tensor_collectives", Seconds(part.tensor)},
                  {"context_collectives", Seconds(part.context)},
                  {"expert_collectives", Seconds(part.expert)},
                  {"weights_exposed", Seconds(part.weights)},
                  {"stage_handover", Seconds(part.handover)},
                  {"pipeline_bubble", Seconds(part.bubble)},
                  {"gradients_exposed", Seconds(part.gradients)},
                  {"update", Seconds(part.update)}};
  if (part.overhead > 0.0) members.emplace_back("overhead", Seconds(part.overhead));
  return members;
}

/// What would change the limiter, from ideal rates.
Members threshold_members(const TrainQuery& query, const Candidate& best) {
  const TrainingCost& cost = best.cost;
  Members out;
  const auto of = [&](Role role) { return cost.network[static_cast<std::size_t>(role)]; };
  const double data = std::max(of(Role::replica), of(Role::fsdp)), tensor = of(Role::tensor);
  if (data > 0.0) {
    // Weights travel once a microbatch however large it is; arithmetic grows with it.
    out.emplace_back("compute_over_weights_traffic", cost.compute / data);
    out.emplace_back("batch_where_weights_traffic_limits", Tokens(query.batch_tokens * data / cost.compute));
  }
  if (tensor > 0.0) {
    out.emplace_back("compute_over_tensor_traffic", cost.compute / tensor);
    out.emplace_back("largest_tensor_parallelism",
                     static_cast<double>(best.strategy.parallelism.tensor) * cost.compute / tensor);
  }
  if (cost.memory_time > 0.0) out.emplace_back("compute_over_memory_traffic", cost.compute / cost.memory_time);
  out.emplace_back("memory_left", Bytes(query.cluster.chip.hbm().capacity.value.value() - cost.memory.total()));
  return out;
}

Result<void> add_run(const Request& request, const TrainQuery& query, const Candidate& best, Response& response) {
  Members& out = response.results;
  const Chip& chip = query.cluster.chip;
  const double steps = *query.tokens / query.batch_tokens;
  Seconds time(steps * best.cost.estimate);
  out.emplace_back("steps", std::ceil(steps));
  if (const auto text = request.value("mtbf")) {
    ASSAY_TRY(mtbf, parse_as<Seconds>(*text, "--mtbf"));
    ASSAY_TRY(restart, parse_as<Seconds>(request.value("restart").value_or("10min"), "--restart"));
    ASSAY_TRY(bandwidth, parse_as<BytesPerSecond>(request.value("checkpoint-bandwidth").value_or("100GB/s"),
                                                  "--checkpoint-bandwidth"));
    for (const auto& [option, taken] : {std::pair{"restart", "10min"}, std::pair{"checkpoint-bandwidth", "100GB/s"}})
      if (!request.has(option)) response.notes.push_back(fmt::format("--{} not given: {}", option, taken));
    // A checkpoint costs c, failures of the cluster come every f: the best interval is sqrt(2 c f) (Young 1974).
    const MemoryParts& m = best.cost.memory;
    const double state = (m.weights + m.optimizer) * query.question.chips;
    const double c = state / bandwidth.value(), f = mtbf.value() / query.question.chips;
    const double interval = std::sqrt(2.0 * c * f);
    const double lost = c / interval + (interval / 2.0 + restart.value()) / f;
    const double goodput = std::max(0.0, 1.0 - lost);
    out.emplace_back("goodput", Members{{"goodput", goodput},
                                        {"failures_every", Seconds(f)},
                                        {"checkpoint_bytes", Bytes(state)},
                                        {"checkpoint_time", Seconds(c)},
                                        {"checkpoint_interval", Seconds(interval)}});
    if (goodput <= 0.0) {
      response.notes.push_back("failures come faster than work can be redone: the run never ends");
      return {};
    }
    time = time / goodput;
  }
  out.emplace_back("training_time", range(Seconds(steps * best.cost.lower), time, Seconds(steps * best.cost.upper)));
  out.emplace_back("chip_hours", time.in(1_h) * query.question.chips);
  if (const Price* price = newest_price(chip)) {
    out.emplace_back("cost", time * price->value.value * query.question.chips);
    response.notes.push_back(fmt::format("cost at {} per chip ({}, {}, {})", human(price->value.value), price->provider,
                                         price->kind, price->date));
  }
  if (chip.power) {
    const Watts power = chip.power->system ? chip.power->system->value : chip.power->chip.value;
    out.emplace_back("energy", power * time * query.question.chips);
    response.notes.push_back(fmt::format("energy at {} per chip{}", human(power),
                                         chip.power->system ? ", its share of the system included" : ""));
  }
  return {};
}

/// The change of one thing that would fit, or needs the least memory.
std::string nearest_fit(const TrainQuery& query, const Strategy& strategy, double capacity) {
  const auto total = [&](const Strategy& changed) {
    const auto cost = price_strategy(query.question, query.sequence, query.cluster, changed);
    return cost ? cost->memory.total() : std::numeric_limits<double>::infinity();
  };
  std::vector<std::pair<std::string, Strategy>> changes;
  if (strategy.recompute != RecomputePolicy::full) {
    Strategy s = strategy;
    s.recompute = RecomputePolicy::full;
    changes.emplace_back("--recompute full", s);
  }
  if (strategy.parallelism.zero < 3 && strategy.parallelism.data > 1) {
    Strategy s = strategy;
    s.parallelism.zero = 3;
    changes.emplace_back("--zero 3", s);
  }
  if (strategy.micro_batch > 1) {
    Strategy s = strategy;
    s.micro_batch = 1;
    changes.emplace_back("--micro-batch 1", s);
  }
  // Weights, gradients and optimizer states of the whole model have to lie somewhere, however they are shared out.
  const ParameterCounts counts = parameter_counts(query.imported.model);
  const Formats& formats = query.question.setup.formats;
  const double states = static_cast<double>(counts.total) *
                        (storage(formats.weights, 1.0).value() + storage(formats.gradients, 1.0).value() +
                         query.question.setup.optimizer.state_bytes());
  std::string best = fmt::format("its weights, gradients and optimizer states take {}: {} such chips hold them",
                                 human(Bytes(states)), std::ceil(states / capacity));
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [text, changed] : changes) {
    const double bytes = total(changed);
    if (bytes < least) {
      least = bytes;
      best = fmt::format("{} needs {}{}", text, human(Bytes(bytes)), bytes <= capacity ? ", which fits" : "");
    }
  }
  return best;
}

void explain(const TrainQuery& query, const Candidate& best, Response& response) {
  const Traced num{&response.ledger};
  const TrainingCost& cost = best.cost;
  const auto chips = num.given("chips", query.question.chips, query.cluster.text);
  const auto peak = num.given(fmt::format("peak {}", name(query.compute)),
                              *peak_rate(query.cluster.chip, query.compute, "--compute"));
  const auto share = num.given("matrix share", query.cluster.chip.efficiency.matrix);
  const auto executed = num.given("executed flops per chip", Flops(cost.executed_flops), "steps of the program");
  const auto arithmetic = num.named("arithmetic at that share of the peak", executed / (share * peak));
  const auto compute = num.given("compute", Seconds(cost.parts.compute),
                                 "every step of the program: the larger of arithmetic and memory traffic");
  auto time = compute;
  const StepParts& p = cost.parts;
  const std::pair<const char*, double> waits[] = {{"tensor collectives", p.tensor},
                                                  {"context collectives", p.context},
                                                  {"expert collectives", p.expert},
                                                  {"exposed weights traffic", p.weights},
                                                  {"stage handover", p.handover},
                                                  {"pipeline bubble", p.bubble},
                                                  {"exposed gradients", p.gradients},
                                                  {"update", p.update},
                                                  {"overhead", p.overhead}};
  for (const auto& [word, seconds] : waits)
    if (seconds > 0.0) time = time + num.given(word, Seconds(seconds), "steps of the program on the cluster's links");
  const auto step = num.named("step time", time);
  const auto model = num.given("model flops per chip", Flops(cost.model_flops), "three times the forward pass");
  const auto mfu = num.named("mfu", model / (step * peak));
  const auto batch = num.given("batch", Tokens(query.batch_tokens), "--batch");
  const auto rate = num.named("tokens per second per chip", batch / step / chips);
  response.derived = {step.id, mfu.id, rate.id, arithmetic.id};
}

Result<Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(read, read_train_query(request, context));
  TrainQuery query = std::move(read);
  query.bind();
  const Bytes capacity = query.cluster.chip.hbm().capacity.value;
  const auto started = std::chrono::steady_clock::now();
  ASSAY_TRY(found, search_training(query.question, query.sequence, query.cluster, query.choices, capacity.value(),
                                   query.top + 1));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  Response response;
  response.notes = query.imported.notes;
  response.notes.insert(response.notes.end(), query.notes.begin(), query.notes.end());
  const bool fits = !found.best.empty();
  if (!fits && !found.closest)
    return fail("--batch",
                fmt::format("{} sequences cannot be split over {} chips as asked",
                            human_number(query.question.sequences), query.cluster.chips()),
                "a batch of at least one sequence per data-parallel group, and a multiple of their number; more "
                "--tp, --pp or --cp makes fewer groups");
  const Candidate& best = fits ? found.best.front() : *found.closest;
  const TrainingCost& cost = best.cost;
  ASSAY_TRY(peak, peak_rate(query.cluster.chip, query.compute, "--compute"));
  Members& out = response.results;
  out.emplace_back("model", query.imported.model.id);
  out.emplace_back("cluster", query.cluster.text);
  out.emplace_back("chips", query.cluster.chips());
  out.emplace_back("batch", Tokens(query.batch_tokens));
  out.emplace_back("sequences", query.question.sequences);
  out.emplace_back("sequence_length", query.sequence);
  out.emplace_back("strategy", strategy_members(query, best.strategy));
  out.emplace_back("step_time", range(Seconds(cost.lower), Seconds(cost.estimate), Seconds(cost.upper)));
  out.emplace_back("limiter", fits ? limiter_of(cost) : std::string_view("memory capacity"));
  out.emplace_back("mfu", cost.model_flops / cost.estimate / peak.value.value());
  out.emplace_back("hfu", cost.executed_flops / cost.estimate / peak.value.value());
  const TokensPerSecond rate = Tokens(query.batch_tokens) / Seconds(cost.estimate);
  out.emplace_back("tokens_per_second", rate);
  out.emplace_back("tokens_per_second_per_chip", rate / query.question.chips);
  out.emplace_back("flops_per_second_per_chip", Flops(cost.model_flops) / Seconds(cost.estimate));
  out.emplace_back("memory", memory_members(cost.memory, capacity, fits));
  out.emplace_back("breakdown", breakdown_members(cost.parts));
  out.emplace_back("bubble", cost.parts.bubble / cost.estimate);
  if (query.tokens) ASSAY_CHECK(add_run(request, query, best, response));
  out.emplace_back("thresholds", threshold_members(query, best));
  Items alternatives;
  for (std::size_t i = 1; i < found.best.size(); ++i) {
    const Candidate& other = found.best[i];
    alternatives.emplace_back(Members{{"strategy", strategy_text(other.strategy)},
                                      {"step_time", Seconds(other.cost.estimate)},
                                      {"slower_by", other.cost.estimate / cost.estimate - 1.0},
                                      {"why", why_slower(best.cost, other.cost)},
                                      {"memory", Bytes(other.cost.memory.total())}});
  }
  if (!alternatives.empty()) out.emplace_back("alternatives", std::move(alternatives));
  out.emplace_back("search", Members{{"considered", found.count.considered},
                                     {"evaluated", found.count.evaluated},
                                     {"feasible", found.count.feasible},
                                     {"seconds", Seconds(seconds)}});
  if (request.has("list")) {
    ASSAY_TRY(rows, program_rows(query, best.strategy));
    out.emplace_back("program", std::move(rows));
    response.table_key = "program";
  } else {
    response.table_key = "alternatives";
  }
  if (const auto file = request.value("timeline")) {
    ASSAY_TRY(trace, timeline_json(query, best));
    response.files.emplace_back(*file, trace);
  }
  if (request.picture()) response.picture = training_picture(query, best);
  if (request.explain()) explain(query, best, response);
  response.notes.push_back(
      "MFU counts three forward passes, causal attention as the mask leaves it; HFU counts what is "
      "executed, forward work done again included");
  if (fits) {
    response.headline =
        fmt::format("{} per step, {:.1f} % MFU with {}", human(Seconds(cost.estimate)),
                    100.0 * cost.model_flops / cost.estimate / peak.value.value(), strategy_text(best.strategy));
  } else {
    const double short_by = cost.memory.total() - capacity.value();
    response.outcome = Outcome::infeasible;
    response.headline =
        fmt::format("does not fit: {} with {} needs {} a chip, {} more than it has; {}", query.imported.model.id,
                    strategy_text(best.strategy), human(Bytes(cost.memory.total())), human(Bytes(short_by)),
                    nearest_fit(query, best.strategy, capacity.value()));
  }
  return response;
}

}  // namespace

VerbSpec train_verb() {
  std::vector<OptionSpec> options{on_option};
  for (const OptionSpec& option : train_options()) options.push_back(option);
  options.push_back(set_option);
  return {"train",
          "predict a training step and find the best way to run it",
          "MODEL is an id of the catalogue, a config.json or a directory. What the strategy flags leave open is "
          "searched: every combination is priced, and the fastest that fits into memory is shown.",
          {{"model", "id, config.json or directory", true}},
          options,
          {{"assay train llama-3-70b --on tpu-v5p:16x16x16 --batch 4Mi --seq 4096", "the best strategy"},
           {"assay train llama-3-70b --on h100-sxm:1024 --batch 1024seq --seq 8192 --tp 8 --pp 4 --tokens 15T",
            "time, cost and energy of a run"},
           {"assay train llama-3-8b --on tpu-v5e:4x4 --batch 64seq --seq 2048 --fsdp 16 --list", "the program"}},
          &answer,
          true};
}

}  // namespace assay
