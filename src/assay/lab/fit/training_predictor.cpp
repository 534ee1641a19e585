#include "assay/lab/fit/training_predictor.h"

namespace assay::validate {

bool is_possible(const TrainingRow& row, const training::TrainingCost& cost) {
  return !row.measured || *row.measured >= cost.lower;
}

Bytes peak_memory(const training::MemoryParts& memory, MemoryView view) {
  return view == MemoryView::allocated  ? memory.allocated()
         : view == MemoryView::reserved ? memory.reserved()
                                        : memory.total();
}

Result<TrainingPredictor> TrainingPredictor::make(const hardware::Catalogue& catalogue) {
  TrainingPredictor predictor(catalogue);
  ASSAY_TRY(steps, numbers::steps_of(catalogue));
  predictor.steps = std::move(steps);
  ASSAY_TRY(clock, numbers::power_clock_of(catalogue));
  predictor.clock_ = clock;
  return predictor;
}

Result<const Place*> TrainingPredictor::place(const TrainingRow& row) {
  return places_.find(row.cluster, row.changes, row.id);
}

const hardware::Cluster* TrainingPredictor::cluster(const TrainingRow& row) {
  const auto known = place(row);
  return known ? &(*known)->cluster : nullptr;
}

const numbers::Family* TrainingPredictor::family(const TrainingRow& row) {
  const hardware::Cluster* on = cluster(row);
  return on ? steps.family(on->chip) : nullptr;
}

Result<training::TrainingCost> TrainingPredictor::operator()(const TrainingRow& row) {
  if (row.states_recompute) return priced(row, row.strategy.recompute);
  ASSAY_TRY(best, chosen(row));
  return best.second;
}

Result<lower::Recompute> TrainingPredictor::recompute(const TrainingRow& row) {
  if (row.states_recompute) return row.strategy.recompute;
  ASSAY_TRY(best, chosen(row));
  return best.first;
}

/// As the search decides: the fastest policy that fits in memory, or if none does, the one that needs least.
Result<TrainingPredictor::Chosen> TrainingPredictor::chosen(const TrainingRow& row) {
  ASSAY_TRY(known, place(row));
  const Bytes room = known->cluster.chip.hbm().capacity.value;
  std::optional<Chosen> best;
  const auto better = [&](const training::TrainingCost& a, const training::TrainingCost& b) {
    const bool fits = a.memory.total() <= room;
    if (fits != (b.memory.total() <= room)) return fits;
    return fits ? a.estimate < b.estimate : a.memory.total() < b.memory.total();
  };
  for (const lower::RecomputePolicy& policy : lower::recompute_policies) {
    ASSAY_TRY(cost, priced(row, policy.parts));
    if (!best || better(cost, best->second)) best = Chosen{policy.parts, cost};
  }
  return *best;
}

Result<training::TrainingCost> TrainingPredictor::priced(const TrainingRow& row, lower::Recompute policy) {
  ASSAY_TRY(known, place(row));
  ASSAY_CHECK(lower::check_parallelism(row.strategy.parallelism, row.model));
  const hardware::Calibration* calibration = known->calibration ? &known->calibration->values : nullptr;
  training::TrainingQuestion question;
  training::TrainingSetup& setup = question.setup;
  setup.model = &row.model;
  setup.flash = row.software.flash;
  setup.formats.compute = row.compute;
  if (row.model.adapters) setup.formats.freeze();
  setup.formats.gradients = row.gradients;
  setup.optimizer.cast_when_gathered = row.software.shared_master;
  setup.dropout = row.software.dropout;
  if (row.software.copies_per_expert) setup.dispatch = training::Dispatch::per_expert;
  if (row.small_states) {
    setup.optimizer.master = false;
    setup.optimizer.first_moment = setup.optimizer.second_moment = Dtype::bf16;
  }
  ASSAY_TRY(rates, kernel::kernel_rates(known->cluster.chip, row.compute, row.id, calibration,
                                        {row.software.attention, false, row.software.pads_vocabulary}));
  setup.rates = rates;
  setup.effects = steps.effects(known->cluster.chip, row.software.step);
  if (const auto& whole = known->cluster.chip.power; row.power && whole)
    setup.effects.product.value *= clock_.slowdown(*row.power / whole->chip.value);
  question.sequences = row.sequences;
  question.overlap = row.software.overlap;
  question.chips = static_cast<double>(known->cluster.chips());
  if (calibration) question.collectives = calibration->collective;
  training::Strategy strategy = row.strategy;
  strategy.recompute = policy;
  return training::price_strategy(question, row.sequence, known->cluster, strategy);
}

}  // namespace assay::validate
