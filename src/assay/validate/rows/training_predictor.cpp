// The prediction of `assay train` for a measured row.
#include <fmt/format.h>

#include "assay/validate/rows/training_rows.h"

namespace assay::validate {

bool is_possible(const TrainingRow& row, const training::TrainingCost& cost) {
  return !row.measured || row.measured->value() >= cost.lower;
}

double peak_bytes(const training::MemoryParts& memory, MemoryView view) {
  return view == MemoryView::allocated  ? memory.allocated().value()
         : view == MemoryView::reserved ? memory.reserved().value()
                                        : memory.total().value();
}

Result<TrainingPredictor> TrainingPredictor::make(const hardware::Catalogue& catalogue) {
  TrainingPredictor predictor(catalogue);
  ASSAY_TRY(steps, estimate::steps_of(catalogue));
  predictor.steps = std::move(steps);
  ASSAY_TRY(clock, estimate::power_clock_of(catalogue));
  predictor.clock_ = clock;
  return predictor;
}

Result<const Place*> TrainingPredictor::place(const TrainingRow& row) {
  return places_.find(row.cluster, changes(row), row.id);
}

std::vector<hardware::Override> TrainingPredictor::changes(const TrainingRow& row) const {
  std::vector<hardware::Override> all = row.changes;
  if (row.omni_path)
    all.push_back({std::string(network_key), fmt::format("{} B/s", (steps.omni_path * *row.omni_path).value())});
  return all;
}

const hardware::Cluster* TrainingPredictor::cluster(const TrainingRow& row) {
  const auto known = place(row);
  return known ? &(*known)->cluster : nullptr;
}

const estimate::Family* TrainingPredictor::family(const TrainingRow& row) {
  const hardware::Cluster* on = cluster(row);
  return on ? steps.family(on->chip) : nullptr;
}

const estimate::IntervalClass* TrainingPredictor::time_interval(const TrainingRow& row) {
  const hardware::Cluster* on = cluster(row);
  return on ? estimate::interval_of(steps.time_intervals,
                                    estimate::step_classes(steps.family(on->chip), *on, row.model))
            : nullptr;
}

const estimate::IntervalClass* TrainingPredictor::memory_interval(const TrainingRow& row) {
  const hardware::Cluster* on = cluster(row);
  return on ? estimate::interval_of(steps.memory_intervals, estimate::memory_classes(steps.family(on->chip), *on))
            : nullptr;
}

Result<training::TrainingCost> TrainingPredictor::operator()(const TrainingRow& row) {
  if (row.states_recompute) return priced(row, row.strategy.recompute);
  // A measured run did fit in memory; the margin covers what a row does not state (8-bit activations, offload).
  constexpr double margin = 1.3;
  ASSAY_TRY(known, place(row));
  const double room = margin * known->cluster.chip.hbm().capacity.value.value();
  for (const lower::Recompute policy : {lower::Recompute::none(), lower::Recompute::all_but_products(),
                                        lower::Recompute::feed_forward(), lower::Recompute::all_but_projections()}) {
    ASSAY_TRY(cost, priced(row, policy));
    if (cost.memory.allocated().value() <= room) return cost;
  }
  return priced(row, lower::Recompute::full());
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
  setup.formats.gradients = row.small_states ? Dtype::bf16 : Dtype::fp32;
  setup.optimizer.cast_when_gathered = row.software.shared_master;
  setup.dropout = row.software.dropout;
  if (row.small_states) {
    setup.optimizer.master = false;
    setup.optimizer.first_moment = setup.optimizer.second_moment = Dtype::bf16;
  }
  ASSAY_TRY(rates,
            estimate::kernel_rates(known->cluster.chip, row.compute, row.id, calibration, {row.software.attention}));
  setup.rates = rates;
  setup.effects = steps.effects(known->cluster.chip, row.software.step);
  if (const auto& whole = known->cluster.chip.power; row.power && whole)
    setup.effects.product *= clock_.slowdown(*row.power / whole->chip.value);
  question.sequences = row.sequences;
  question.overlap = row.software.overlap;
  question.chips = static_cast<double>(known->cluster.chips());
  if (calibration) question.collectives = calibration->collective;
  training::Strategy strategy = row.strategy;
  strategy.recompute = policy;
  return training::price_strategy(question, row.sequence, known->cluster, strategy);
}

}  // namespace assay::validate
