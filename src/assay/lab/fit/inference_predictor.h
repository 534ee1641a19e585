// What `assay serve` answers to the requests of measured figures, for fits: they price the same rows thousands of times
// with other numbers. A test compares it with the answers.
#pragma once
#include <map>
#include <string>

#include "assay/lab/validate/rows/inference_rows.h"
#include "assay/lab/validate/rows/measured_clusters.h"

namespace assay::validate {

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

  numbers::ServingCalibration steps;  ///< the catalogue's; a fit changes them

 private:
  explicit InferencePredictor(const hardware::Catalogue& catalogue) : places_(catalogue) {}
  struct Prepared {
    const Place* place = nullptr;
    serving::ServingSetup setup;
    training::StageLinks links;
    std::optional<serving::ServingProfile> prefill, decode;
    serving::ServingQuestion question;  ///< of continuous batching, with the same setup
    serving::ServingProfiles profiles;
    double fitting = 1;  ///< sequences whose caches fit together
    Seconds least;       ///< of a step or a prefill on ideal hardware
  };
  Result<const Place*> place(const InferenceRow& row);
  Result<Prepared*> prepared(const InferenceRow& row);

  Places places_;
  std::map<std::string, Prepared> prepared_;
};

}  // namespace assay::validate
