#include "assay/ask/verbs/run/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/hardware/calibration.h"
#include "assay/predict/training/step_list.h"

namespace assay::verbs::run {
namespace {

struct Pair {
  Seconds measured, predicted;  ///< of a step on a device
};

/// The steps of a job on the cluster that it is predicted for.
struct PredictedJob {
  hardware::Cluster cluster;
  clock::StepTimes times;
};

Result<PredictedJob> predicted_job(const Context& context, const TrainingTask& task, const TrainingJob& job,
                                   const std::string& on) {
  PredictedJob out;
  ASSAY_SET(out.cluster, hardware::parse_cluster(on, context.catalogue, "--on"));
  ASSAY_TRY(calibration, hardware::calibration_of(out.cluster.chip, context.catalogue));
  ASSAY_TRY(rates, kernel::kernel_rates(out.cluster.chip, job.question.setup.formats.compute, "--on",
                                        calibration ? &calibration->values : nullptr));
  training::TrainingQuestion question = job.question;
  question.setup.rates = std::move(rates);
  if (calibration) question.collectives = calibration->values.collective;
  ASSAY_SET(out.times, training::training_step_times(question, task.length, out.cluster, job.strategy, job.program));
  return out;
}

}  // namespace

std::string predicted_on(const Request& request, std::int64_t devices, const std::string& device) {
  if (const auto on = request.value("on")) return *on;
  if (device.empty()) return fmt::format("{}:{}", host_chip, devices);
  constexpr std::string_view vendor = "NVIDIA ";
  const std::string chip = device.starts_with(vendor) ? device.substr(vendor.size()) : device;
  return devices > 1 ? fmt::format("{}:{}", chip, devices) : chip;
}

std::string other_chip_note(std::string_view cluster) {
  return fmt::format(
      "the times are of this machine, in fp64, and the prediction is of {}: they say what that chip would "
      "save, not how good the prediction is",
      cluster);
}

CoreSharing core_sharing(const engine::LocalRank& local, const hardware::Cluster& cluster, report::Response& response) {
  if (cluster.chip.id != host_chip || local.count <= local.cores) return {};
  const CoreSharing sharing{static_cast<double>(local.count), static_cast<double>(local.cores)};
  response.important.push_back(
      fmt::format("{} ranks share {} core{}: kernels are predicted to take {:.3g} times as long", local.count,
                  local.cores, local.cores == 1 ? "" : "s", sharing.kernel()));
  return sharing;
}

report::Members pair_row(std::string what, Seconds measured, Seconds predicted) {
  return {{"kind", std::move(what)},
          {"measured", measured},
          {"predicted", predicted},
          {"over_predicted", predicted > Seconds() ? report::Value(measured / predicted) : report::Value()}};
}

std::optional<clock::OverlapTimes> predict(const Request& request, const Context& context, const TrainingTask& task,
                                           const TrainingJob& job, const TrainedJob& run, report::Response& response) {
  const bool on_gpu = !run.device.empty();
  if (!on_gpu && !request.has("on") && !context.catalogue.has_chip(host_chip)) {
    response.important.emplace_back(measure_note);
    return {};
  }
  const auto predicted = predicted_job(context, task, job, predicted_on(request, job.devices(), run.device));
  if (!predicted) {
    response.important.push_back(fmt::format("no prediction: {}", predicted.error().what));
    return {};
  }
  const hardware::Cluster& cluster = predicted->cluster;
  if (!on_gpu && cluster.chip.id != host_chip) response.important.push_back(other_chip_note(cluster.text));
  const CoreSharing sharing = core_sharing(run.local, cluster, response);
  const auto steps = static_cast<double>(run.timed_steps);
  std::vector<std::pair<std::string_view, Pair>> kinds;
  report::Items products;
  Pair all, waiting;
  clock::OverlapTimes overlap;
  for (std::size_t i = 0; i < run.clocks.size(); ++i) {
    const program::Step& step = job.program.steps[i];
    const auto runs = static_cast<double>(run.clocks[i].runs);
    if (runs == 0 || step.op == program::Op::slice) continue;
    const std::string_view kind = engine::work_kind(step);
    const double longer = program::is_collective(step.op)
                              ? sharing.collective(program::shard_count(job.program.mesh, step.axes))
                              : sharing.kernel();
    const Seconds once = longer * predicted->times.steps[i].time;
    const Seconds took = run.clocks[i].time - run.clocks[i].waited;
    const Pair mine{took / steps, once * runs / steps};
    if (program::is_collective(step.op)) {
      overlap.moving += mine.predicted;
      overlap.hidden += longer * (predicted->times.steps[i].time - predicted->times.steps[i].exposed) * runs / steps;
    }
    auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& known) { return known.first == kind; });
    if (found == kinds.end()) found = kinds.insert(kinds.end(), {kind, {}});
    for (Pair* sum : {&found->second, &all}) {
      sum->measured += mine.measured;
      sum->predicted += mine.predicted;
    }
    // Of one kernel: shorter ones are mostly overhead. Of plain loops only products are worth comparing.
    const Seconds worth_it = on_gpu ? 100_us : 1_ms;
    if (took / runs >= worth_it && (on_gpu || kind == "products" || kind == "collectives"))
      products.emplace_back(pair_row(program::step_text(job.program, step), took / runs, once));
  }
  if (!run.ranks.empty()) {  // what travels beside steps may wait as it likes
    waiting.measured = (run.ranks.front().waiting + run.ranks.front().behind) / steps;
    kinds.emplace_back("waiting", waiting);
    all.measured += waiting.measured;
  }
  report::Items rows;
  for (const auto& [kind, pair] : kinds) rows.emplace_back(pair_row(std::string(kind), pair.measured, pair.predicted));
  rows.emplace_back(pair_row("all", all.measured, all.predicted));
  response.results.emplace_back(
      "prediction", report::Members{{"on", cluster.text}, {"by_kind", std::move(rows)}, {"long_steps", products}});
  overlap.blocking = all.predicted;
  overlap.overlapped = all.predicted - overlap.hidden;
  if (cluster.chip.id != host_chip || run.local.count == 0) return overlap;
  return clock::on_cores(overlap, static_cast<double>(run.local.cores) / static_cast<double>(run.local.count));
}

}  // namespace assay::verbs::run
