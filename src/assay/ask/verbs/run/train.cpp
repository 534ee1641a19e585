// assay run train: trains a small model under a strategy, and shows that the strategy changes nothing but time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/run/run.h"
#include "assay/ask/verbs/train/train.h"
#include "assay/base/index.h"
#include "assay/base/text.h"
#include "assay/engine/cuda/load.h"
#include "assay/engine/kernels/blas.h"
#include "assay/engine/program/weights_file.h"
#include "assay/model/accounting.h"

namespace assay::verbs::run {
namespace {

/// Rounding in fp64, after some steps of which each starts from the last one's; and in bf16, against fp64.
constexpr double loss_tolerance = 1e-8, gpu_loss_tolerance = 2e-2;
/// The same with experts: a token whose scores nearly tie may go to another one.
constexpr double expert_loss_tolerance = 5e-2;

struct Named {
  std::string name;
  TrainingJob job;
};

/// Everything a request asks for, checked.
struct Prepared {
  TrainingTask task;
  Named own;
  std::vector<Named> others;  ///< of --compare
  std::optional<Named> single;
  engine::NamedArrays weights;        ///< nothing: a GPU draws its own
  const AssayCuda* engine = nullptr;  ///< of a GPU
};

std::string job_name(const TrainingJob& job) {
  std::string text = train::strategy_text(job.strategy);
  return job.devices() == 1 && text.starts_with("one chip") ? "one device" + text.substr(8) : text;
}

/// The state of the run that wrote a file.
Result<void> continue_from(const engine::WeightsFile& file, TrainingTask& task) {
  const auto steps = file.facts.find("steps");
  const auto done = steps == file.facts.end() ? std::nullopt : parse_number(steps->second);
  if (!done || *done < 1)
    return fail("--resume", "the file does not say how many steps its run made", "--load starts from its weights");
  task.done = static_cast<std::int64_t>(*done);
  if (task.done >= task.steps)
    return fail("--steps", fmt::format("the run made {} steps already", task.done),
                "give more: steps count from its start");
  for (const auto& [name, array] : file.weights)
    if (name.starts_with("first.") || name.starts_with("second.")) task.moments[name] = array;
  return {};
}

Result<std::shared_ptr<Prepared>> prepare(const Request& request, const Context& context) {
  ASSAY_CHECK(check_overlap(request));
  auto out = std::make_shared<Prepared>();
  const bool on_gpu = is_on_gpu(request);
  if (!on_gpu || request.has("check")) ASSAY_CHECK(engine::check_blas());
  ASSAY_SET(out->task, read_task(request, context));
  const auto named = [&](const Request& of, Numerics numerics) -> Result<Named> {
    ASSAY_TRY(job, make_job(of, out->task, numerics));
    std::string name = job_name(job);
    return Named{std::move(name), std::move(job)};
  };
  const Numerics numerics = on_gpu ? Numerics::mixed : Numerics::exact;
  ASSAY_SET(out->own, named(request, numerics));
  ASSAY_TRY(compared, compared_requests(request));
  for (const Request& each : compared) {
    ASSAY_TRY(other, named(each, numerics));
    if ((request.value("engine") == "mpi" || on_gpu) && other.job.devices() != out->own.job.devices())
      return fail("--compare",
                  fmt::format("{} takes {} devices, and the run has {}", other.name, other.job.devices(),
                              out->own.job.devices()),
                  "strategies of one run on ranks or GPUs have as many devices each");
    out->others.push_back(std::move(other));
  }
  if (request.has("check")) ASSAY_SET(out->single, named(on_one_device(request), Numerics::exact));
  if (on_gpu) {
    for (const char* option : {"save-every", "resume"})
      if (request.has(option))
        return fail(fmt::format("--{}", option), "a GPU's moments are not saved yet", "use --engine virtual or mpi",
                    Error::Kind::usage);
    if (request.has("save") && out->own.job.devices() > 1)
      return fail("--save", "weights that several GPUs share are not saved yet", "train on one GPU, or leave it out");
    ASSAY_SET(out->engine, engine::load_cuda(context.surroundings.programs));
  }
  if (!on_gpu || request.has("check") || request.has("load"))
    out->weights = engine::initial_weights(out->own.job.program, out->task.imported.model, out->task.seed);
  for (const std::string option : {"load", "resume"})
    if (const auto file = request.value(option)) {
      ASSAY_TRY(loaded, engine::read_weights(*file, "--" + option));
      ASSAY_CHECK(engine::check_weights(loaded.weights, out->weights, "--" + option));
      if (option == "resume") ASSAY_CHECK(continue_from(loaded, out->task));
      out->weights = std::move(loaded.weights);
    }
  out->task.save_to = request.value("save").value_or("");
  std::optional<std::int64_t> every;
  ASSAY_CHECK(read_count(request, "save-every", every));
  if (every && out->task.save_to.empty())
    return fail("--save-every", "there is no file to save to", "add --save FILE.safetensors", Error::Kind::usage);
  out->task.save_every = every.value_or(0);
  return out;
}

double largest_gap(const TrainedJob& a, const TrainedJob& b) {
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.steps.size(), b.steps.size()); ++i)
    largest = std::max(largest, std::abs(a.steps[i].loss - b.steps[i].loss));
  return largest;
}

