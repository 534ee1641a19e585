// Shapes of a model of the catalogue: layers, widths, heads and experts that may change, and what they count.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/model/accounting.h"

namespace assay::verbs::design_verb {

/// What of a shape may change, and the key of the model's configuration that says it.
struct ShapeField {
  std::string name, key, plan;
  std::int64_t step = 1, base = 0;
  bool usual = false, scales = false;  ///< varies unless asked otherwise; grows with the model
};

/// Values of the fields, in their order.
using Shape = std::vector<std::int64_t>;

struct Counted {
  model::ParameterCounts parameters;
  Flops training_flops;  ///< of a token
  double experts = 1;    ///< over experts per token
};

class ShapeSpace {
 public:
  /// The fields that a model has; `varied` names those that vary, none the usual ones.
  static Result<ShapeSpace> make(const std::string& model, const std::vector<std::string>& varied,
                                 std::int64_t sequence, const hardware::Catalogue& catalogue);
  const std::vector<ShapeField>& fields() const { return fields_; }
  Shape base() const;
  /// The configuration as a word of a command line: {"base": ..., ...}.
  std::string model_text(const Shape& shape) const;
  /// "layers 30, width 4,096", of the fields that differ from the model; "as it is" where none does.
  std::string text(const Shape& shape) const;
  /// Nothing where there is no such model, e.g. as heads do not divide.
  std::optional<Counted> count(const Shape& shape) const;
  /// All that grow with a model, times a factor and rounded to their steps.
  Shape scaled(double factor) const;

 private:
  explicit ShapeSpace(const hardware::Catalogue& catalogue) : catalogue_(&catalogue) {}
  std::string model_;
  std::int64_t sequence_ = 0;
  std::vector<ShapeField> fields_;
  const hardware::Catalogue* catalogue_;
};

}  // namespace assay::verbs::design_verb
