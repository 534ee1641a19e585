// What `assay train` is asked, read and checked.
#pragma once
#include "assay/ask/verbs/assumed_software.h"
#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"
#include "assay/model/import/config_import.h"
#include "assay/predict/search/training/search.h"

namespace assay::verbs::train {

/// Memory of a chip that a plan leaves free.
struct MemoryMargin {
  std::string text = "interval";  ///< as --memory-margin writes it
  Bytes budget;                   ///< that a plan may use
  double spread = 0;              ///< of measured peaks above their estimate, for the margin of the interval
  std::optional<double> share;    ///< of the chip's memory, where the margin is one
};

struct TrainQuery {
  model::ImportedModel imported;
  hardware::Cluster cluster;
  training::TrainingQuestion question;   ///< its setup points at `imported`; see bind()
  search::TrainingChoices choices;       ///< that keep to the software
  search::TrainingChoices open_choices;  ///< the same of the open space
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

/// The options of a strategy and of number formats, for the verb table.
std::vector<OptionSpec> train_options();

}  // namespace assay::verbs::train
