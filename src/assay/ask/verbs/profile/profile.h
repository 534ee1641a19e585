// The parts of `assay profile`: what it is asked, what it says of a profile, and of a profile beside a prediction.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/report/screen.h"
#include "assay/ask/verbs/request.h"
#include "assay/hardware/chip.h"
#include "assay/profile/compare/advice.h"
#include "assay/profile/compare/process_groups.h"
#include "assay/profile/compare/ranks.h"
#include "assay/profile/compare/recovered.h"
#include "assay/profile/compare/waterfall.h"
#include "assay/profile/trace/archive.h"
#include "assay/profile/trace/bytes.h"
#include "assay/profile/trace/summary.h"

namespace assay::verbs::profile {

// A request for a profile, read: the traces with what they say, and the chip they ran on.

/// A file by its name and what it holds, so that front ends may send profiles they never wrote to a disk; of many
/// files, the place where it is read.
struct Source {
  std::string name, bytes;
  std::optional<trace::FilePart> part = {};
  std::optional<trace::MappedFile> file = {};  ///< has the bytes, where it is set

  std::string_view content() const { return file ? file->bytes() : std::string_view(bytes); }
};
/// The sources that arguments name: files, attached ones, texts of programs, and all profiles of a folder, a pattern or
/// a tar file.
Result<std::vector<Source>> sources_of(const std::vector<std::string>& arguments, std::string_view where,
                                       const Context& context);
/// The source with its bytes, inflated.
Result<Source> opened(Source source);

/// Waiting for one rank, and computing longer than others, is said from this share of the time on.
inline constexpr double notable_wait = 0.02;

/// A device of one of the traces.
struct Device {
  std::size_t trace = 0;
  trace::DeviceSummary summary;
};

struct Query {
  const trace::Vocabulary* vocabulary = nullptr;
  std::vector<trace::Trace> traces;  ///< of ranks, that of the shown one alone
  Device shown;                      ///< the device that the answer is about: the one that others wait for
  std::optional<Device> before;      ///< where two profiles are compared: of the first one
  std::vector<trace::RankSummary> ranks;
  bool over_time = false;      ///< `ranks` are runs of one program, in the order of the request
  std::size_t shown_rank = 0;  ///< in `ranks`
  compare::RankComparison beside;
  std::optional<std::size_t> waited_for;  ///< in `ranks`
  compare::RunMesh mesh;
  std::optional<hardware::Chip> chip;  ///< of all devices
  std::vector<std::string> notes;

