// Notes of tables that say why a row cannot be asked: catalogue/validation/notes.toml.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/hardware/catalogue.h"
#include "assay/lab/validate/rows/csv_schema.h"

namespace assay::validate {

class KnownNotes {
 public:
  static Result<KnownNotes> make(const hardware::Catalogue& catalogue);
  /// Why a row with this note cannot be asked; nothing if the note does not say so.
  Why refusal(std::string_view note) const;

 private:
  struct Refusal {
    std::vector<std::string> texts;
    std::string why;
  };
  std::vector<Refusal> refusals_;
};

}  // namespace assay::validate
