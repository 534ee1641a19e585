#include "assay/verbs/serve/software.h"

#include <fmt/format.h>

#include "assay/base/text.h"
#include "assay/hardware/calibration.h"
#include "assay/verbs/interval_members.h"
#include "assay/verbs/option_values.h"

namespace assay::verbs::serve {

Result<void> read_serving_software(const Request& request, const Context& context, ServeQuery& query) {
  static constexpr Word<estimate::Fusion> fusions[] = {
      {"fused", estimate::Fusion::fused}, {"compiled", estimate::Fusion::compiled}, {"eager", estimate::Fusion::eager}};
  static constexpr Word<estimate::Scheduler> schedulers[] = {{"loop", estimate::Scheduler::loop},
                                                             {"native", estimate::Scheduler::native},
                                                             {"python", estimate::Scheduler::python},
                                                             {"ahead", estimate::Scheduler::ahead}};
  enum class Kernel { matrix, vector, unsplit, copies };
  static constexpr Word<Kernel> kernels[] = {
      {"matrix", Kernel::matrix}, {"vector", Kernel::vector}, {"unsplit", Kernel::unsplit}, {"copies", Kernel::copies}};
  std::optional<estimate::Fusion> fusion;
  std::optional<estimate::Scheduler> scheduler;
  std::optional<Kernel> kernel;
  ASSAY_CHECK(read_word(request, "software", fusions, fusion));
  ASSAY_CHECK(read_word(request, "scheduler", schedulers, scheduler));
  ASSAY_CHECK(read_word(request, "cache-kernel", kernels, kernel));
  ASSAY_TRY(steps, estimate::serving_steps_of(context.catalogue));
  estimate::ServingSoftware software;
  software.fusion = fusion.value_or(estimate::Fusion::fused);
  software.scheduler = scheduler.value_or(estimate::Scheduler::native);
  software.captured = software.fusion != estimate::Fusion::eager;
  software.whole_rows = kernel == Kernel::unsplit;
  software.repeats_kv = kernel == Kernel::copies;
  software.vector_decode = kernel == Kernel::vector || kernel == Kernel::unsplit;
  query.question.setup.effects = steps.effects(query.cluster.chip, software);
  if (!steps.has_steps(query.cluster.chip))
    query.notes.push_back(
        fmt::format("no prefill or decode steps were measured on {} chips: the estimate takes kernels and collectives "
                    "to be as fast in a step as by themselves",
                    query.cluster.chip.architecture));
  query.steps = std::move(steps);
  query.notes.push_back(
      fmt::format("steps as measured: steps/serving.toml for {} kernels and a {} scheduler "
                  "(--software --scheduler)",
                  estimate::fusion_names[static_cast<std::size_t>(software.fusion)],
                  estimate::scheduler_names[static_cast<std::size_t>(software.scheduler)]));
  return {};
}

report::Members step_interval(const ServeQuery& query, const serving::ServingTime& time, bool prefill, double batch) {
  const bool measured = prefill ? query.prefill_time || query.mfu : query.step_time.has_value();
  if (!query.steps || measured) return {};
  const estimate::IntervalClass* found =
      estimate::interval_of(prefill ? query.steps->prefill_intervals : query.steps->decode_intervals,
                            estimate::serving_classes(query.steps->family(query.cluster.chip), query.model()));
  if (!found) return {};
  const auto context = static_cast<double>(query.question.prompt + (prefill ? 0 : query.question.output));
  return interval_members(Seconds(time.lower), Seconds(time.estimate), *found,
                          estimate::serving_coordinates(query.chips(), query.model(), batch, context),
                          query.cluster.chip.architecture, "steps/serving.toml");
}

void note_intervals(const ServeQuery& query, const serving::ServingPoint& point, report::Response& response) {
  for (bool prefill : {true, false}) {
    const report::Value interval(prefill ? step_interval(query, point.prefill, true, point.prompts)
                                         : step_interval(query, point.decode, false, point.batch));
    const report::Value *basis = interval.find("basis"), *rows = interval.find("rows"),
                        *outside = interval.find("extrapolates_in");
    if (!basis) continue;
    std::string text = fmt::format("interval of {}: {} rows of {}", prefill ? "prefill" : "decode",
                                   report::scalar_text(*rows), report::scalar_text(*basis));
    std::vector<std::string> names;
    if (outside)
      for (const report::Value& name : *outside->items()) names.push_back(report::scalar_text(name));
    if (!names.empty()) text += fmt::format("; {} outside the measured range", join(names, " and "));
    response.notes.push_back(std::move(text));
  }
}

}  // namespace assay::verbs::serve
