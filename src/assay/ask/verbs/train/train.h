// The parts of `assay train`: the question, its plans on one cluster or several, and what is shown of them.
#pragma once
#include <deque>
#include <memory>
#include <string>

#include "assay/ask/draw/scene.h"
#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/launch/target.h"
#include "assay/ask/report/document.h"
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/assumed_software.h"
#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"
#include "assay/model/import/config_import.h"
#include "assay/predict/search/training/search.h"
#include "assay/predict/training/limits.h"
#include "assay/predict/training/memory_curve.h"
#include "assay/predict/training/run.h"

namespace assay::verbs::train {

// What `assay train` is asked, read and checked.

/// Memory of a chip that a plan leaves free.
struct MemoryMargin {
  std::string text;             ///< as --memory-margin writes it
  Bytes budget;                 ///< that a plan may use
  double spread = 0;            ///< of measured peaks above their estimate, for the margin of the interval
  std::optional<double> share;  ///< of the chip's memory, where the margin is one
};

struct TrainQuery {
  model::ImportedModel imported;
  hardware::Cluster cluster;
  training::TrainingQuestion question;   ///< its setup points at `imported`; see bind()
  search::TrainingChoices choices;       ///< that keep to the software
  search::TrainingChoices open_choices;  ///< the same of the open space
  std::string refused_by;                ///< the software that cannot run what was asked for; may be empty
  std::vector<std::string> refused;      ///< what the usual software cannot run
  MemoryMargin margin;
  std::int64_t sequence = 0;
  double batch_tokens = 0;
  std::optional<double> tokens;  ///< of the whole run
  Dtype compute = Dtype::bf16;
  std::optional<Watts> power;  ///< limit of each chip, if below the chip's own
  std::size_t top = 5;
  AssumedSoftware software;
  std::optional<numbers::StepCalibration> steps;  ///< if the chip has a calibration
  std::vector<std::string> notes;                 ///< defaults taken

  /// Call once the query is at its final place.
  void bind() { question.setup.model = &imported.model; }
};

/// The question on one cluster.
Result<TrainQuery> read_train_query(const Request& request, const Context& context, const hardware::Cluster& cluster);

/// The choices of a strategy that a request fixes.
Result<void> read_choices(const Request& request, const AssumedSoftware& software, search::TrainingChoices& choices);

// Training software, and how far whole steps are from their estimate.

/// Calibrated kernels, collectives and steps, for the requested software or good software.
Result<void> read_train_software(const Request& request, const Context& context, TrainQuery& query);

/// The time of a step or a run, with the interval of four in five measured steps of this class and in which ways the
/// step extrapolates, if known.
report::Members time_range(const TrainQuery& query, Seconds lower, Seconds estimate, Seconds upper);

// The memory of a training plan: the margin it must keep, the verdict on it, and how far measured peaks are from their
// estimate.

/// Reads --memory-margin; the calibrated steps are known by then.
Result<void> read_memory_margin(const Request& request, TrainQuery& query);

/// Whether a strategy fits with the margin, only without it, or not at all.
enum class MemoryVerdict : std::uint8_t { fits, tight, no };
MemoryVerdict memory_verdict(const TrainQuery& query, const training::TrainingCost& cost);
std::string_view name_of(MemoryVerdict verdict);
/// "fits (70.1 of 85.9 GB)", for the headline.
std::string verdict_text(const TrainQuery& query, const training::TrainingCost& cost);

/// What a chip holds at the peak, with the verdict and its reason.
report::Members memory_members(const TrainQuery& query, const training::TrainingCost& cost);

/// The interval of four in five measured peaks, if known.
report::Members memory_interval(const TrainQuery& query, const training::MemoryParts& memory);

// The rules of a training strategy: each error names the broken rule and the nearest legal values.

/// Checks the given choices before any search.
Result<void> check_choices(const TrainQuery& query);

/// Limits the search to what the software can express. Choices that it cannot are an error if the request names the
/// software; the usual software gives way to them, with a note.
Result<void> keep_to_software(TrainQuery& query);
/// Searches the open space instead, and says why.
void widen(TrainQuery& query, std::string_view why);

/// Why no strategy of the space can be run at all: batch, microbatch, interleaving or schedule.
Error why_nothing_runs(const TrainQuery& query);

/// Notes options that have no effect on a strategy, and what they need.
void add_idle_notes(const Request& request, const TrainQuery& query, const training::Strategy& strategy,
                    std::vector<std::string>& notes);

// The run of `assay train --tokens`: what the request says of it, and how it is shown.

/// The run of --tokens with a strategy; one step where they are not given.
Result<training::TrainingRun> read_run(const Request& request, const TrainQuery& query,
                                       const training::TrainingCost& cost);

/// Adds steps, goodput, time, cost and energy to an answer.
Result<void> add_run(const Request& request, const TrainQuery& query, const training::TrainingCost& cost,
                     report::Response& response);

/// Derives time, cost and energy from the time of a step, and adds them to `derived`.
Result<void> explain_run(const Traced& num, const Request& request, const TrainQuery& query,
                         const training::TrainingCost& cost, const NumberOf<Traced, Seconds>& step,
                         std::vector<int>& derived);

// `assay train` over several clusters: the best strategy of each, which of them the objective picks, and the front of
// time against cost.

enum class TrainObjective { time, cost, chips };

/// One cluster with its best strategy.
struct SizedTraining {
  TrainQuery query;
  search::TrainingSearch found;
  std::optional<training::TrainingRun> run;             ///< of the best strategy, where one fits
  bool meets = true;                                    ///< the deadline, if there is one
  std::string why_not;                                  ///< the rule that forbids this size
  std::shared_ptr<search::TrainingCaches> caches = {};  ///< of the only size, for further searches

