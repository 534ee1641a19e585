// The time of one serving step, from its profile: a straight line for each kernel, priced at the batch. One formula
// prices, lists and derives it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/predict/serving/step_prices.h"
#include "assay/predict/serving/step_totals.h"

namespace assay::serving {
namespace {

/// Sequences of a step whose caches are read; the fullest of the devices that share them has a whole number.
double attended(const ServingStrategy& strategy, const ServingProfile& profile, double batch) {
  const double whole = profile.unit * std::ceil(batch / profile.unit);
  return std::max(profile.unit, whole / static_cast<double>(strategy.pipeline));
}

/// What all steps of one server share. Links are derived if numbers are traced.
template <class N>
struct Server {
  const ServingSetup& setup;
  const ServingStrategy& strategy;
  const training::LinksOf<N>& links;
};

/// A lower bound of collective_time(): no pipeline has to be filled.
Seconds least_time(const collective::CollectiveForm<Plain>& form, Bytes bytes) {
  Seconds least = form.latency + form.per_byte * bytes;
  for (std::size_t i = 0; i < form.quicker_ways; ++i)
    least = std::min(least, form.quicker[i].latency + form.quicker[i].per_byte * bytes);
  return least;
}

/// The estimate of one collective; small all-reduces are done in one shot where the software can.
template <class N>
NumberOf<N, Seconds> collective_seconds(const N& num, const Server<N>& server, const ServedCollective& collective,
                                        Bytes size) {
  const auto& [setup, strategy, links] = server;
  const numbers::ServingEffects& effects = setup.effects;
  const auto bytes = num.given("bytes", size, "the whole array at this batch");
  const auto& on = links;  // clang 14 does not let lambdas capture a structured binding
  const auto by = [&](program::Collective kind) {
    const auto time = collective::collective_time(num, on.form(collective.over, kind), bytes);
    if constexpr (N::traced)
      return num.named(fmt::format("{} over {} chips", program::name(kind), on.ways(collective.over)), time);
    else
      return time;
  };
  auto usual = by(collective.kind);
  const double ways = links.ways(collective.over);
  if (ways <= 1.0) return usual;
  const auto split_pays = [&] {  // no form is faster than its least time
    if constexpr (N::traced)
      return true;
    else
      return least_time(on.form(collective.over, program::Collective::reduce_scatter), size) +
                 least_time(on.form(collective.over, program::Collective::all_gather), size) <
             usual;
  };
  if (collective.kind == program::Collective::all_reduce && split_pays())
    usual = min(usual, by(program::Collective::reduce_scatter) + by(program::Collective::all_gather));
  const auto meet = num.given("waiting for each other", effects.meet);
  if (collective.kind != program::Collective::all_reduce || effects.one_shot == Seconds(0)) return usual + meet;
  const auto gathered = links.reached(links.ideal_per_byte(collective.over, program::Collective::all_gather) * bytes);
  return min(usual, collective::one_shot_time(num, effects.one_shot, gathered, ways)) + meet;
}

template <class N>
void add_collective(const N& num, const Server<N>& server, const ServedCollective& collective, double sequences,
                    LayerTotals<N>& layer) {
  const Bytes bytes = collective.bytes(sequences);
  const double n = layer.layers * collective.count;
  std::optional<Origins> origins;
  if constexpr (N::traced)
    if (collective.origin)
      origins.emplace(num).add("bytes",
                               (*collective.origin)(num.given("sequences", sequences, "of a step, over all replicas")));
  auto seconds = collective_seconds(num, server, collective, bytes);
  if constexpr (N::traced) {
    seconds = num.named(program::name(collective.kind), seconds);
  } else {
    const collective::CollectiveLine& line =
        server.links.lines[collective.over][training::StageLinks::line_of(collective.kind)];
    const Seconds ideal = std::max(line.rate * bytes, line.floor);
    layer.step.time.network += n * ideal;
    if (layer.step.list)
      layer.step.list->push_back({layer.block.text(), layer.layers, collective.count,
                                  std::string(program::name(collective.kind)), collective.over, Flops(), bytes,
                                  Seconds(), Seconds(), ideal, seconds, program::Op::collective});
  }
  layer.add(num, seconds, collective.count);
}

template <class N>
void launch_kernel(const N& num, const Server<N>& server, const ServedKernel& kernel, double layers,
                   StepTotals<N>& totals) {
  totals.launch(
      num, [&] { return kernel.text(); }, layers * kernel.count, kernel.started(server.setup.effects));
}

/// Prices a kernel from scratch.
template <class N>
auto priced(const N& num, const Server<N>& server, const ServedKernel& kernel) {
  return [&](const KernelLoad& load) {
    return served_estimate(num, {server.setup.rates, server.setup.effects}, kernel, load);
  };
}

/// The blocks of a step whose kernels are priced already, and what depends on links, for all layers at once: the first
/// of its totals.
void add_known_blocks(const Server<Plain>& server, const ServingProfile& profile, const StepSizes& sizes,
                      StepTotals<Plain>& totals) {
  totals.time = profile.prices->kernels(sizes);
  totals.estimate = totals.time.estimate;
  totals.kernels = profile.prices->launches();
  if (profile.blocks->empty()) return;
  LayerTotals<Plain> all{profile.blocks->front(), 1.0, totals};
  for (const auto& [collective, last_tokens] : profile.prices->collectives())
    add_collective(Plain{}, server, collective, last_tokens ? sizes.heads : sizes.tokens, all);
  all.finish(Plain{});
}

template <class N>
void add_blocks(const N& num, const Server<N>& server, const ServingProfile& profile, const StepSizes& sizes,
                StepTotals<N>& totals) {
  if constexpr (!N::traced)
    if (profile.prices && !totals.list) return add_known_blocks(server, profile, sizes, totals);
  for (const ServingProfile::Block& block : *profile.blocks) {
    const double sequences = block.last_tokens ? sizes.heads : sizes.tokens;
    const double touched = block.touched(sequences), fullest = block.fullest_of(touched);
    LayerTotals<N> layer{block, block.layers, totals};
    for (const ServedKernel& kernel : block.kernels) {
      launch_kernel(num, server, kernel, block.layers, totals);
      add_kernel(num, server.setup, kernel, kernel.attends ? sizes.attention : sequences, touched, fullest,
                 priced(num, server, kernel), layer);
    }
    for (const ServedCollective& collective : block.collectives) {
      totals.launch(
          num, [&] { return program::name(collective.kind); }, block.layers * collective.count, 1.0);
      add_collective(num, server, collective, sequences, layer);
    }
    layer.finish(num);
  }
}

/// The sequences at the end of a step.
struct StepEnd {
  double sequences = 1;  ///< sequences whose activations pass from stage to stage
  double heads = 1;      ///< sequences that the host gets a token of
  bool decodes = true;
};

/// Adds hops between stages and the time of the host.
template <class N>
NumberOf<N, Seconds> finish(const N& num, const Server<N>& server, const ServingProfile& profile, const StepEnd& end,
                            StepTotals<N>& totals) {
  const auto& [setup, strategy, links] = server;
  ServingTime& time = totals.time;
  time.kernels = plain(totals.kernels);
  const auto stages = static_cast<double>(strategy.pipeline);
  NumberOf<N, Seconds> hop{};
  if (strategy.pipeline > 1) {
    std::optional<Origins> origins;
    if constexpr (N::traced)
      if (profile.origin) origins.emplace(num).add("activations of a sequence", profile.origin->boundary);
    const auto& line = links.between_stages_form();
    const auto sent = num.given("activations of a sequence", profile.boundary, "sent on by a stage") *
                      num.given("sequences", end.sequences, "of a step, over all replicas");
    hop = num.named("between stages", num.times("sends", stages - 1.0, "from the first stage to the last",
                                                links.reached(sent * line.per_byte) + line.latency));
  }
  // Batches that follow each other through the stages run at the pace of the longest stage.
  time.lower = profile.uneven * std::max({time.compute, time.memory, time.network});
  time.upper = profile.uneven * (time.compute + time.memory + time.network) + plain(hop);
  auto estimate = num.named("kernels and collectives", totals.estimate);
  estimate = num.times("longest stage over the mean", profile.uneven, "layers of the stages", estimate) + hop;
  // The host launches every kernel: short ones wait for it. Steps with a constant number of tokens are replayed from
  // graphs.
  if (!(setup.effects.captured && end.decodes))
    estimate = max(estimate, num.named("launching", num.named("kernels of the step", totals.kernels) *
                                                        num.given("launch", setup.effects.launch)));
  const auto host = end.decodes ? num.given("host between steps", setup.effects.step)
                                : num.given("host before the first token", setup.effects.first);
  const double tokens = end.heads / static_cast<double>(strategy.data) * stages;
  const auto of_sequences = [&](std::string_view part, const Given<Seconds>& each) {
    return num.named(part, num.given("sequences", tokens, "of a step of one server") * num.given("each", each));
  };
  if (setup.effects.sampling > Seconds(0)) estimate = estimate + of_sequences("sampling", setup.effects.sampling);
  estimate = estimate + (host + of_sequences("host per sequence", setup.effects.sequence));
  if (!(setup.effects.beside > Seconds(0) && end.decodes)) return estimate;
  // A host that works ahead is hidden until it takes longer than the step.
  return max(num.named("device and what waits for it", estimate),
             of_sequences("host beside the step", setup.effects.beside));
}

ServingTime finished(const Server<Plain>& server, const ServingProfile& profile, const StepEnd& end,
                     StepTotals<Plain>& totals) {
  totals.time.estimate = finish(Plain{}, server, profile, end, totals);
  return totals.time;
}

/// A step of a batch, with a next token for each of `heads` times its sequences.
template <class N>
StepEnd add_step(const N& num, const Server<N>& server, const ServingProfile& profile, double batch, double heads,
                 StepTotals<N>& totals) {
  const double sequences = step_sequences(server.strategy, batch);
  const StepSizes sizes{sequences, attended(server.strategy, profile, batch), sequences * heads};
  add_blocks(num, server, profile, sizes.of_group(profile.groups), totals);
  return {sequences, sequences, !profile.prompts};
}

}  // namespace

double step_sequences(const ServingStrategy& strategy, double batch) {
  const bool gathered = strategy.scheme.weights == lower::WeightScheme::gathered;
  const auto replicas = static_cast<double>(strategy.data * (gathered ? strategy.second : 1));
  // Stages work on different parts of the batch at the same time.
  const double at_once = replicas * std::ceil(batch / replicas) / static_cast<double>(strategy.pipeline);
  return std::max(static_cast<double>(serving_unit(strategy)), at_once);
}

ServingTime serving_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                         const training::StageLinks& links, double batch) {
  const Server<Plain> server{setup, strategy, links};
  StepTotals<Plain> totals;
  const StepEnd end = add_step(Plain{}, server, profile, batch, 1.0, totals);
  return finished(server, profile, end, totals);
}

