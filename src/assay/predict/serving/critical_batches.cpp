#include "assay/predict/serving/critical_batches.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::serving {
namespace {

/// How much longer arithmetic takes than memory; grows with the sequences once weights are shared enough.
struct Balance {
  const ServedKernel& kernel;
  BytesPerSecond hbm;
  const ServingProfile::Block& routing;  ///< the block whose experts it computes, if any
  double touched(double sequences) const { return routing.touched(sequences); }
  Bytes bytes(double sequences) const { return kernel.bytes(sequences) + kernel.expert_bytes * touched(sequences); }
  Seconds compute(double sequences) const { return kernel.flops(sequences) * kernel.time_per_flop; }
  bool computes(double sequences) const { return compute(sequences) >= bytes(sequences) / hbm; }
};

std::optional<double> critical_sequences(const Balance& balance, double unit) {
  constexpr double most = 1e7;
  if (!balance.computes(most * unit)) return std::nullopt;
  double low = 0.0, high = most * unit;
  while (high - low > 1e-6 * high) {
    const double middle = 0.5 * (low + high);
    (balance.computes(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

std::vector<StepBalance> step_balance(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t keys,
                                      double batch, std::int64_t source) {
  const model::Transformer& model = *setup.model;
  const auto [mesh, rules] = lower::serving_stage(strategy.parallelism(), strategy.scheme, model);
  const std::int64_t least = serving_unit(strategy) * whole_slots(model);
  const auto lowered = static_cast<double>(least), unit = static_cast<double>(serving_unit(strategy));
  lower::Workload work;
  work.queries = 1;
  work.cached = true;
  work.keys = keys - source;
  work.source = source > 0 ? source : model.encoder ? keys : 0;
  work.expert_load = setup.expert_load;
  work.sequences = least;
  const program::Program one = lower::lower_serving(model, mesh, rules, work, setup.formats);
  work.sequences = 2 * least;
  const program::Program two = lower::lower_serving(model, mesh, rules, work, setup.formats);
  const double sequences = step_sequences(strategy, batch);
  std::vector<StepBalance> out;
  for (std::size_t b = 0; b < one.blocks.size(); ++b) {
    const program::Block& block = one.blocks[b];
    const model::Layer* layer = block.kind >= 0 ? &model.decoder.kinds[static_cast<std::size_t>(block.kind)] : nullptr;
    ServingProfile::Block routing;
    const ServingProfile::Block dense;
    if (layer && layer->feed_forward && layer->feed_forward->experts > 0) {
      routing.experts = static_cast<double>(layer->feed_forward->experts);
      routing.per_token = static_cast<double>(layer->feed_forward->experts_per_token);
      routing.copies = one.ways(rules.at(program::TensorClass::dispatched, model::LogicalDim::capacity).set());
    }
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const program::Step& step = one.steps[at];
      if (program::is_collective(step.op) || step.flops.value() == 0.0) continue;
      const ServedKernel kernel = served_kernel(setup.rates, setup.effects, {one, step, routing.touched(lowered)},
                                                {two, two.steps[at], routing.touched(2.0 * lowered)}, lowered);
      const bool routed = kernel.expert_bytes > Bytes();
      const Balance balance{kernel, setup.rates.hbm, routed ? routing : dense};
      StepBalance row;
      row.block = b == 0 ? "embedding" : layer ? fmt::format("layer kind {}", b) : "head";
      row.what = kernel.attends ? "attention" : std::string(one.tensor(step.in[1]).name);
      row.layers = static_cast<double>(block.layers);
      row.flops = kernel.flops(sequences);
      row.bytes = balance.bytes(sequences);
      row.compute = balance.compute(sequences);
      row.memory = row.bytes / setup.rates.hbm;
      if (routed) {
        row.experts = routing.experts;
        row.touched = routing.experts * balance.touched(sequences);
      }
      if (const auto critical = critical_sequences(balance, unit))
        row.critical = *critical * static_cast<double>(strategy.pipeline);
      out.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace assay::serving
