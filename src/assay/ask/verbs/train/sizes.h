// `assay train` over several clusters: the best strategy of each, which of them the objective picks, and the front of
// time against cost.
#pragma once
#include <deque>
#include <memory>

#include "assay/ask/draw/scene.h"
#include "assay/ask/verbs/train/run.h"
#include "assay/predict/search/training/search.h"

namespace assay::verbs::train {

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

}  // namespace assay::verbs::train
