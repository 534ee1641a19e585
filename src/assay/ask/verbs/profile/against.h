// A profile beside what a request predicts of it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "assay/ask/verbs/profile/query.h"
#include "assay/ask/verbs/request.h"
#include "assay/profile/compare/recovered.h"
#include "assay/profile/compare/waterfall.h"

namespace assay::verbs::profile {

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

}  // namespace assay::verbs::profile
