#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/interval_members.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/base/text.h"

namespace assay::verbs::train {
namespace {

Bytes capacity_of(const TrainQuery& query) { return query.cluster.chip.hbm().capacity.value; }

const numbers::IntervalClass* measured_peaks(const TrainQuery& query) {
  if (!query.steps) return nullptr;
  return numbers::interval_of(query.steps->memory_intervals,
                              numbers::memory_classes(query.steps->family(query.cluster.chip), query.cluster));
}

/// How far peaks are above their estimate: of such chips, or where none were measured, the most of any.
double spread_of_peaks(const TrainQuery& query) {
  if (const numbers::IntervalClass* found = measured_peaks(query)) return found->spread;
  double widest = 0.0;
  if (query.steps)
    for (const numbers::IntervalClass& one : query.steps->memory_intervals) widest = std::max(widest, one.spread);
  return widest;
}

/// Why a plan that fits by its estimate leaves too little free.
std::string why_tight(const TrainQuery& query, const training::TrainingCost& cost) {
  const Bytes capacity = capacity_of(query);
  if (query.margin.share)
    return fmt::format("{} of {} are in use, and --memory-margin {} leaves at most {}", human(cost.memory.total()),
                       human(capacity), query.margin.text, human(query.margin.budget));
  return fmt::format(
      "measured peaks are up to {:.1f} % above their estimate: {}, and the chip has {}; a smaller --micro-batch, more "
      "--recompute or a higher --zero frees memory",
      100.0 * query.margin.spread, human(cost.memory.total() * (1.0 + query.margin.spread)), human(capacity));
}

}  // namespace

Result<void> read_memory_margin(const Request& request, TrainQuery& query) {
  MemoryMargin& margin = query.margin;
  // Of sources that no fit has seen, 87 % of measured peaks, groups alike, are no further above their estimate
  // (docs/validation.md).
  constexpr std::string_view usual = "10%";
  margin.text = request.value("memory-margin").value_or(std::string(usual));
  const Bytes capacity = capacity_of(query);
  ASSAY_TRY(share, read_margin(request, usual));
  if (!share) {
    margin.spread = spread_of_peaks(query);
    margin.budget = capacity / (1.0 + margin.spread);
    return {};
  }
  margin.share = *share;
  margin.budget = capacity * (1.0 - *share);
  return {};
}

MemoryVerdict memory_verdict(const TrainQuery& query, const training::TrainingCost& cost) {
  const Bytes total = cost.memory.total();
  if (total > capacity_of(query) || cost.host_memory > query.question.host.capacity) return MemoryVerdict::no;
  return total <= query.margin.budget ? MemoryVerdict::fits : MemoryVerdict::tight;
}

std::string_view name_of(MemoryVerdict verdict) {
  constexpr std::string_view names[] = {"fits", "tight", "no"};
  return names[static_cast<std::size_t>(verdict)];
}

std::string verdict_text(const TrainQuery& query, const training::TrainingCost& cost) {
  return fmt::format("{} ({:.1f} of {:.1f} GB)", name_of(memory_verdict(query, cost)), cost.memory.total().in(1_GB),
                     capacity_of(query).in(1_GB));
}

report::Members memory_members(const TrainQuery& query, const training::TrainingCost& cost) {
  const training::MemoryParts& m = cost.memory;
  const MemoryVerdict verdict = memory_verdict(query, cost);
  report::Members out{{"parameters", m.weights},
                      {"gradients", m.gradients},
                      {"optimizer", m.master + m.moments},
                      {"of_which_master_weights", m.master},
                      {"of_which_moments", m.moments},
                      {"activations", m.activations},
                      {"logits_and_loss", m.head},
                      {"communication_buffers", m.buffers},
                      {"workspace", m.workspace},
                      {"allocated", m.allocated()},
                      {"allocator_overhead", m.reserve},
                      {"reserved", m.reserved()},
                      {"driver_context", m.context},
                      {"total", m.total()},
                      {"fullest_stage", m.stage},
                      {"capacity", capacity_of(query)},
                      {"margin", query.margin.text},
                      {"budget", query.margin.budget},
                      {"fits", verdict != MemoryVerdict::no},
                      {"verdict", name_of(verdict)}};
  if (verdict == MemoryVerdict::tight) out.emplace_back("reason", why_tight(query, cost));
  if (cost.host_memory > Bytes()) {
    out.emplace_back("on_the_host", cost.host_memory);
    out.emplace_back("host_capacity", query.question.host.capacity);
  }
  return out;
}

report::Members memory_interval(const TrainQuery& query, const training::MemoryParts& memory) {
  const numbers::IntervalClass* found = measured_peaks(query);
  if (!found) return {};
  return interval_members(Bytes(0), memory.total(),
                          numbers::step_coordinates(query.cluster, query.imported.model, query.sequence),
                          query.cluster.chip.architecture, {*found, "steps/training.toml"});
}

}  // namespace assay::verbs::train
