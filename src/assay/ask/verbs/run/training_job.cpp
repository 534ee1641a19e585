#include "assay/ask/verbs/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "assay/ask/verbs/experts.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/train/train.h"
#include "assay/base/progress.h"
#include "assay/base/text.h"
#include "assay/engine/program/tensor_layout.h"
#include "assay/engine/program/weights_file.h"
#include "assay/engine/ranks/mpi.h"
#include "assay/model/accounting.h"
#include "assay/predict/training/step_list.h"

namespace assay::verbs::run {
namespace {

/// The options that are a strategy.
constexpr std::string_view strategy_options[] = {"dp",
                                                 "fsdp",
                                                 "tp",
                                                 "pp",
                                                 "cp",
                                                 "ep",
                                                 "ep-over",
                                                 "zero",
                                                 "schedule",
                                                 "interleave",
                                                 "residual",
                                                 "recompute",
                                                 "offload",
                                                 "sequence-parallel",
                                                 "context-scheme",
                                                 "micro-batch"};

Result<double> positive(const Request& request, std::string_view option, double usual) {
  const auto text = request.value(option);
  if (!text) return usual;
  const auto number = parse_number(*text);
  if (!number || !(*number > 0.0))
    return fail(fmt::format("--{}", option), fmt::format("{} is not a number above 0", in_quotes(*text)), "");
  return *number;
}

/// Sequences per microbatch and data-parallel group: all of them, or a pipeline's as many as its schedule needs.
Result<std::int64_t> micro_batch_of(const search::TrainingChoices& choices, const TrainingTask& task,
                                    const lower::Parallelism& p) {
  const std::int64_t groups = p.data * p.fsdp;
  if (task.sequences % groups != 0)
    return fail("--batch",
                fmt::format("{} sequences do not divide among {} data-parallel groups", task.sequences, groups),
                fmt::format("give a multiple of {}seq", groups));
  const std::int64_t mine = task.sequences / groups;
  const std::int64_t size = choices.micro_batch.value_or(p.pipeline > 1 ? 1 : mine);
  if (mine % size != 0)
    return fail("--micro-batch", fmt::format("{} does not divide the {} sequences of a group", size, mine), "");
  return size;
}

void set_formats(training::TrainingSetup& setup, Numerics numerics) {
  if (numerics == Numerics::mixed) {
    setup.formats.gradients = Dtype::fp32;
    return;  // weights, activations and products in bf16; master copy and moments in fp32
  }
  setup.formats = {Dtype::fp64, Dtype::fp64, Dtype::fp64, Dtype::fp64, Dtype::fp64};
  setup.optimizer = {.master = false, .first_moment = Dtype::fp64, .second_moment = Dtype::fp64};
}

}  // namespace

Result<TrainingTask> read_task(const Request& request, const Context& context) {
  TrainingTask task;
  ASSAY_TRY(text, read_text(request, context));
  task.text = std::move(text);
  ASSAY_SET(task.imported, read_model(request, context, task.text.tokenizer.vocabulary(), task.notes));
  ASSAY_TRY(length, count_or(request, "seq", 32));
  ASSAY_TRY(steps, count_or(request, "steps", 20));
  ASSAY_TRY(seed, count_or(request, "seed", 1));
  ASSAY_TRY(rate, positive(request, "rate", task.adam.rate));
  ASSAY_TRY(sequences, parse_batch(request.value("batch").value_or("16seq"), length, task.notes));
  task.length = length;
  task.steps = steps;
  task.seed = static_cast<std::uint64_t>(seed);
  task.adam.rate = rate;
  task.sequences = static_cast<std::int64_t>(sequences);
  constexpr std::int64_t largest_run = 100'000;
  if (steps > largest_run) return fail("--steps", fmt::format("{} is more than {}", steps, largest_run), "");
  if (std::ssize(task.text.tokens) < length + 2)
    return fail("--text", fmt::format("{} tokens are fewer than one sequence of {}", task.text.tokens.size(), length),
                "give a longer text or a shorter --seq");
  const model::Transformer& model = task.imported.model;
  if (model.learned_positions > 0 && length > model.learned_positions)
    return fail("--seq", fmt::format("{} has {} learned positions, not {}", model.id, model.learned_positions, length),
                "");
  return task;
}

Result<lower::Parallelism> parallelism_of(const search::TrainingChoices& choices, const model::Transformer& model) {
  lower::Parallelism p;
  p.data = choices.data.value_or(1);
  p.fsdp = choices.fsdp.value_or(1);
  p.tensor = choices.tensor.value_or(1);
  p.context = choices.context.value_or(1);
  p.pipeline = choices.pipeline.value_or(1);
  p.expert = choices.expert.value_or(1);
  if (choices.expert_over) p.expert_over = *choices.expert_over;
  p.zero = choices.zero.value_or(0);
  p.residual = choices.residual.value_or(lower::ResidualScheme::replicated);
  p.context_scheme = choices.context_scheme.value_or(lower::ContextScheme::gather);
  ASSAY_CHECK(check_devices(p));
  ASSAY_CHECK(lower::check_parallelism(p, model));
  return p;
}

Result<TrainingJob> make_job(const Request& request, const TrainingTask& task, Numerics numerics) {
  const model::Transformer& model = task.imported.model;
  search::TrainingChoices choices;
  ASSAY_CHECK(train::read_choices(request, {}, choices));
  TrainingJob job;
  lower::Parallelism& p = job.strategy.parallelism;
  ASSAY_SET(p, parallelism_of(choices, model));
  ASSAY_SET(job.strategy.micro_batch, micro_batch_of(choices, task, p));
  job.strategy.interleave = choices.interleave.value_or(1);
  job.strategy.schedule = choices.schedule.value_or(job.strategy.interleave > 1 ? clock::PipelineSchedule::interleaved
                                                                                : clock::PipelineSchedule::one_f_one_b);
  job.strategy.recompute = choices.recompute.value_or(lower::Recompute::none());
  if (request.has("offload") && choices.offloads.size() == 1) job.strategy.offload = choices.offloads.front();
  if (numerics == Numerics::mixed && job.strategy.offload != training::Offload::none)
    return fail("--offload", "a GPU of this engine keeps what it needs",
                "use --engine virtual or mpi, or leave it out");
  job.question.setup.model = &model;
  set_formats(job.question.setup, numerics);
  // Room for every token at every expert: nothing is dropped, so that no strategy changes what is computed.
  job.question.setup.expert_load = model::most_expert_load(model);
  job.question.sequences = static_cast<double>(task.sequences);
  job.question.chips = static_cast<double>(p.devices());
  const auto microbatches = static_cast<std::int64_t>(training::microbatches(job.question, job.strategy));
  if (p.pipeline > 1) {
    const bool two = job.strategy.schedule == clock::PipelineSchedule::zb_v ||
                     job.strategy.schedule == clock::PipelineSchedule::dualpipe;
    job.pipeline = {job.strategy.schedule, p.pipeline, microbatches, two ? 2 : job.strategy.interleave};
    ASSAY_CHECK(engine::check_session(model, job.pipeline));
  }
  job.program = training::training_program(job.question, task.length, job.strategy);
  ASSAY_CHECK(engine::check_divides(job.program));
  if (numerics == Numerics::mixed) {
    // Every device of a stage has such a list.
    for (std::int64_t stage = p.pipeline; stage-- > 0;) {
      const auto rank = static_cast<std::size_t>(stage * job.program.mesh.devices());
      ASSAY_SET(job.tasks, engine::task_list(job.program, model, task.seed, {rank, job.pipeline}));
    }
  }
  return job;
}

Request on_one_device(const Request& request) {
  Request out = request;
  for (const std::string_view option : strategy_options) out = out.without(option);
  return out;
}

Result<std::vector<Request>> compared_requests(const Request& request) {
  std::vector<Request> out;
  for (const std::string& strategy : split(request.value("compare").value_or(""), ';')) {
    if (trim(strategy).empty()) continue;
    Request one = on_one_device(request);
    for (const std::string& word : split(std::string(trim(strategy)), ' ')) {
      if (word.empty()) continue;
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      const auto* const known = std::find(std::begin(strategy_options), std::end(strategy_options), name);
      if (known == std::end(strategy_options) || (equals == std::string::npos && name != "sequence-parallel"))
        return fail("--compare", fmt::format("{} is not a part of a strategy", in_quotes(word)),
                    "write options of a strategy as tp=2, strategies apart by a semicolon", Error::Kind::usage);
      one = one.with(*known, equals == std::string::npos ? "" : word.substr(equals + 1));
    }
    out.push_back(std::move(one));
  }
  return out;
}

namespace {

/// Adds a step of all ranks to the time of each, and what this one waited for to its clocks.
void add_activities(const program::Program& program, engine::RankActivities ranks, std::size_t mine,
                    std::vector<Seconds>& waited, TrainedJob& job) {
  using Kind = engine::Activity::Kind;
  const auto waits = engine::waiting(program, ranks, job.turns());
  job.ranks.resize(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (std::size_t i = 0; i < ranks[rank].size(); ++i) {
      const engine::Activity& one = ranks[rank][i];
      RankTime& time = job.ranks[rank];
      if (one.kind == Kind::computes) time.computing += one.duration();
      if (one.kind == Kind::moves) {
        time.moving += one.duration() - waits[rank][i];
        time.waiting += waits[rank][i];
      }
      if (one.kind == Kind::waits) (one.step < 0 ? time.stages : time.behind) += one.duration();
      if (rank == mine && one.is_movement()) waited[static_cast<std::size_t>(one.step)] += waits[rank][i];
    }
  job.last_step = std::move(ranks);
}

/// A run that is killed leaves the last whole file.
void write_whole(const std::string& path, const std::string& bytes) {
  const std::string partial = path + ".part";
  std::ofstream(partial, std::ios::binary) << bytes;
  std::error_code failed;
  std::filesystem::rename(partial, path, failed);
}

}  // namespace

std::string checkpoint_bytes(const TrainingTask& task, engine::NamedArrays weights, std::int64_t steps) {
  return engine::weights_bytes(
      {std::move(weights), {{"merges", task.text.tokenizer.merges()}, {"steps", std::to_string(steps)}}});
}

TrainedJob run_job(const TrainingTask& task, const TrainingJob& job, const engine::NamedArrays& weights,
                   engine::Transport* transport, engine::NamedArrays* trained, engine::Overlap overlap) {
  engine::TrainingSession session(
      job.program, task.imported.model, weights,
      {.pipeline = job.pipeline,
       .adam = task.adam,
       .transport = transport,
       .offloading = {training::moves_activations(job.strategy.offload), training::moves_states(job.strategy.offload),
                      job.question.setup.optimizer.state_bytes()},
       .overlap = overlap});
  if (task.done > 0) session.resume(task.moments, task.done);
  TrainedJob out;
  if (transport) out.local = engine::local_rank(*transport);
  const bool has_one_clock = transport && out.local.count == transport->count();
  std::vector<Seconds> waited(job.program.steps.size());
  const auto checkpoint = [&] {
    engine::NamedArrays all = session.weights(), moments = session.moments();
    all.merge(moments);
    return all;
  };
  for (std::int64_t step = task.done; step < task.steps && !engine::is_any_stopped(transport); ++step) {
    using Clock = std::chrono::steady_clock;
    const engine::TextBatch batch = engine::text_batch(task.text.tokens, task.sequences, task.length, task.seed, step);
    const Clock::time_point start = Clock::now();
    out.steps.push_back(session.step(batch.tokens, batch.targets));
    out.times.emplace_back(std::chrono::duration<double>(Clock::now() - start).count());
    const std::vector<engine::Activity> mine = session.take_activities();
    if (has_one_clock) add_activities(job.program, engine::gathered(*transport, mine), transport->rank(), waited, out);
    if (!trained || task.save_every == 0 || (step + 1) % task.save_every != 0) continue;
    engine::NamedArrays all = checkpoint();
    if (!transport || transport->rank() == 0)
      write_whole(task.save_to, checkpoint_bytes(task, std::move(all), step + 1));
  }
  if (trained) *trained = checkpoint();
  out.facts = session.facts();
  out.clocks = session.clocks();
  for (std::size_t i = 0; i < waited.size(); ++i) out.clocks[i].waited = waited[i];
  out.hidden = session.hidden();
  out.timed_steps = std::ssize(out.steps);
  return out;
}

Result<TrainedJob> run_job_on_gpu(const TrainingTask& task, const TrainingJob& job, const GpuRun& on,
                                  const engine::NamedArrays& weights, engine::NamedArrays* trained) {
  engine::TaskList tasks = job.tasks;
  if (on.transport)
    ASSAY_SET(tasks,
              engine::task_list(job.program, task.imported.model, task.seed, {on.transport->rank(), job.pipeline}));
  ASSAY_TRY(session, engine::CudaSession::open(on.engine, std::move(tasks), task.adam, on.transport));
  ASSAY_CHECK(session.set_weights(weights));
  TrainedJob out;
  for (std::int64_t step = 0; step < task.steps && !engine::is_any_stopped(on.transport); ++step) {
    const engine::TextBatch batch = engine::text_batch(task.text.tokens, task.sequences, task.length, task.seed, step);
    if (step == 1) session.reset_clocks();  // the first step also chooses and loads kernels
    ASSAY_TRY(timed, session.step(batch.tokens, batch.targets));
    out.steps.push_back(timed.step);
    out.times.push_back(timed.time);
  }
  if (trained) ASSAY_SET(*trained, session.weights());
  out.clocks = session.clocks();
  out.timed_steps = std::max<std::int64_t>(1, std::ssize(out.steps) - 1);
  out.device = session.device();
  out.network = session.network();
  out.memory = session.memory();
  return out;
}

}  // namespace assay::verbs::run
