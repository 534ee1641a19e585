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
#include "assay/profile/compare/recovered.h"
#include "assay/profile/compare/waterfall.h"
#include "assay/profile/trace/summary.h"

namespace assay::verbs::profile {

// A request for a profile, read: the traces with what they say, and the chip they ran on.

/// A file by its name and what it holds, so that front ends may send profiles they never wrote to a disk.
struct Source {
  std::string name, bytes;
};

/// A device of one of the traces.
struct Device {
  std::size_t trace = 0;
  trace::DeviceSummary summary;
};

struct Query {
  const trace::Vocabulary* vocabulary = nullptr;
  std::vector<trace::Trace> traces;
  std::vector<Device> devices;
  std::optional<Device> before;        ///< where two profiles are compared: of the first one
  std::size_t shown = 0;               ///< the device that the answer is about: the one that computes longest
  std::optional<hardware::Chip> chip;  ///< of all devices
  std::vector<std::string> notes;

  const Device& device() const { return devices[shown]; }
};

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
};
Result<Predicted> predict(const Request& request, const Context& context);

/// The request of --against: a command line, a request in JSON, or @FILE with one of them.
Result<Request> read_against(const std::string& text, std::string_view where);

/// The difference of a profile from a prediction, and what to do about each part of it.
struct Comparison {
  std::string command;  ///< the request as a command line
  compare::Prediction prediction;
  compare::MeasuredStep measured;
  compare::Matching matching;
  compare::Waterfall waterfall;
  std::vector<std::string> remedies;  ///< of each item
  std::vector<std::string> notes;
};
Result<Comparison> compare_with(const Query& query, const Request& against, const Context& context);

/// The request that the shapes of a profile imply.
struct Recovered {
  compare::RecoveredRun run;
  std::string model, command;
  bool alone = true;  ///< the run had one rank
};
Result<Recovered> recover_request(const Query& query, const Context& context);
void add_recovered(const Recovered& recovered, report::Members& out);

void add_against(const Comparison& comparison, report::Members& out);
draw::Scene waterfall_picture(const Comparison& comparison);
std::string against_headline(const Comparison& comparison);
/// Whether an answer holds a comparison with a prediction, and its screen.
report::Screen against_screen(const report::Response& answer);

// What to do about each part of the difference between a profile and a prediction.

/// "products", "kernels around products", "norms that did not run", "host gaps".
std::string item_name(const compare::GapItem& item);

/// A kernel by its name as far as people read it.
std::string kernel_name(std::string_view name);

/// One sentence for each item, from what ran and from what the same request predicts with other kernels; empty for
/// those too small to matter.
std::vector<std::string> remedies_of(const Comparison& comparison, const Request& against, const Context& context);

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
/// The rank that others wait for, where computation differs between ranks by more than 2 %.
void add_straggler(const Query& query, report::Members& out);

/// What got slower and what faster since the first of two profiles, for each step where both have steps.
void add_comparison(const Query& query, report::Members& out);

/// Events of the shown device on its streams, coloured by category, with the steps.
draw::Timeline timeline_of(const Query& query);
/// The same as a picture, above the time of each category.
draw::Scene picture_of(const Query& query);

std::optional<report::Screen> screen_of(const Request& request, const report::Response& answer);

}  // namespace assay::verbs::profile