  bool fits() const { return !found.best.empty(); }
  const search::Candidate* shown() const {
    return fits() ? &found.best.front() : found.closest ? &*found.closest : nullptr;
  }
};

struct TrainSizes {
  std::deque<SizedTraining> all;  ///< queries stay where they are
  std::size_t chosen = 0;
  TrainObjective objective = TrainObjective::time;
  std::optional<Seconds> deadline;
  bool several = false;  ///< a range or a list was asked for
  bool wants_front = false;
  bool quick = false;  ///< the search goes up from the fewest chips and ends at the first that meets the deadline
  std::vector<std::string> notes;

  SizedTraining& best() { return all[chosen]; }
};

/// Searches every cluster of --on; an error where a single cluster is wrong, or none of several is possible.
Result<TrainSizes> train_sizes(const Request& request, const Context& context);

/// Time against cost, or against chips where nothing has a price.
struct SizesFront {
  std::vector<const SizedTraining*> compared, unpriced;
  std::vector<const SizedTraining*> front;  ///< of those that are compared: none is both faster and cheaper
  bool priced = false;

  double price_of(const SizedTraining& size) const {
    return priced ? size.run->cost->value() : size.query.question.chips;
  }
};
SizesFront sizes_front(const TrainSizes& sizes);

/// Adds the table of all sizes and, where asked for, the front.
void add_sizes(const Request& request, const TrainSizes& sizes, report::Response& response);

/// Puts the cluster that was picked, or why none would do, into the headline.
void say_choice(const TrainSizes& sizes, report::Response& response);

/// The front if it is asked for, else time and cost against chips with the ideal line of each chip.
draw::Scene sizes_picture(const TrainSizes& sizes);

// The open space of training strategies beside those that the software can express.

/// Searches the cluster of a question with what its software can express. Where that is nothing at all, the usual
/// software gives way to the open space, and software that the request names is an error.
Result<search::TrainingSearch> search_plans(TrainQuery& query, search::TrainingCaches& caches,
                                            const search::SearchLimits& limits);

/// The best strategy of the open space, if it is faster than the one shown or fits where that does not.
Result<std::optional<search::Candidate>> better_in_open_space(const SizedTraining& size);

/// Adds what the open space would gain, and says it where that is worth a word.
Result<void> add_open_space(const SizedTraining& size, report::Response& response);

// A plan as a row of an answer: where measurements put its time, whether it fits, and the request that asks for it.

/// The request that asks for this plan alone: every choice is written out, what else was asked for is left out.
Request plan_request(const Request& request, const TrainQuery& query, const training::Strategy& strategy);

/// Adds interval, memory and arguments of a plan.
void add_plan(const Request& request, const TrainQuery& query, const search::Candidate& plan, report::Members& row);

// `assay train --emit` and `--improve`: the answered plan as something to run, and better plans next to it.

/// A strategy and its question as fields of a plan: options of the request, and what else programs ask for.
launch::Settings plan_of(const TrainQuery& query, const training::Strategy& strategy);

/// The search for a plan that the target of --emit, else of the assumed software, can run. Where the best plan is of a
/// kind that it cannot run, the search is repeated with the nearest that it can; the request gets these options, and
/// notes say so.
Result<TrainSizes> sizes_to_run(Request& request, const Context& context, std::vector<std::string>& notes);

/// The script of --emit, as the answer; `notes` are those of sizes_to_run(). An error where what it says would not be
/// read as the same plan.
Result<void> add_launch(const Request& request, const Context& context, const SizedTraining& size,
                        const std::vector<std::string>& notes, report::Response& response);

/// Rows of plans that differ in one choice and are faster, or fit where this one does not; where the software can run
/// this plan, those that it can run, too.
Result<report::Items> change_rows(const Request& request, const hardware::Catalogue& catalogue, const TrainQuery& query,
                                  const search::Candidate& plan, bool fits);

/// Rows of changes to the request that would fit: without what it fixes of the plan, narrower formats, the longest
/// sequence, the fewest chips, adapters alone.
report::Items ways_out(const Request& request, const Context& context, const TrainQuery& query);
/// The next power of two below a number of chips, where a step takes no longer there: few plans split other numbers.
std::optional<report::Members> fewer_chips(const Request& request, const Context& context, const SizedTraining& size);

// The limits of a training step as rows and members of an answer.

/// The limits as rows: time, and how many times longer each would have to take to limit the step.
report::Items limit_rows(const training::TrainingCost& cost);

/// The microbatch, batch and tensor parallelism at which the limiter would change.
report::Members threshold_members(const TrainQuery& query, const search::Candidate& best);

// Sensitivity of `assay train`, as its answer shows it.

/// Adds how the step depends on each hardware rate, the batch, the sequence and chip memory, and its picture.
Result<void> add_sensitivity(const Request& request, const Context& context, const SizedTraining& size,
                             report::Response& response);

// The one screen that `assay train` answers with.

/// From the results; `plan` is the strategy that they show.
report::Screen train_screen(const Request& request, const report::Response& response, const std::string& plan);

// What `assay train` shows in detail: the program line by line, the pipeline as a timeline, why others are slower.

/// Where the time of a step goes, by phase and kind of work.
Result<report::Items> kind_rows(const TrainQuery& query, const training::Strategy& strategy);

/// The program of a strategy, one row a step, with what it costs on the cluster.
Result<report::Items> program_rows(const TrainQuery& query, const training::Strategy& strategy);
/// Totals of the program on one device, over all layers and microbatches.
report::Members program_totals(const TrainQuery& query, const training::Strategy& strategy);

/// "fsdp 32, tp 2, sequence-parallel, micro-batch 1"
std::string strategy_text(const training::Strategy& strategy);

/// The part of a step on which another strategy loses most time.
std::string why_slower(const training::TrainingCost& best, const training::TrainingCost& other);

/// A step event by event, of every stage or of the fullest one, with the memory of that one.
struct SimulatedStep {
  clock::PipelineShape shape;
  clock::PipelineResult run;
  std::vector<training::MemoryMoment> memory;
};
Result<SimulatedStep> simulated_step(const TrainQuery& query, const search::Candidate& best, bool of_every_stage);

/// Memory of the fullest stage at a few moments of the step.
report::Items memory_rows(const SimulatedStep& step);
/// The pipeline of one step, or the resources of some layers.
Result<draw::Timeline> step_timeline(const TrainQuery& query, const search::Candidate& best, const SimulatedStep& step);
draw::Scene training_picture(const TrainQuery& query, const search::Candidate& best, const Result<SimulatedStep>& step);

}  // namespace assay::verbs::train
