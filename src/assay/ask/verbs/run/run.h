// assay run: what is executed rather than predicted. The first word says what: a file with a program, or a kind of run.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/request.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/engine/cuda/cuda_session.h"
#include "assay/engine/language/run_text.h"
#include "assay/engine/program/activity.h"
#include "assay/engine/program/training_session.h"
#include "assay/engine/ranks/mpi.h"
#include "assay/engine/serving/server.h"
#include "assay/engine/text/published_tokenizer.h"
#include "assay/engine/text/tokens.h"
#include "assay/hardware/cluster.h"
#include "assay/model/import/config_import.h"
#include "assay/predict/clock/step_time.h"
#include "assay/predict/collective/core_turns.h"
#include "assay/predict/search/training/search.h"
#include "assay/predict/training/step.h"
#include "assay/program/lower/strategy.h"

namespace assay::verbs::run {

/// A program in the language of language/, from a file or from --eval.
Result<report::Response> program_answer(const Request& request, const Context& context);

/// Training of a model on text, under any strategy.
Result<report::Response> train_answer(const Request& request, const Context& context);

std::optional<report::Screen> screen_of(const Request& request, const report::Response& answer);

// Serving as a kind of run.

Result<report::Response> serve_answer(const Request& request, const Context& context);

// A program that is planned and priced without being executed.

/// The answer about a program in StableHLO.
Result<report::Response> planned_answer(const Request& request, const Context& context, std::string text,
                                        const std::string& name);

// The engine that a run is executed by: virtual devices in this process, ranks of MPI with a device each, or a GPU.

/// Whether a request asks for a GPU.
bool is_on_gpu(const Request& request);

/// The GPU of a process, what a run takes of its memory, and what carries collectives between GPUs, if anything.
struct UsedGpu {
  std::string device;
  Bytes memory;
  std::string network;
};
void add_gpu(const UsedGpu& gpu, report::Response& response);

/// A run that is ready: how many devices it takes (nothing: any number), and what does it.
struct PreparedRun {
  std::optional<std::int64_t> devices;
  std::function<Result<report::Response>(engine::Transport*)> run;
};

/// Prepares a run in every process and, if all of them could, runs it. Rank 0 answers. A run on one GPU does without a
/// transport; on several, every rank has one.
Result<report::Response> run_on_engine(const Request& request, const Context& context,
                                       const std::function<Result<PreparedRun>()>& prepare);

/// The same on ranks, whatever --engine says.
Result<report::Response> run_on_ranks(const Request& request, const Context& context,
                                      const std::function<Result<PreparedRun>()>& prepare);

// The model of a run: one of the catalogue or a configuration, as small as options make it.

/// The text that a model is trained on and prompted with.
struct RunText {
  std::string name, text;
  engine::Tokenizer tokenizer;
  std::vector<int> tokens;
};
Result<RunText> read_text(const Request& request, const Context& context);

/// The second argument of a run as a model with so many tokens; notes say what was made smaller.
Result<model::ImportedModel> read_model(const Request& request, const Context& context, std::int64_t vocabulary,
                                        std::vector<std::string>& notes);

/// A model with the weights that its directory has, and what it reads and writes text with.
struct PublishedModel {
  model::ImportedModel imported;
  engine::NamedArrays weights;
  std::optional<engine::PublishedTokenizer> tokenizer;
  std::vector<int> ends;  ///< tokens that end an answer
};
/// Whether a word on the command line is a directory with weights.
bool is_published(const std::string& path);
Result<PublishedModel> read_published_model(const Request& request, const Context& context,
                                            std::vector<std::string>& notes);
/// Prompts of --prompt and --tokens, each to be continued by so many tokens.
Result<std::vector<engine::Prompt>> published_prompts(const Request& request, const PublishedModel& model,
                                                      std::int64_t wanted);

/// Devices are virtual or ranks: no run has thousands.
Result<void> check_devices(const lower::Parallelism& parallelism);

/// "4 layers, d_model 64, 0.21 M parameters"
std::string size_text(const model::Transformer& model);

// Collectives that block against the same ones beside other steps: what ranks did in both, and what was predicted.

/// An error where there are no ranks whose steps could overlap.
Result<void> check_overlap(const Request& request);

/// What ranks did, with collectives that block and with those that travel beside other steps.
struct MeasuredOverlap {
  engine::RankActivities blocking, overlapped;
  double turns = 1;  ///< of ranks on the cores that they share
};

/// Adds times, what was hidden, and a timeline, which is the picture where one is asked for. Returns a sentence on it.
std::string add_overlap(const Request& request, const program::Program& program,
                        const std::function<std::string(int step)>& name, const MeasuredOverlap& measured,
                        const std::optional<clock::OverlapTimes>& predicted, report::Response& response);

// A training run as it is asked for: model, text, strategy and the program that all devices run.

/// What all strategies of a request have in common.
struct TrainingTask {
  RunText text;
  model::ImportedModel imported;
  std::int64_t sequences = 0, length = 0, steps = 0;
  std::uint64_t seed = 0;
  engine::AdamW adam;
  std::vector<std::string> notes;
  engine::NamedArrays moments = {};  ///< of a run that is continued
  std::int64_t done = 0;             ///< steps that it made
  std::string save_to = {};          ///< empty: nowhere
  std::int64_t save_every = 0;       ///< steps; 0: only at the end
};
/// A checkpoint of a run: its weights, and what continues it.
std::string checkpoint_bytes(const TrainingTask& task, engine::NamedArrays weights, std::int64_t steps);
Result<TrainingTask> read_task(const Request& request, const Context& context);

/// A strategy with its program.
struct TrainingJob {
  training::Strategy strategy;
  training::TrainingQuestion question;  ///< its setup points at the task's model
  clock::PipelineShape pipeline;
  program::Program program;
  engine::TaskList tasks;  ///< of a GPU

