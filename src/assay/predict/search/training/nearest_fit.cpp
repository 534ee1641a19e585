#include "assay/predict/search/training/nearest_fit.h"

#include <algorithm>
#include <cmath>

#include "assay/model/accounting.h"

namespace assay::search {
namespace {

std::vector<training::Strategy> single_changes(const training::Strategy& strategy, bool has_host,
                                               const PlanRules& rules) {
  std::vector<training::Strategy> changes;
  const auto change = [&](auto&& edit) {
    training::Strategy s = strategy;
    edit(s);
    if (!(s == strategy)) changes.push_back(s);
  };
  change([](training::Strategy& s) { s.recompute = lower::Recompute::full(); });
  if (strategy.parallelism.data > 1 && PlanRules::has(rules.zeros_of(strategy.parallelism), 3))
    change([](training::Strategy& s) { s.parallelism.zero = 3; });
  if (has_host)
    for (const training::Offload offload :
         {training::Offload::both, training::Offload::optimizer, training::Offload::activations})
      if (PlanRules::has(rules.offloads, offload)) change([&](training::Strategy& s) { s.offload = offload; });
  change([](training::Strategy& s) { s.micro_batch = 1; });
  return changes;
}

Bytes state_bytes(const training::TrainingSetup& setup) {
  const model::ParameterCounts counts = model::parameter_counts(*setup.model);
  return static_cast<double>(counts.total) * storage(setup.formats.weights, 1.0) +
         static_cast<double>(counts.trained) * (storage(setup.formats.gradients, 1.0) + setup.optimizer.state_bytes());
}

}  // namespace

double chips_for_states(const training::TrainingSetup& setup, Bytes capacity) {
  return std::ceil(state_bytes(setup) / capacity);
}

NearestFit nearest_fit(const training::TrainingQuestion& question, std::int64_t sequence,
                       const hardware::Cluster& cluster, const training::Strategy& strategy, const PlanRules& rules) {
  NearestFit out;
  const Bytes capacity = cluster.chip.hbm().capacity.value;
  out.states = state_bytes(question.setup);
  out.chips = chips_for_states(question.setup, capacity);
  Bytes least(HUGE_VAL);
  for (const training::Strategy& changed : single_changes(strategy, question.host.capacity > Bytes(), rules)) {
    const auto cost = training::price_strategy(question, sequence, cluster, changed);
    if (!cost) continue;
    const Bytes on_chip = cost->memory.total(), on_host = cost->host_memory - question.host.capacity;
    const Bytes lacks = on_host > Bytes() ? std::max(Bytes(), on_chip - capacity) + on_host : on_chip - capacity;
    if (lacks >= least) continue;
    least = lacks;
    out.change = NearestFit::Change{changed, on_chip, cost->host_memory, std::max(Bytes(), on_host), lacks <= Bytes()};
  }
  if (least > Bytes() && out.chips > question.chips) out.change.reset();
  return out;
}

}  // namespace assay::search
