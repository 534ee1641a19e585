// Measured prefill and decode: rows of a table as a model, a cluster, a strategy and a load, and their prediction by
// the model that `assay serve` uses.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "assay/estimate/software/software.h"
#include "assay/search/serving/search.h"
#include "assay/validate/rows/csv.h"
#include "assay/validate/rows/measured_clusters.h"
#include "assay/validate/validation.h"

namespace assay::validate {

/// What a row measured. Times are per step or per output token of a sequence.
enum class InferenceFigure : std::uint8_t {
  first_token,   ///< a batch of prompts on an idle server
  step,          ///< one decode step of a batch at a context
  static_token,  ///< a batch from its prompts to its last token, per output token
  loaded_token,  ///< between two tokens of a sequence under continuous batching
  server_token   ///< over the whole server at the largest load: the inverse of its throughput
};

struct InferenceRow {
  std::string id, group, what;  ///< group: source, model, hardware
  InferenceFigure figure = InferenceFigure::step;
  model::Transformer model;
  std::string catalogue_id;  ///< of the model; empty: the catalogue has none that is the same
  std::string cluster;       ///< in the CLUSTER grammar
  serving::ServingStrategy strategy;
  lower::Formats formats;
  estimate::EngineSoftware software;
  estimate::SoftwareDefaults limits;
  double batch = 1;  ///< sequences over all replicas; 0: as many as fit
  std::int64_t prompt = 1, output = 1;
  std::int64_t cache = 0;  ///< tokens of a static cache, which is read whole; 0: the cache grows
  Seconds measured;
  std::size_t fold = held_out;
  bool typical = true;  ///< false: approximate, excluded from fits
};

/// A figure without a prediction.
struct UnansweredFigure : UnansweredCase {
  InferenceFigure figure = InferenceFigure::step;
};
struct InferenceRows {
  std::vector<InferenceRow> rows;
  std::vector<UnansweredFigure> unanswered;
};
/// Our own H200 tables (catalogue/validation/h200_infer.csv, h200_decode.csv); models come from the catalogue.
Result<InferenceRows> read_h200_infer(const CsvTable& table, const hardware::Catalogue& catalogue);
Result<InferenceRows> read_h200_decode(const CsvTable& table, const hardware::Catalogue& catalogue);
/// Tables of published and third-party figures; a row may yield a time to the first token and a time per output token.
Result<InferenceRows> read_inference(const CsvTable& table, const hardware::Catalogue& catalogue);

/// The request that predicts a row; nothing where no request says what the row does.
std::optional<Question> question_of(const InferenceRow& row);

/// Predicts rows. Results that do not depend on software effects are cached per row, so that fits are cheap.
class InferencePredictor {
 public:
  static Result<InferencePredictor> make(const hardware::Catalogue& catalogue);
  Result<Seconds> operator()(const InferenceRow& row);

  /// The cluster on which a row ran.
  Result<const hardware::Cluster*> cluster(const InferenceRow& row);
  /// False: faster than reading weights and cache once, so that the load is not as stated. No fit uses such a row, but
  /// its error is reported.
  bool is_possible(const InferenceRow& row);
  /// Whether the caches of the whole batch fit.
  bool fits(const InferenceRow& row);
  /// The spread of the row's class; 0: none.
  double spread(const InferenceRow& row);

  estimate::ServingCalibration steps;  ///< the catalogue's; a fit changes them

 private:
  explicit InferencePredictor(const hardware::Catalogue& catalogue) : places_(catalogue) {}
  struct Prepared {
    const Place* place = nullptr;
    serving::ServingSetup setup;
    training::StageLinks links;
    std::optional<serving::ServingProfile> prefill, decode;
    serving::ServingQuestion question;  ///< of a server at the largest load; its setup is set when it is asked
    serving::ServingProfiles profiles;
    double fitting = 1;  ///< sequences whose caches fit together
    double least = 0;    ///< seconds of a step or a prefill on ideal hardware
    double sequences(const InferenceRow& row) const { return row.batch > 0.0 ? row.batch : fitting; }
  };
  Result<const Place*> place(const InferenceRow& row);
  Result<const Prepared*> prepared(const InferenceRow& row);

  Places places_;
  std::map<std::string, Prepared> prepared_;
};

}  // namespace assay::validate
