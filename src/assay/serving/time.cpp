// The time of one serving step, from its profile: a straight line for each kernel, priced at the batch.
#include <algorithm>
#include <cmath>

#include "assay/serving/profile.h"

namespace assay::serving {
namespace {

/// Sequences that each kind of work sees in one step, as many on every device as on the fullest.
struct StepSizes {
  double tokens = 1;     ///< products, norms and collectives, in steps of the profile's queries
  double attention = 1;  ///< sequences whose caches are read
  double heads = 1;      ///< sequences that get a next token
};

/// Sequences of a step whose caches are read; the fullest of the devices that share them has a whole number.
double attended(const ServingStrategy& strategy, const ServingProfile& profile, double batch) {
  const double whole = profile.unit * std::ceil(batch / profile.unit);
  return std::max(profile.unit, whole / static_cast<double>(strategy.pipeline));
}

void add_kernel(const ServingSetup& setup, const ServedKernel& kernel, double sequences, double touched, double layers,
                ServingTime& time) {
  const estimate::KernelRates& rates = setup.rates;
  const double flops = kernel.flops(sequences), n = layers * kernel.count;
  const double arithmetic = flops * kernel.seconds_per_flop;
  const double bytes = kernel.bytes(sequences) + kernel.expert_bytes * touched;
  const double traffic = bytes / rates.hbm.value();
  time.flops += n * flops;
  if (kernel.attends) {
    time.attention_flops += n * flops;
    time.attention_bytes += n * bytes;
  }
  // Ideal kernels fuse what is element-wise; weights are read as they are stored, whatever they are cast to.
  double roofline = (kernel.narrowed + kernel.narrowed_experts * touched) / rates.hbm.value();
  time.memory += n * roofline;
  if (arithmetic > 0.0) {
    roofline += std::max(arithmetic, traffic);
    time.compute += n * arithmetic;
    time.memory += n * traffic;
  }
  time.rooflines += n * roofline;
  // Software may make kernels faster than those measured alone, but never faster than the chip.
  const estimate::ServingKernels kernels{rates, setup.effects, &setup.effect_sources};
  time.estimate +=
      n * std::max(roofline, served_estimate(kernels, kernel, {sequences, touched, arithmetic, bytes}).value());
  time.kernels += n * kernel.started(setup.effects);
}

/// The estimate of one collective; small all-reduces are done in one shot where the software can.
double collective_seconds(const estimate::ServingEffects& effects, const training::StageLinks& links,
                          const ServedCollective& collective, double bytes) {
  const std::size_t kind = training::StageLinks::line_of(collective.kind);
  const auto& forms = links.forms[collective.over];
  double usual = forms[kind].seconds(bytes, 1.0);
  if (links.ways(collective.over) <= 1.0) return usual;
  if (collective.kind == program::Collective::all_reduce)  // which may be a scatter and a gather, too
    usual =
        std::min(usual, forms[training::StageLinks::line_of(program::Collective::reduce_scatter)].seconds(bytes, 1.0) +
                            forms[training::StageLinks::line_of(program::Collective::all_gather)].seconds(bytes, 1.0));
  if (collective.kind != program::Collective::all_reduce || effects.one_shot == Seconds(0))
    return usual + effects.meet.value();
  // Every device reads the whole arrays of all others: n / 2 times what a ring moves.
  const double all = links.lines[collective.over][kind].rate.value() * bytes * links.ways(collective.over) / 2.0;
  return std::min(usual, effects.one_shot.value() + all / links.network_share) + effects.meet.value();
}

void add_blocks(const ServingSetup& setup, const ServingProfile& profile, const training::StageLinks& links,
                const StepSizes& sizes, ServingTime& time) {
  for (const ServingProfile::Block& block : profile.blocks) {
    const double sequences = block.last_tokens ? sizes.heads : sizes.tokens;
    const double touched = block.touched(sequences);
    for (const ServedKernel& kernel : block.kernels)
      add_kernel(setup, kernel, kernel.attends ? sizes.attention : sequences, touched, block.layers, time);
    for (const ServedCollective& collective : block.collectives) {
      const network::CollectiveLine& line =
          links.lines[collective.over][training::StageLinks::line_of(collective.kind)];
      const double ideal = line.rate.value() * collective.bytes(sequences);
      const double n = block.layers * collective.count;
      time.network += n * std::max(ideal, line.floor.value());
      time.estimate += n * collective_seconds(setup.effects, links, collective, collective.bytes(sequences));
      time.kernels += n;
    }
  }
}

/// What all steps of one server share.
struct Server {
  const ServingSetup& setup;
  const ServingStrategy& strategy;
  const training::StageLinks& links;
};

/// Adds hops between stages and the time of the host.
void finish(const Server& server, const ServingProfile& profile, double sequences, double heads, bool decodes,
            ServingTime& time) {
  const auto& [setup, strategy, links] = server;
  const auto stages = static_cast<double>(strategy.pipeline);
  const double bytes = profile.boundary * sequences;
  const double hop = strategy.pipeline > 1
                         ? (stages - 1.0) * (bytes * links.between_stages.rate.value() / links.network_share +
                                             links.between_stages.floor.value())
                         : 0.0;
  // Batches that follow each other through the stages run at the pace of the longest stage.
  time.lower = profile.uneven * std::max({time.compute, time.memory, time.network});
  time.estimate = profile.uneven * time.estimate + hop;
  // The host launches every kernel: short ones wait for it. Steps with a constant number of tokens are replayed from
  // graphs.
  if (!(setup.effects.captured && decodes))
    time.estimate = std::max(time.estimate, time.kernels * setup.effects.launch.value());
  time.estimate += (decodes ? setup.effects.step : setup.effects.first).value() +
                   heads / static_cast<double>(strategy.data) * stages * setup.effects.sequence.value();
  time.upper = profile.uneven * (time.compute + time.memory + time.network) + hop;
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
  const double sequences = step_sequences(strategy, batch);
  ServingTime time;
  add_blocks(setup, profile, links, {sequences, attended(strategy, profile, batch), sequences}, time);
  finish({setup, strategy, links}, profile, sequences, sequences, !profile.prompts, time);
  return time;
}

ServingTime verify_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                        const training::StageLinks& links, double batch) {
  const double sequences = step_sequences(strategy, batch);
  ServingTime time;
  add_blocks(setup, profile, links, {sequences, attended(strategy, profile, batch), sequences * profile.queries}, time);
  finish({setup, strategy, links}, profile, sequences, sequences, true, time);
  return time;
}

ServingTime mixed_time(const ServingSetup& setup, const ServingStrategy& strategy, const training::StageLinks& links,
                       const MixedStep& step) {
  const auto stages = static_cast<double>(strategy.pipeline), data = static_cast<double>(strategy.data);
  const double sequences = step_sequences(strategy, step.batch);
  const double joined = data * step.prompts * step.prompt.queries / stages;
  ServingTime time;
  add_blocks(setup, step.decode, links,
             {sequences + joined, attended(strategy, step.decode, step.batch), sequences + data * step.ended / stages},
             time);
  for (const ServingProfile::Block& block : step.prompt.blocks)
    for (const ServedKernel& kernel : block.kernels)
      if (kernel.attends) add_kernel(setup, kernel, step.prompts * step.prompt.unit, 1.0, block.layers / stages, time);
  finish({setup, strategy, links}, step.decode, sequences + joined, sequences, true, time);
  return time;
}

}  // namespace assay::serving
