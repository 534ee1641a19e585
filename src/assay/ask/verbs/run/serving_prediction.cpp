#include "assay/ask/verbs/run/run.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "assay/engine/program/step.h"
#include "assay/hardware/calibration.h"
#include "assay/model/accounting.h"
#include "assay/predict/serving/profile.h"

namespace assay::verbs::run {
namespace {

using KindTimes = std::map<std::string_view, Seconds>;

Seconds sum_of(const KindTimes& kinds) {
  Seconds all;
  for (const auto& [kind, time] : kinds) all += time;
  return all;
}

serving::ServingStrategy strategy_of(const engine::ServerOptions& options) {
  const lower::Parallelism& p = options.parallelism;
  serving::ServingStrategy strategy;
  strategy.tensor = p.tensor;
  strategy.second = p.fsdp;
  strategy.data = p.data;
  strategy.expert = p.expert;
  strategy.expert_over = p.expert_over;
  strategy.scheme = options.scheme;
  return strategy;
}

/// Predicts steps by their shape; many of a run have the same one.
class StepPredictor {
 public:
  static Result<StepPredictor> make(const Context& context, const PredictedServer& run, const std::string& on) {
    StepPredictor made(run);
    ASSAY_SET(made.cluster_, hardware::parse_cluster(on, context.catalogue, "--on"));
    ASSAY_TRY(calibration, hardware::calibration_of(made.cluster_.chip, context.catalogue));
    serving::ServingSetup& setup = made.setup_;
    setup.model = &run.model;
    if (run.device.empty()) setup.formats = {Dtype::fp64, Dtype::fp64, Dtype::fp64, Dtype::fp64, Dtype::fp64};
    // Room for every token at every expert, as it runs.
    setup.expert_load = model::most_expert_load(run.model);
    ASSAY_SET(setup.rates, kernel::kernel_rates(made.cluster_.chip, setup.formats.compute, "--on",
                                                calibration ? &calibration->values : nullptr));
    if (calibration) setup.collectives = calibration->values.collective;
    if (run.options.parallelism.context > 1) return fail("--cp", "steps of split contexts are not predicted");
    ASSAY_SET(made.links_, serving::serving_links(setup, made.strategy_, made.cluster_));
    return made;
  }

  /// Of a step on ranks of which some share a core.
  KindTimes predict(const engine::ServedStep& step, const CoreSharing& sharing) {
    const auto shape = std::tuple(step.sequences, step.queries, step.keys, step.scored);
    if (const auto known = known_.find(shape); known != known_.end()) return known->second;
    const serving::ServingProfile profile = serving::make_serving_profile(setup_, strategy_, step.queries, step.keys);
    KindTimes kinds;
    for (const serving::PricedStep& priced :
         serving::list_serving_step(setup_, strategy_, profile, links_, static_cast<double>(step.sequences))) {
      program::Step kind;
      kind.op = priced.op;
      const double times = priced.block == "head" ? static_cast<double>(step.scored) : 1.0;
      const double longer =
          program::is_collective(priced.op) ? sharing.collective(links_.ways(priced.over)) : sharing.kernel();
      kinds[engine::work_kind(kind)] += times * longer * priced.layers * priced.count * priced.time;
    }
    return known_[shape] = kinds;
  }

  const hardware::Cluster& cluster() const { return cluster_; }

 private:
  explicit StepPredictor(const PredictedServer& run) : strategy_(strategy_of(run.options)) {}

  serving::ServingSetup setup_;
  serving::ServingStrategy strategy_;
  hardware::Cluster cluster_;
  training::StageLinks links_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, KindTimes> known_;
};

/// Means of the steps of a kind. Kernels are those of steps with clocks, whole steps those without, if there are any.
struct StepMeans {
  KindTimes measured, predicted;
  Seconds step, step_predicted;
  double clocked = 0, steps = 0;
  bool has_plain = false;

  void add(const engine::ServedStep& one, const KindTimes& expected) {
    if (one.has_clocks) {
      for (const auto& [kind, time] : one.by_kind) measured[kind] += time;
      for (const auto& [kind, time] : expected) predicted[kind] += time;
      clocked += 1;
    }
    if (one.has_clocks && has_plain) return;
    if (!one.has_clocks && !has_plain) {
      has_plain = true;
      step = step_predicted = {};
      steps = 0;
    }
    step += one.time;
    step_predicted += sum_of(expected);
    steps += 1;
  }

  report::Items rows() const {
    report::Items out;
    for (const auto& [kind, time] : predicted) {
      const auto found = measured.find(kind);
      out.emplace_back(
          pair_row(std::string(kind), found == measured.end() ? Seconds() : found->second / clocked, time / clocked));
    }
    if (clocked > 0) out.emplace_back(pair_row("all", sum_of(measured) / clocked, sum_of(predicted) / clocked));
    out.emplace_back(pair_row("whole step", step / steps, step_predicted / steps));
    return out;
  }
};

}  // namespace

void predict_serving(const Request& request, const Context& context, const PredictedServer& run,
                     report::Response& response) {
  const std::string on = predicted_on(request, run.options.parallelism.devices(), run.device);
  if (run.device.empty() && !request.has("on") && !context.catalogue.has_chip(host_chip)) {
    response.important.emplace_back(measure_note);
    return;
  }
  Result<StepPredictor> predictor = StepPredictor::make(context, run, on);
  if (!predictor) {
    response.important.push_back(fmt::format("no prediction: {}", predictor.error().what));
    return;
  }
  if (run.device.empty() && predictor->cluster().chip.id != host_chip)
    response.important.push_back(other_chip_note(predictor->cluster().text));
  const CoreSharing sharing = core_sharing(run.local, predictor->cluster(), response);
  StepMeans prompts, decodes;
  report::Items steps;
  for (const engine::ServedStep& step : run.report.steps) {
    if (step.drafts || (step.is_prompt() && run.options.prefill)) continue;  // of other devices
    const KindTimes expected = predictor->predict(step, sharing);
    (step.is_prompt() ? prompts : decodes).add(step, expected);
    steps.emplace_back(report::Members{{"sequences", step.sequences},
                                       {"new_tokens", step.queries},
                                       {"tokens", step.keys},
                                       {"measured", step.time},
                                       {"predicted", sum_of(expected)}});
  }
  report::Members out{{"on", predictor->cluster().text}};
  if (prompts.steps > 0) out.emplace_back("prefill", prompts.rows());
  if (decodes.steps > 0) out.emplace_back("decode", decodes.rows());
  out.emplace_back("steps", std::move(steps));
  response.results.emplace_back("prediction", std::move(out));
}

}  // namespace assay::verbs::run
