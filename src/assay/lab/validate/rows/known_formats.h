// Number formats as tables of measurements write them: catalogue/validation/formats.toml.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"

namespace assay::validate {

/// What the words of a table mean. Each kind of column uses some of it.
struct NamedFormat {
  std::vector<std::string> texts;
  Dtype weights = Dtype::bf16, compute = Dtype::bf16;
  std::optional<Dtype> outer;  ///< of embeddings and head, where it differs from the weights
};

class KnownFormats {
 public:
  static Result<KnownFormats> make(const hardware::Catalogue& catalogue);

  /// Nothing where the text is not understood.
  std::optional<Dtype> training(std::string_view text) const;
  std::optional<Dtype> cache(std::string_view text) const;
  const NamedFormat* serving(std::string_view text) const;
  /// The format in the name of a model: "Llama-3.1-70B-Instruct-FP8"; nullptr if it has none.
  const NamedFormat* in_name(std::string_view model) const;

 private:
  std::vector<NamedFormat> training_, serving_, cache_;
};

}  // namespace assay::validate