NumberOf<Traced, Seconds> derive_serving_time(const Traced& num, const ServingSetup& setup,
                                              const ServingStrategy& strategy, const ServingProfile& profile,
                                              const training::DerivedLinks& links, double batch) {
  const Server<Traced> server{setup, strategy, links};
  StepTotals<Traced> totals;
  const StepEnd end = add_step(num, server, profile, batch, 1.0, totals);
  return finish(num, server, profile, end, totals);
}

std::vector<PricedStep> list_serving_step(const ServingSetup& setup, const ServingStrategy& strategy,
                                          const ServingProfile& profile, const training::StageLinks& links,
                                          double batch) {
  std::vector<PricedStep> list;
  StepTotals<Plain> totals;
  totals.list = &list;
  add_step<Plain>(Plain{}, {setup, strategy, links}, profile, batch, 1.0, totals);
  return list;
}

ServingTime verify_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                        const training::StageLinks& links, double batch) {
  const Server<Plain> server{setup, strategy, links};
  StepTotals<Plain> totals;
  StepEnd end = add_step(Plain{}, server, profile, batch, profile.queries, totals);
  end.decodes = true;
  return finished(server, profile, end, totals);
}

namespace {

template <class N>
StepEnd add_mixed(const N& num, const Server<N>& server, const MixedStep& step, StepTotals<N>& totals) {
  const ServingStrategy& strategy = server.strategy;
  const auto stages = static_cast<double>(strategy.pipeline), data = static_cast<double>(strategy.data);
  const double sequences = step_sequences(strategy, step.batch);
  const double joined = data * step.prompts * step.prompt.queries / stages;
  const StepSizes sizes{sequences + joined, attended(strategy, step.decode, step.batch),
                        sequences + data * step.ended / stages};
  add_blocks(num, server, step.decode, sizes.of_group(step.decode.groups), totals);
  const double prompts = step.prompts * step.prompt.unit / step.prompt.groups;
  if constexpr (!N::traced)
    if (StepPrices* known = step.prompt.prices.get()) {
      const ServingTime& attention = known->kernels({0.0, prompts, 0.0});
      totals.time.add(attention, 1.0 / stages);
      totals.estimate += attention.estimate / stages;
      totals.kernels += known->attention_launches() / stages;
      return {sequences + joined, sequences, true};
    }
  for (const ServingProfile::Block& block : *step.prompt.blocks) {
    LayerTotals<N> layer{block, block.layers / stages, totals};
    for (const ServedKernel& kernel : block.kernels)
      if (kernel.attends) {
        launch_kernel(num, server, kernel, layer.layers, totals);
        add_kernel(num, server.setup, kernel, prompts, 1.0, 1.0, priced(num, server, kernel), layer);
      }
    layer.seconds = num.named("attention of prompts", layer.seconds);
    layer.finish(num);
  }
  return {sequences + joined, sequences, true};
}

}  // namespace

ServingTime mixed_time(const ServingSetup& setup, const ServingStrategy& strategy, const training::StageLinks& links,
                       const MixedStep& step) {
  const Server<Plain> server{setup, strategy, links};
  StepTotals<Plain> totals;
  const StepEnd end = add_mixed(Plain{}, server, step, totals);
  return finished(server, step.decode, end, totals);
}

NumberOf<Traced, Seconds> derive_mixed_time(const Traced& num, const ServingSetup& setup,
                                            const ServingStrategy& strategy, const training::DerivedLinks& links,
                                            const MixedStep& step) {
  const Server<Traced> server{setup, strategy, links};
  StepTotals<Traced> totals;
  const StepEnd end = add_mixed(num, server, step, totals);
  return finish(num, server, step.decode, end, totals);
}

}  // namespace assay::serving
