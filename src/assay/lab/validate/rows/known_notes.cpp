#include "assay/lab/validate/rows/known_notes.h"

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/predict/kernel/software/version_numbers.h"

namespace assay::validate {

Result<KnownNotes> KnownNotes::make(const hardware::Catalogue& catalogue) {
  KnownNotes known;
  for (const auto& [path, text] : catalogue.files("validation/notes.toml")) {
    RecordFile shared{.name = path};
    ASSAY_CHECK(read_record(text, shared, [&](RecordReader& reader) {
      reader.sources();
      reader.items("refusal", known.refusals_, [](Refusal& one, RecordReader& inner) {
        inner.texts("texts", one.texts);
        inner.text("why", one.why);
      });
    }));
  }
  return known;
}

Why KnownNotes::refusal(std::string_view note) const {
  if (note.empty()) return std::nullopt;
  const auto says = [&](const std::string& text) { return kernel::matches("*" + text + "*", note); };
  for (const Refusal& one : refusals_)
    if (std::any_of(one.texts.begin(), one.texts.end(), says)) return one.why;
  return std::nullopt;
}

}  // namespace assay::validate