  std::int64_t devices() const { return strategy.parallelism.devices(); }
};
/// Virtual devices compute in fp64; a GPU in the formats that `assay train` predicts.
enum class Numerics { exact, mixed };
/// What a request chooses, one device where it does not.
Result<lower::Parallelism> parallelism_of(const search::TrainingChoices& choices, const model::Transformer& model);
/// The strategy of a request's options; an error where it cannot run.
Result<TrainingJob> make_job(const Request& request, const TrainingTask& task, Numerics numerics = Numerics::exact);
/// The same request on one device.
Request on_one_device(const Request& request);
/// The strategies of --compare: "tp=2; fsdp=2 zero=1" are the options --tp 2, and --fsdp 2 --zero 1.
Result<std::vector<Request>> compared_requests(const Request& request);

/// Where the time of a rank went, over all steps.
struct RankTime {
  Seconds computing, moving;
  Seconds waiting;  ///< for the other members of collectives
  Seconds behind;   ///< for collectives that travel beside steps, and were not done yet
  Seconds stages;   ///< for other stages, with what they send
};

/// An executed strategy.
struct TrainedJob {
  std::vector<engine::TrainedStep> steps;
  std::vector<Seconds> times;  ///< by step
  engine::RunFacts facts;
  std::vector<engine::StepClock> clocks;
  engine::TrainingSession::Hidden hidden;
  std::int64_t timed_steps = 0;      ///< in `clocks`
  std::vector<RankTime> ranks;       ///< where all ranks are on one machine, and have one clock
  engine::RankActivities last_step;  ///< the same: what they did in it
  engine::LocalRank local{0, 0, 0};  ///< of this machine's ranks; none: all devices are in this process
  std::string device;                ///< of a GPU: "NVIDIA H200"
  std::string network;               ///< between GPUs: "NCCL 2.28.3"
  Bytes memory;                      ///< of a GPU, in use

  /// Of ranks on the cores of this machine.
  double turns() const {
    return collective::core_turns(static_cast<double>(local.count), static_cast<double>(local.cores));
  }
};
/// Runs all steps, starting from `weights`; the last weights are written to `trained` where it is given.
TrainedJob run_job(const TrainingTask& task, const TrainingJob& job, const engine::NamedArrays& weights,
                   engine::Transport* transport, engine::NamedArrays* trained = nullptr,
                   engine::Overlap overlap = engine::Overlap::hidden);

/// The GPU of this process and, with a transport, those of others.
struct GpuRun {
  const AssayCuda& engine;
  engine::Transport* transport = nullptr;
};
/// The same on GPUs. No weights: they are drawn there, as initial_weights() draws them.
Result<TrainedJob> run_job_on_gpu(const TrainingTask& task, const TrainingJob& job, const GpuRun& on,
                                  const engine::NamedArrays& weights, engine::NamedArrays* trained = nullptr);

// What a run took beside what was predicted for the chip that it ran on.

/// The chip that `assay measure` makes of this machine.
inline constexpr std::string_view host_chip = "host";
inline constexpr std::string_view measure_note =
    "`assay measure --threads 1` measures this machine; a run then shows its prediction";

/// What a run is predicted for: --on, or the GPU by the name that its driver gives it, or this machine.
std::string predicted_on(const Request& request, std::int64_t devices, const std::string& device);
/// That measured and predicted are of different chips.
std::string other_chip_note(std::string_view cluster);

/// How much longer work takes on ranks that share the cores of this machine; not at all where there are cores enough.
struct CoreSharing {
  double ranks = 1, cores = 1;