  const Device& device() const { return shown; }
};

/// One step of the device that is shown; other ranks tell waiting from moving.
compare::MeasuredStep measured_of(const Query& query);

/// What a request is about: profiles, and captures of the graphs that they replay.
struct Sources {
  std::vector<Source> profiles, captures;
};

Result<Query> read_query(const Request& request, const Context& context, Sources sources);

/// The answer for profiles in memory; the verb reads them from files.
Result<report::Response> answer_of(const Request& request, const Context& context, Sources sources);

// A profile beside what a request predicts of it.

/// What a request of train or serve predicts, by the same path as its answer.
struct Predicted {
  std::vector<compare::Prediction> steps;  ///< of serve: a decode step and a prefill
  std::string chip, chips;                 ///< of its cluster: the chip's id, and the cluster as it is written
  std::int64_t devices = 1;
  bool fits = true;
};
Result<Predicted> predict(const Request& request, const Context& context);

/// The request of --against: a command line, a request in JSON, or @FILE with one of them.
Result<Request> read_against(const std::string& text, std::string_view where);

/// The difference of a profile from a prediction.
struct Comparison {
  std::string command;  ///< the request as a command line
  compare::Prediction prediction;
  compare::MeasuredStep measured;
  compare::Matching matching;
  compare::Waterfall waterfall;
  bool fits = true;  ///< the request, into the memory of its chips
  std::vector<std::string> notes;
};
Result<Comparison> compare_with(const Query& query, const compare::MeasuredStep& measured, const Request& against,
                                const Context& context);
/// The request as a person would type it.
std::string command_of(const Request& request);

/// The request that the shapes of a profile imply.
struct Recovered {
  compare::RecoveredRun run;
  std::string model, command;
  bool alone = true;  ///< the run had one rank
};
Result<Recovered> recover_request(const Query& query, const compare::MeasuredStep& measured, const Context& context);
void add_recovered(const Recovered& recovered, report::Members& out);

// What can be saved.

/// A change with what it saves of a step, or of the whole profile.
struct Remedy {
  const trace::RemedyText* text = nullptr;
  compare::Saving saving;
  std::string lines = {};    ///< of code, or options of the software that ran
  std::string request = {};  ///< with the change, where the engine priced it; else the profile did
};

/// The largest saving first. With a comparison, the engine prices changes of the request that it is with.
std::vector<Remedy> remedies_of(const Query& query, const compare::MeasuredStep& measured, const Comparison* comparison,
                                const Request* against, const Context& context);
/// What saves most of an item of the difference; empty where nothing does.
std::string remedy_of(const compare::GapItem& item, const Comparison& comparison, const std::vector<Remedy>& remedies);
/// `time` is what they save of.
void add_advice(const std::vector<Remedy>& remedies, Seconds time, report::Members& out);

/// "products", "kernels around products", "norms that did not run", "host gaps".
std::string item_name(const compare::GapItem& item);

/// A kernel by its name as far as people read it.
std::string kernel_name(std::string_view name);

void add_against(const Comparison& comparison, const std::vector<Remedy>& remedies, report::Members& out);
draw::Scene waterfall_picture(const Comparison& comparison);
/// From one time to another by changes that add up to the difference.
struct ChangeStory {
  std::string title, subtitle, from, to;
  Seconds before, after;
  std::vector<std::pair<std::string, Seconds>> changes;
};
draw::Scene change_picture(const ChangeStory& story);
std::string against_headline(const Comparison& comparison);
/// Whether an answer holds a comparison with a prediction, and its screen.
report::Screen against_screen(const report::Response& answer);

// The parts of an answer about a profile.

/// A kernel without its arguments, templates and namespaces.
std::string short_kernel(std::string_view name);

void add_times(const trace::DeviceTimes& times, report::Members& out);
report::Items category_rows(const Query& query, const trace::DeviceSummary& summary);
report::Items operation_rows(const Query& query);
report::Items gap_rows(const trace::DeviceSummary& summary);
report::Items stream_rows(const trace::DeviceSummary& summary);
report::Items rank_rows(const Query& query);
/// FLOP of all operations with known shapes, and the share of the peak that they are over the whole time.
void add_rates(const Query& query, report::Members& out);
/// Steps and how much they differ.
void add_steps(const trace::DeviceSummary& summary, report::Members& out);
/// The mesh of a run of several ranks, as far as its groups tell it.
void add_mesh(const Query& query, report::Members& out);
/// Of the rank that is shown: what collectives cost without waiting, against the link of the chip.
void add_collectives(const Query& query, report::Members& out);
/// The rank that others wait for, and why; without collectives, the one that computes longest.
void add_straggler(const Query& query, report::Members& out);

/// What got slower and what faster since the first of two profiles, for each step where both have steps.
void add_comparison(const Query& query, report::Members& out);
draw::Scene comparison_picture(const Query& query);

/// What changed over the runs of a program.
report::Response runs_answer(const Query& query);

/// Events of the shown device on its streams, coloured by category, with the steps.
draw::Timeline timeline_of(const Query& query);
/// The same as a picture, above the time of each category.
draw::Scene picture_of(const Query& query);

std::optional<report::Screen> screen_of(const Request& request, const report::Response& answer);

}  // namespace assay::verbs::profile
