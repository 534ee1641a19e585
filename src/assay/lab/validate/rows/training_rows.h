// Measured training steps: rows of a table as a model, a cluster and a strategy, and as requests of `assay train`.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/lab/validate/rows/csv.h"
#include "assay/lab/validate/rows/table_line.h"
#include "assay/lab/validate/validation.h"
#include "assay/predict/kernel/software/software_options.h"
#include "assay/predict/search/training/search.h"

namespace assay::validate {

/// What a memory peak includes.
enum class MemoryView : std::uint8_t {
  allocated,  ///< tensors, as the framework counts them
  reserved,   ///< memory held by its allocator
  driver      ///< all of the chip's memory in use, as nvidia-smi shows it
};

struct TrainingRow : RowModel {
  std::string id, group, what;              ///< group: source, model, hardware
  std::string cluster;                      ///< in the CLUSTER grammar
  std::string chip, family;                 ///< of its devices; no family: empty
  bool compiled_whole = false;              ///< a compiler turns a whole step into one program on its chips
  std::vector<hardware::Override> changes;  ///< differences between the measured part and the catalogue's chip
  training::Strategy strategy;
  double sequences = 1;
  std::int64_t sequence = 1;
  Dtype compute = Dtype::bf16;
  Dtype gradients = Dtype::fp32;
  bool small_states = false;  ///< moments in bf16, no master copy
  MemoryView view = MemoryView::allocated;
  bool states_recompute = true;  ///< false: nothing is recomputed if that fits in memory, otherwise as little as fits
  kernel::TrainingSoftware software;
  std::string framework;       ///< its id; empty: none
  std::optional<Watts> power;  ///< limit of each chip, if it is below the catalogue's
  bool trusted = true;         ///< false: approximate
  bool typical = true;         ///< false: approximate, or the clock is known to be limited; excluded from fits of time
  std::optional<Seconds> measured;
  std::optional<Bytes> peak;
  std::optional<Bytes> reserved;  ///< if stated in addition to the allocated peak
  std::size_t fold = held_out;
};

/// A row without a prediction, and which figures it states.
struct UnansweredStep : UnansweredCase {
  bool time = true, memory = false;
};
struct TrainingRows {
  std::vector<TrainingRow> rows;
  std::vector<UnansweredStep> unanswered;
};
/// Our own H200 table (catalogue/validation/h200_train.csv); models come from the catalogue.
Result<TrainingRows> read_h200_train(const CsvTable& table, const hardware::Catalogue& catalogue);
/// Tables of published and third-party steps.
Result<TrainingRows> read_training(const CsvTable& table, const hardware::Catalogue& catalogue);

/// The request that predicts a row's time, or its peak memory.
enum class StepFigure : std::uint8_t { time, memory };
Question question_of(const TrainingRow& row, StepFigure figure);

}  // namespace assay::validate
