// Validation: predictions against measurements. A set is a name, a loader, and rows that are turned into predictions.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/cluster.h"
#include "assay/model/transformer.h"

namespace assay::validate {

/// Traits by which errors can be grouped; empty if not applicable.
struct CaseTraits {
  std::string hardware, family, regime;
};

/// Of a case whose whole chip no fit saw.
struct LeftOutCase {
  std::vector<std::string> classes;  ///< of its interval, narrowest first
  std::string chip;                  ///< its id in the catalogue
};

/// What a row asks of the public interface: the words of a command line without the program's name.
struct Question {
  std::vector<std::string> words;
  std::vector<std::string>
      own_way;                  ///< further words, for how the row was measured; without them, the default's answer
  std::string result = "time";  ///< where the answer has the predicted value: a quantity, or a range of it
  /// Where it has an interval that holds for the result, and the number that this is around; empty: at the result.
  struct Around {
    std::string interval, number;
  } around = {};
};
struct Prediction {
  AnyQuantity value;
  double spread = 0;         ///< of the estimate's interval, see SpreadCalibration; 0: none
  std::string verdict = {};  ///< whether what is asked for fits into memory; empty where that is no question
};
/// Answers a command line as the program does, and takes a result out of the answer. Verbs provide it, since they lie
/// above this layer.
using Ask = std::function<Result<Prediction>(const std::vector<std::string>& words, const Question& question)>;

/// How to ask with the numbers of another catalogue, which must outlive what it returns.
using AskWith = std::function<Ask(const hardware::Catalogue&)>;

/// One predicted measurement: time in seconds, or memory in bytes. Both values have the same dimension.
struct ValidationCase {
  std::string id, group;
  AnyQuantity measured, predicted;
  std::string what = {};  ///< the request or the shape, in words
  bool fitted = false;    ///< its prediction was fitted to it, so it is not reported
  double spread = 0;      ///< of the estimate's interval, see SpreadCalibration; 0: none
  CaseTraits traits = {};
  LeftOutCase without = {};
  std::vector<std::string> request = {};              ///< the words that gave the prediction
  std::string result = {};                            ///< where the answer has it, see Question
  std::string verdict = {};                           ///< see Prediction
  std::optional<AnyQuantity> predicted_by_default{};  ///< without the row's own way of measuring

  /// Predicted over measured, minus 1.
  double error() const { return predicted.value / measured.value - 1.0; }
  std::optional<double> error_by_default() const {
    if (!predicted_by_default) return std::nullopt;
    return predicted_by_default->value / measured.value - 1.0;
  }
  bool covered() const {
    return measured.value <= predicted.value * (1.0 + spread) && measured.value >= predicted.value / (1.0 + spread);
  }
  /// Its source: the id without the number.
  std::string_view source() const { return std::string_view(id).substr(0, id.rfind('-')); }
};

/// A measurement that cannot be predicted, and why.
struct UnansweredCase {
  std::string id, group, why;
};

struct ValidationResult {
  std::vector<ValidationCase> cases;
  std::vector<UnansweredCase> unanswered;
};

/// Folds of cross-validation. A kernel's or collective's fold depends only on its shape, that of a published step only
/// on its source, so neither is in two folds. Estimates use numbers fitted to all rows; reports predict each row by a
/// fit made without its fold. Held-out rows are in no fold, and no fit sees them.
inline constexpr std::size_t folds = 5;
inline constexpr std::size_t held_out = folds;
/// FNV-1a with extra mixing, because shapes differ in only a few digits.
std::uint64_t shape_hash(std::string_view shape);
/// By the hash of the shape or source. `split` is the table's label for the row: only "calib" and "" may be fitted.
inline std::size_t fold_of(std::string_view shape, std::string_view split = "") {
  return split.empty() || split == "calib" ? shape_hash(shape) % folds : held_out;
}
/// The folder of numbers fitted without a fold: "folds/0/"; "" for numbers fitted to all rows.
std::string fitted_without(std::size_t fold);

/// The rows used by a fit: all except one fold; `held_out` excludes none.
struct FitInput {
  const hardware::Catalogue& catalogue;
  std::optional<std::string> data;
  std::size_t left_out = held_out;

  bool sees(std::size_t fold) const { return fold != held_out && fold != left_out; }
  /// For the sources of its numbers: "all measured rows", "4 of 5 folds of the measured rows".
  std::string what() const;
};

struct ValidationInput {
  /// `with_fitted`: predict all rows with the estimate's own numbers, even rows these were fitted to.
  /// `ask`: for sets whose rows are requests.
  explicit ValidationInput(const hardware::Catalogue& catalogue, std::optional<std::string> data = std::nullopt,
                           bool with_fitted = false, Ask ask = {});

  const hardware::Catalogue& catalogue;  ///< tables, models, and the estimate's numbers
  std::optional<std::string> data;       ///< directory of data sets outside of the project
  Ask ask;

  /// The catalogue that predicts the rows of that fold.
  const hardware::Catalogue& numbers(std::size_t fold) const {
    return fold < without_.size() ? without_[fold] : catalogue;
  }
  /// Whether its numbers were fitted to such rows.
  bool fitted_to(std::size_t fold) const { return without_.empty() && fold != held_out; }

 private:
  std::vector<hardware::Catalogue> without_;  ///< by fold; empty if fitted rows are reported
};

/// A row to be asked, with all of its case that is not predicted.
struct RowQuestion {
  Question question;
  std::size_t fold = held_out;
  ValidationCase known;
};
/// A case predicted by the answer to its question, from numbers that were fitted without the row's fold. The error says
/// why there is no answer.
Result<ValidationCase> asked_case(RowQuestion row, const ValidationInput& input);

/// Asks all rows, in parallel; appends their cases in order, and why rows have no answer.
void add_answers(std::vector<RowQuestion> rows, const ValidationInput& input, ValidationResult& result);

struct ValidationSet {
  std::string_view name, summary;
  bool needs_data = false;
  Result<ValidationResult> (*run)(const ValidationInput&);
  bool on_request = false;  ///< runs only if named: steps and bytes do not mix with kernels
};
/// All sets in the order of the help text.
std::span<const ValidationSet> validation_sets();
Result<const ValidationSet*> validation_set(std::string_view name, std::string_view where);

/// The errors of one group of cases. Shares and errors are ratios.
struct ValidationSummary {
  std::string group;
  std::size_t n = 0, groups = 1;         ///< cases, and the groups they are of
  double mape = 0, median = 0, p90 = 0;  ///< of the absolute error
  double bias = 0;                       ///< median of the signed error
  double within_10 = 0, within_20 = 0;   ///< share of the cases
  std::optional<double> rank;            ///< Spearman's correlation of predicted and measured; needs three rows or more
  std::optional<double> covered;         ///< share of the cases with an interval that are inside; absent: none has one
  std::optional<double> default_mape, default_bias;  ///< of what requests answer by default; absent if they are none
};
/// Excludes fitted cases.
ValidationSummary summarise(std::string group, std::span<const ValidationCase> cases);
/// One summary per group in order of first appearance, then one of all cases, then one with equal weight per group.
std::vector<ValidationSummary> summarise_groups(std::span<const ValidationCase> cases);

/// Traits of a whole step. `group` names the model, see TrainingRow and InferenceRow: "llama" is the family of
/// Llama-3-70B. The regime: dense, experts or state spaces; one chip, one node or many.
CaseTraits step_traits(std::string_view group, const model::Transformer& model, const hardware::Cluster& cluster);

}  // namespace assay::validate
