// Validation: predictions against measurements. A set is a name, a loader, and rows that become predictions.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/cluster.h"
#include "assay/model/transformer.h"

namespace assay {

/// What errors can be sorted by; empty where it does not apply.
struct CaseTraits {
  std::string hardware, family, regime;
};

/// One measurement that was predicted. Time in seconds, or memory in bytes: both are of one dimension.
struct ValidationCase {
  std::string id, group;
  AnyQuantity measured, predicted;
  std::string what = {};  ///< the request or the shape, for people
  bool fitted = false;    ///< took part in a fit, so it proves nothing and is not reported
  double spread = 0;      ///< of the estimate's interval, see SpreadCalibration; 0: none
  CaseTraits traits = {};

  /// Predicted over measured, less 1.
  double error() const { return predicted.value / measured.value - 1.0; }
  bool covered() const {
    return measured.value <= predicted.value * (1.0 + spread) && measured.value >= predicted.value / (1.0 + spread);
  }
  /// Who measured it: its id without the number.
  std::string_view source() const { return std::string_view(id).substr(0, id.rfind('-')); }
};

/// A measurement that cannot be asked for, and why.
struct UnansweredCase {
  std::string id, group, why;
};

struct ValidationResult {
  std::vector<ValidationCase> cases;
  std::vector<UnansweredCase> unanswered;
};

struct ValidationInput {
  const Catalogue& catalogue;
  std::optional<std::string> data;  ///< the directory of data sets that are not part of the project
};

struct ValidationSet {
  std::string_view name, summary;
  bool needs_data = false;
  Result<ValidationResult> (*run)(const ValidationInput&);
  bool on_request = false;  ///< only by its name: seconds of steps and bytes do not mix with kernels
};
/// All sets, in the order of help.
std::span<const ValidationSet> validation_sets();
Result<const ValidationSet*> validation_set(std::string_view name, std::string_view where);

/// The errors of one group of cases. Shares and errors are ratios.
struct ValidationSummary {
  std::string group;
  std::size_t n = 0;
  double mape = 0, median = 0, p90 = 0;  ///< of the absolute error
  double bias = 0;                       ///< median of the signed error
  double within_10 = 0, within_20 = 0;   ///< share of the cases
  std::optional<double> rank;            ///< Spearman's correlation of predicted and measured; of three rows or more
  double covered = 0;                    ///< share of the cases inside of the estimate's interval
};
/// Fitted cases are left out.
ValidationSummary summarise(std::string group, std::span<const ValidationCase> cases);
/// One summary per group in order of first appearance, then one of all, and one that counts every group alike.
std::vector<ValidationSummary> summarise_groups(std::span<const ValidationCase> cases);

/// Traits of a whole step. `group` names the model, see TrainingRow and InferenceRow: "llama" is the family of
/// Llama-3-70B. The regime: dense, experts or state spaces; one chip, one node or many.
CaseTraits step_traits(std::string_view group, const Transformer& model, const Cluster& cluster);

/// Which half a row belongs to: the shape, not the row, is hashed, so that a shape is never in both.
/// Odd hashes are fitted, even ones are reported.
bool is_fitted(std::string_view shape);

}  // namespace assay
