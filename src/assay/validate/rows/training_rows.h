// Measured training steps: rows of a table as a model, a cluster and a strategy, and their prediction by the model that
// `assay train` uses.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/estimate/software/software_options.h"
#include "assay/search/training/search.h"
#include "assay/validate/rows/csv.h"
#include "assay/validate/rows/measured_clusters.h"
#include "assay/validate/validation.h"

namespace assay::validate {

/// What a memory peak includes.
enum class MemoryView : std::uint8_t {
  allocated,  ///< tensors, as the framework counts them
  reserved,   ///< memory held by its allocator
  driver      ///< all of the chip's memory in use, as nvidia-smi shows it
};
double peak_bytes(const training::MemoryParts& memory, MemoryView view);

/// What a chip sends between nodes: the figure that rows with other networks replace.
inline constexpr std::string_view network_key = "network.scale_out.bandwidth";

struct TrainingRow {
  std::string id, group, what;  ///< group: source, model, hardware
  model::Transformer model;
  std::string catalogue_id;                 ///< of the model; empty: the catalogue has none that is the same
  std::string cluster;                      ///< in the CLUSTER grammar
  std::string family;                       ///< of its chips; empty: none
  bool compiled_whole = false;              ///< a compiler turns a whole step into one program on its chips
  std::vector<hardware::Override> changes;  ///< differences between the measured part and the catalogue's chip
  /// Of one chip's share of the interfaces, if they are of Omni-Path, of which collectives reach a part.
  std::optional<BytesPerSecond> omni_path;
  training::Strategy strategy;
  double sequences = 1;
  std::int64_t sequence = 1;
  Dtype compute = Dtype::bf16;
  bool small_states = false;  ///< gradients and moments in bf16, no master copy
  MemoryView view = MemoryView::allocated;
  bool states_recompute = true;  ///< false: nothing is recomputed if that fits in memory, otherwise as little as fits
  estimate::TrainingSoftware software;
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

/// False: faster than the lower bound, so that the row contradicts itself. No fit uses it, but its error is reported.
bool is_possible(const TrainingRow& row, const training::TrainingCost& cost);

/// The request that predicts a row's time, or its peak memory; nothing where no request says what the row does.
enum class StepFigure : std::uint8_t { time, memory };
std::optional<Question> question_of(const TrainingRow& row, StepFigure figure,
                                    const std::vector<hardware::Override>& changes);

/// Predicts rows; chips and calibrations are read once.
class TrainingPredictor {
 public:
  static Result<TrainingPredictor> make(const hardware::Catalogue& catalogue);
  /// With the row's policy, or recomputing as little as fits if it states none.
  Result<training::TrainingCost> operator()(const TrainingRow& row);
  /// The family of the row's chips; nullptr if they have none.
  const estimate::Family* family(const TrainingRow& row);
  /// The intervals of a row's time and peak memory; nullptr: none.
  const estimate::IntervalClass* time_interval(const TrainingRow& row);
  const estimate::IntervalClass* memory_interval(const TrainingRow& row);
  /// How the row's chips and network differ from the catalogue's.
  std::vector<hardware::Override> changes(const TrainingRow& row) const;
  /// Its cluster; nullptr if the row's does not exist.
  const hardware::Cluster* cluster(const TrainingRow& row);

  estimate::StepCalibration steps;  ///< the catalogue's; a fit changes them

 private:
  explicit TrainingPredictor(const hardware::Catalogue& catalogue) : places_(catalogue) {}
  Result<const Place*> place(const TrainingRow& row);
  Result<training::TrainingCost> priced(const TrainingRow& row, lower::Recompute policy);

  Places places_;
  estimate::PowerClock clock_;
};

}  // namespace assay::validate
