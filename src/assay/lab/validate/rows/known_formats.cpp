#include "assay/lab/validate/rows/known_formats.h"

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/predict/kernel/software/version_numbers.h"

namespace assay::validate {
namespace {

void read_named_dtype(RecordReader& reader, const char* key, Dtype& out) {
  std::string text;
  reader.text(key, text);
  const auto parsed = parse_dtype(text, key);
  if (parsed)
    out = *parsed;
  else
    reader.fault(key, parsed.error().what, parsed.error().hint);
}

const NamedFormat* named_format(const std::vector<NamedFormat>& all, std::string_view text) {
  for (const NamedFormat& one : all)
    if (std::any_of(one.texts.begin(), one.texts.end(),
                    [&](const std::string& known) { return kernel::matches(known, text); }))
      return &one;
  return nullptr;
}

}  // namespace

Result<KnownFormats> KnownFormats::make(const hardware::Catalogue& catalogue) {
  KnownFormats known;
  for (const auto& [path, text] : catalogue.files("validation/formats.toml")) {
    RecordFile shared{.name = path};
    ASSAY_CHECK(read_record(text, shared, [&](RecordReader& reader) {
      reader.sources();
      reader.items("training", known.training_, [](NamedFormat& one, RecordReader& inner) {
        inner.texts("texts", one.texts);
        read_named_dtype(inner, "compute", one.compute);
      });
      reader.items("serving", known.serving_, [](NamedFormat& one, RecordReader& inner) {
        inner.texts("texts", one.texts);
        read_named_dtype(inner, "weights", one.weights);
        read_named_dtype(inner, "compute", one.compute);
        if (inner.has("outer")) read_named_dtype(inner, "outer", one.outer.emplace());
      });
      reader.items("cache", known.cache_, [](NamedFormat& one, RecordReader& inner) {
        inner.texts("texts", one.texts);
        read_named_dtype(inner, "format", one.weights);
      });
    }));
  }
  return known;
}

std::optional<Dtype> KnownFormats::training(std::string_view text) const {
  const NamedFormat* known = named_format(training_, text);
  return known ? std::optional(known->compute) : std::nullopt;
}

std::optional<Dtype> KnownFormats::cache(std::string_view text) const {
  const NamedFormat* known = named_format(cache_, text);
  return known ? std::optional(known->weights) : std::nullopt;
}

const NamedFormat* KnownFormats::serving(std::string_view text) const { return named_format(serving_, text); }

const NamedFormat* KnownFormats::in_name(std::string_view model) const {
  const std::vector<std::string> words = split(model.substr(model.rfind('/') + 1), '-');
  for (std::size_t i = words.size(); i-- > 1;)
    if (const NamedFormat* known = named_format(serving_, words[i])) return known;
  return nullptr;
}

}  // namespace assay::validate
