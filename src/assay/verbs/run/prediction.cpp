#include "assay/verbs/run/prediction.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/hardware/calibration.h"
#include "assay/training/step_list.h"

namespace assay::verbs::run {
namespace {

constexpr std::string_view host = "host";

std::string_view kind_of(const program::Step& step) {
  if (program::is_collective(step.op)) return "collectives";
  if (step.op == program::Op::update) return "update";
  if (step.op == program::Op::product) return "products";
  if (step.op == program::Op::attention || step.op == program::Op::attention_grad) return "attention";
  return "other kernels";
}

struct Pair {
  double measured = 0, predicted = 0;  ///< seconds of a step on a device
};

Result<estimate::StepTimes> predicted_times(const Request& request, const Context& context, const TrainingTask& task,
                                            const TrainingJob& job, hardware::Cluster& cluster) {
  const std::string on = request.value("on").value_or(fmt::format("{}:{}", host, job.devices()));
  ASSAY_TRY(found, hardware::parse_cluster(on, context.catalogue, "--on"));
  cluster = std::move(found);
  ASSAY_TRY(calibration, hardware::calibration_of(cluster.chip, context.catalogue));
  ASSAY_TRY(rates,
            estimate::kernel_rates(cluster.chip, Dtype::fp64, "--on", calibration ? &calibration->values : nullptr));
  training::TrainingQuestion question = job.question;
  question.setup.rates = std::move(rates);
  if (calibration) question.collectives = calibration->values.collective;
  return training::training_step_times(question, task.length, cluster, job.strategy, job.program);
}

report::Members row_of(std::string what, const Pair& pair) {
  return {{"kind", std::move(what)},
          {"measured", Seconds(pair.measured)},
          {"predicted", Seconds(pair.predicted)},
          {"over_predicted", pair.predicted > 0 ? report::Value(pair.measured / pair.predicted) : report::Value()}};
}

}  // namespace

void predict(const Request& request, const Context& context, const TrainingTask& task, const TrainingJob& job,
             const TrainedJob& run, report::Response& response) {
  if (!request.has("on") && !context.catalogue.has_chip(host)) {
    response.important.emplace_back(
        "`assay measure --threads 1` measures this machine; a run then shows its prediction");
    return;
  }
  hardware::Cluster cluster;
  const auto times = predicted_times(request, context, task, job, cluster);
  if (!times) {
    response.important.push_back(fmt::format("no prediction: {}", times.error().what));
    return;
  }
  if (cluster.chip.id != host)
    response.important.push_back(fmt::format(
        "the times are of this machine, in fp64, and the prediction is of {}: they say what that chip would "
        "save, not how good the prediction is",
        cluster.text));
  const auto steps = static_cast<double>(run.steps.size());
  std::vector<std::pair<std::string_view, Pair>> kinds;
  report::Items products;
  Pair all;
  for (std::size_t i = 0; i < run.clocks.size(); ++i) {
    const program::Step& step = job.program.steps[i];
    const auto runs = static_cast<double>(run.clocks[i].runs);
    if (runs == 0 || step.op == program::Op::slice) continue;
    const Pair mine{run.clocks[i].seconds / steps, times->steps[i].time.value() * runs / steps};
    const std::string_view kind = kind_of(step);
    auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& known) { return known.first == kind; });
    if (found == kinds.end()) found = kinds.insert(kinds.end(), {kind, {}});
    for (Pair* sum : {&found->second, &all}) {
      sum->measured += mine.measured;
      sum->predicted += mine.predicted;
    }
    constexpr double worth_it = 1e-3;  // seconds of one kernel: shorter ones are mostly overhead
    if (run.clocks[i].seconds / runs >= worth_it && (kind == "products" || kind == "collectives"))
      products.emplace_back(
          row_of(program::step_text(job.program, step), {run.clocks[i].seconds / runs, times->steps[i].time.value()}));
  }
  report::Items rows;
  for (const auto& [kind, pair] : kinds) rows.emplace_back(row_of(std::string(kind), pair));
  rows.emplace_back(row_of("all", all));
  response.results.emplace_back(
      "prediction", report::Members{{"on", cluster.text}, {"by_kind", std::move(rows)}, {"long_steps", products}});
}

void add_prediction(const report::Response& response, report::Screen& screen) {
  const report::Value all(response.results);
  const auto rows = find_path(all, "prediction.by_kind");
  if (!rows || !rows->items()) return;
  report::ScreenTable table{"A step on a device", {"kind", "measured", "predicted", "measured / predicted"}, {}, {}};
  for (const report::Value& row : *rows->items()) {
    const auto ratio = numeric(*row.find("over_predicted"));
    table.rows.push_back({std::get<std::string>(row.find("kind")->data()),
                          report::short_quantity(Seconds(*numeric(*row.find("measured")))),
                          report::short_quantity(Seconds(*numeric(*row.find("predicted")))),
                          ratio ? fmt::format("{:.2f}", *ratio) : ""});
  }
  screen.blocks.emplace_back(std::move(table));
}

}  // namespace assay::verbs::run