/// The median, without the first step, which also warms up.
Seconds usual_time(const TrainedJob& run) {
  std::vector<Seconds> times(run.times.begin() + (run.times.size() > 1 ? 1 : 0), run.times.end());
  if (times.empty()) return {};
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

report::Items step_rows(const TrainedJob& run, std::int64_t done) {
  report::Items rows;
  for (std::size_t i = 0; i < run.steps.size(); ++i)
    rows.emplace_back(report::Members{{"step", done + static_cast<std::int64_t>(i + 1)},
                                      {"loss", run.steps[i].loss},
                                      {"gradient_norm", run.steps[i].gradient_norm},
                                      {"time", run.times[i]}});
  return rows;
}

report::Members compared_row(const Named& named, const TrainedJob& run, const TrainedJob& own) {
  report::Items losses;
  for (const engine::TrainedStep& step : run.steps) losses.emplace_back(step.loss);
  return {
      {"strategy", named.name},     {"devices", named.job.devices()},  {"largest_difference", largest_gap(run, own)},
      {"time", usual_time(run)},    {"moved", run.steps.back().moved}, {"predicted_bytes", run.steps.back().stated},
      {"losses", std::move(losses)}};
}

/// What ranks did in a step, beside each other.
void add_ranks(const TrainedJob& run, report::Response& response) {
  const auto steps = static_cast<double>(run.steps.size());
  response.results.emplace_back("in_background", run.hidden.background / steps);
  response.results.emplace_back("waited_for", run.hidden.waited / steps);
  if (run.ranks.empty()) {
    response.important.emplace_back(
        "ranks on several machines have no common clock: the time of a collective includes waiting for other ranks");
    return;
  }
  report::Items rows;
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
    rows.emplace_back(report::Members{{"rank", static_cast<std::int64_t>(rank)},
                                      {"computing", run.ranks[rank].computing / steps},
                                      {"moving", run.ranks[rank].moving / steps},
                                      {"waiting", run.ranks[rank].waiting / steps},
                                      {"waiting_behind", run.ranks[rank].behind / steps},
                                      {"waiting_for_stages", run.ranks[rank].stages / steps}});
  response.results.emplace_back("ranks", std::move(rows));
}

draw::Scene picture(const Prepared& prepared, const std::vector<std::pair<std::string, const TrainedJob*>>& runs) {
  draw::Chart chart;
  chart.title = fmt::format("Training loss of a model like {}", prepared.task.imported.model.id);
  chart.subtitle = fmt::format("{}, {} sequences of {} tokens a step", size_text(prepared.task.imported.model),
                               prepared.task.sequences, prepared.task.length);
  chart.x = {"step", "", draw::ScaleKind::linear, std::nullopt, draw::NumberStyle::compact};
  chart.y = {"loss", "", draw::ScaleKind::linear, std::nullopt, draw::NumberStyle::compact};
  // Curves that lie on each other would hide each other: every strategy marks other steps.
  for (std::size_t r = 0; r < runs.size(); ++r) {
    draw::ChartSeries series{runs[r].first, {}, r == 0 ? draw::SeriesStyle::line : draw::SeriesStyle::markers, 0};
    const std::size_t every = r == 0 ? 1 : std::max<std::size_t>(1, runs.size() - 1);
    for (std::size_t i = r == 0 ? 0 : (r - 1) % every; i < runs[r].second->steps.size(); i += every)
      series.points.push_back({static_cast<double>(i + 1), runs[r].second->steps[i].loss});
    chart.series.push_back(std::move(series));
  }
  if (runs.size() > 1) {
    double most = 0;
    for (const auto& run : runs) most = std::max(most, largest_gap(*run.second, *runs.front().second));
    constexpr double rounding = 1e-12;
    chart.footnote = most < rounding ? "the curves differ by less than 1e-12"
                                     : fmt::format("largest difference between the curves: {:.1e}", most);
  }
  return draw::draw(chart);
}

report::Members members_of(const Prepared& prepared, const TrainedJob& own, std::string_view engine) {
  const TrainingTask& task = prepared.task;
  const engine::TrainedStep &first = own.steps.front(), &last = own.steps.back();
  return {{"run", "train"},
          {"model", task.imported.model.id},
          {"parameters", model::parameter_counts(task.imported.model).total},
          {"engine", std::string(engine)},
          {"text", report::Members{{"name", task.text.name},
                                   {"bytes", static_cast<std::int64_t>(task.text.text.size())},
                                   {"tokens", static_cast<std::int64_t>(task.text.tokens.size())},
                                   {"vocabulary", task.text.tokenizer.vocabulary()}}},
          {"strategy", prepared.own.name},
          {"mesh", program::mesh_text(prepared.own.job.program.mesh)},
          {"devices", prepared.own.job.devices()},
          {"microbatches", prepared.own.job.program.microbatches},
          {"first_loss", first.loss},
          {"last_loss", last.loss},
          {"time", usual_time(own)},
          {"moved", last.moved},
          {"predicted_bytes", last.stated},
          {"between_stages", last.handed},
          {"updates", step_rows(own, task.done)}};
}

/// How the loss moves over the steps.
std::string course_of(const std::vector<engine::TrainedStep>& steps) {
  const double first = steps.front().loss, last = steps.back().loss;
  if (steps.size() == 1) return fmt::format("the loss is {:.3f} in the first step", first);
  if (!std::isfinite(last)) return fmt::format("the loss of {:.3f} is no number after {} steps", first, steps.size());
  return fmt::format("the loss {} from {:.3f} to {:.3f} in {} steps", last < first ? "falls" : "rises", first, last,
                     steps.size());
}

/// "2 virtual devices", "8 ranks", "one NVIDIA H200"
std::string devices_text(const Prepared& prepared, const TrainedJob& own, const engine::Transport* transport) {
  const std::int64_t devices = prepared.own.job.devices();
  if (prepared.engine) return devices == 1 ? "one " + own.device : fmt::format("{} {}", devices, own.device);
  return fmt::format("{} {}{}", devices, transport ? "rank" : "virtual device", devices == 1 ? "" : "s");
}

Result<report::Response> train(const Request& request, const Context& context, const Prepared& prepared,
                               engine::Transport* transport) {
  const TrainingTask& task = prepared.task;
  engine::NamedArrays trained;
  const auto run = [&](const TrainingJob& job, engine::NamedArrays* weights) -> Result<TrainedJob> {
    if (prepared.engine) return run_job_on_gpu(task, job, {*prepared.engine, transport}, prepared.weights, weights);
    return run_job(task, job, prepared.weights, transport, weights);
  };
  ASSAY_TRY(own, run(prepared.own.job, request.has("save") ? &trained : nullptr));
  std::vector<TrainedJob> others;
  for (const Named& each : prepared.others) {
    ASSAY_TRY(other, run(each.job, nullptr));
    others.push_back(std::move(other));
  }
  std::optional<TrainedJob> blocking;
  if (request.has("overlap"))
    blocking = run_job(task, prepared.own.job, prepared.weights, transport, nullptr, engine::Overlap::none);
  std::optional<TrainedJob> single;
  if (prepared.single && (!transport || transport->rank() == 0))
    single = run_job(task, prepared.single->job, prepared.weights, nullptr);

  if (own.steps.empty()) return fail("run", "interrupted before the first step", "run it again");
  if (std::any_of(others.begin(), others.end(), [](const TrainedJob& job) { return job.steps.empty(); }))
    return fail("run", "interrupted before all strategies had run", "run it again");
  if (single && single->steps.size() < own.steps.size()) single.reset();

  report::Response response;
  const model::Transformer& model = task.imported.model;
  const engine::TrainedStep& last = own.steps.back();
  response.headline =
      fmt::format("{} on {}: {}", model.id, devices_text(prepared, own, transport), course_of(own.steps));
  if (!std::isfinite(last.loss)) response.important.emplace_back("the loss is no number any more: lower --rate");
  report::Members& out = response.results;
  out = members_of(prepared, own, prepared.engine ? "cuda" : transport ? "mpi" : "virtual");
  if (prepared.engine) add_gpu({own.device, own.memory, own.network}, response);
  if (transport && !prepared.engine) add_ranks(own, response);
  if (single) {
    const double difference = largest_gap(own, *single);
    const double allowed = !prepared.engine                       ? loss_tolerance
                           : model::most_expert_load(model) > 1.0 ? expert_loss_tolerance
                                                                  : gpu_loss_tolerance;
    out.emplace_back(
        "one_device",
        report::Members{{"largest_difference", difference}, {"tolerance", allowed}, {"equal", difference <= allowed}});
    response.important.push_back(fmt::format("the losses differ by at most {:.1e} from those of one{} device{}",
                                             difference, prepared.engine ? " virtual" : "",
                                             prepared.engine ? " in fp64" : ""));
    if (difference > allowed) response.outcome = report::Outcome::check_failed;
  }
  report::Items compared;
  for (std::size_t i = 0; i < others.size(); ++i)
    compared.emplace_back(compared_row(prepared.others[i], others[i], own));
  if (!others.empty()) out.emplace_back("compared", std::move(compared));
  if (transport && std::ssize(own.steps) < task.steps)
    response.important.push_back(
        fmt::format("interrupted on a rank: all stopped after {} of {} steps", own.steps.size(), task.steps));
  if (last.moved > Bytes(0) || last.stated > Bytes(0))
    response.important.push_back(
        fmt::format("each device received {} in the collectives of a step; the program says {}",
                    report::short_binary(last.moved), report::short_binary(last.stated)));
  if (prepared.own.job.strategy.offload != training::Offload::none) {
    out.emplace_back("host",
                     report::Members{{"to", last.to_host}, {"from", last.from_host}, {"predicted", last.stated_host}});
    response.important.push_back(
        fmt::format("each device copied {} to its host and {} back in a step; the prediction is {} each way",
                    report::short_binary(last.to_host), report::short_binary(last.from_host),
                    report::short_binary(last.stated_host)));
  }
  const auto predicted = predict(request, context, task, prepared.own.job, own, response);
  if (blocking && !blocking->last_step.empty() && !own.last_step.empty()) {
    const program::Program& program = prepared.own.job.program;
    response.important.push_back(add_overlap(
        request, program, [&](int step) { return program::step_text(program, program.steps[at(step)]); },
        {blocking->last_step, own.last_step, own.turns()}, predicted, response));
  }
  response.notes = task.notes;
  response.notes.insert(response.notes.end(), response.important.begin(), response.important.end());
  response.table_key = "updates";
  if (const auto file = request.value("save"))
    response.files.emplace_back(*file, checkpoint_bytes(task, trained, task.done + std::ssize(own.steps)));
  if (request.picture() && !blocking) {
    std::vector<std::pair<std::string, const TrainedJob*>> runs{{prepared.own.name, &own}};
    for (std::size_t i = 0; i < others.size(); ++i) runs.emplace_back(prepared.others[i].name, &others[i]);
    if (single) runs.emplace_back("one device", &*single);
    response.picture = picture(prepared, runs);
  }
  response.screen = report::described_screen(declared_text("screens/run_train.txt"), response);
  return response;
}

}  // namespace

Result<report::Response> train_answer(const Request& request, const Context& context) {
  return run_on_engine(request, context, [&]() -> Result<PreparedRun> {
    ASSAY_TRY(prepared, prepare(request, context));
    return PreparedRun{prepared->own.job.devices(), [&request, &context, prepared](engine::Transport* transport) {
                         return train(request, context, *prepared, transport);
                       }};
  });
}

}  // namespace assay::verbs::run