  double kernel() const { return std::max(1.0, ranks / cores); }
  /// All groups run at once, and a prediction knows that members of the same one share cores.
  double collective(double group) const {
    return collective::core_turns(ranks, cores) / collective::core_turns(std::min(group, ranks), cores);
  }
};
/// None on other chips. A note says how many ranks share cores.
CoreSharing core_sharing(const engine::LocalRank& local, const hardware::Cluster& cluster, report::Response& response);

/// Seconds, measured and predicted.
report::Members pair_row(std::string what, Seconds measured, Seconds predicted);

/// Adds the seconds of a step by kind of work, measured and predicted for --on, or else for the chip `host` if
/// `assay measure` has made one; a note where nothing can be predicted. Returns what is predicted of collectives beside
/// other steps.
std::optional<clock::OverlapTimes> predict(const Request& request, const Context& context, const TrainingTask& task,
                                           const TrainingJob& job, const TrainedJob& run, report::Response& response);

// What a serving run did and what it took, beside what was predicted.

// What a serving run did, step by step: calls of the engine, slots of the batch, threads, pages of the cache.

struct ServedRun {
  const std::vector<engine::Prompt>& prompts;
  const engine::ServerReport& report;                        ///< with its calls
  std::function<std::string(const std::vector<int>&)> text;  ///< of tokens
};

/// prefill, insert and generate, in the order of the calls; one generate is for all sequences of the batch.
report::Items call_rows(const engine::ServerReport& report);
/// Which request is in which slot, iteration by iteration.
draw::Scene slots_picture(const engine::ServerReport& report);

/// The work of each new token of the first request, with a cache and without.
struct WorkView {
  report::Items rows;
  std::string sentence;
  draw::Scene picture;
};
WorkView work_view(const model::Transformer& model, const engine::Prompt& prompt);

/// What the thread of the prompts and the one that decodes did, and when.
struct ThreadsView {
  report::Members members;
  std::vector<std::string> sentences;
  draw::Scene picture;
};
ThreadsView threads_view(const engine::ServerReport& report, std::int64_t queue);

/// The same sequences in a cache of pages: tables at every iteration, copies, and what is not used.
struct PagesView {
  report::Members members;
  std::vector<draw::Scene> frames;  ///< where wanted
};
PagesView pages_view(const ServedRun& run, std::int64_t page, bool draws);

// What the steps of a server took beside what was predicted for the chip that they ran on.

/// A run whose steps are predicted.
struct PredictedServer {
  const model::Transformer& model;
  const engine::ServerOptions& options;
  const engine::ServerReport& report;
  std::string device;                ///< of a GPU: "NVIDIA H200"; otherwise this machine
  engine::LocalRank local{0, 0, 0};  ///< of this machine's ranks; none: all devices are in this process
};

/// Adds the seconds of prefills and of decode steps, measured and predicted for --on, the GPU, or the chip `host` if
/// `assay measure` has made one; a note where nothing can be predicted.
void predict_serving(const Request& request, const Context& context, const PredictedServer& run,
                     report::Response& response);

// What devices hold while a program runs.

/// The tensors of --show, which the program must have.
Result<std::vector<std::string>> shown_names(const Request& request, const language::Compiled& compiled);

/// What every device holds of these tensors, at the start and after each step that makes one.
Result<report::Items> shown_rows(const language::Compiled& compiled, const engine::TextRun& run,
                                 const std::vector<std::string>& names);

/// An array as nested lists.
report::Value nested(const engine::Array& array);

/// The type as explicit programs have it: "bf16[8@X, 16]".
std::string type_text(const program::Mesh& mesh, const program::Tensor& tensor);

}  // namespace assay::verbs::run
