#include "assay/predict/numbers/deployment.h"

#include "assay/base/record_reader.h"

namespace assay::numbers {
namespace {

/// Reads what the file has of both tables; who needs one of them passes the other for its keys alone.
Result<void> read_deployment(const hardware::Catalogue& catalogue, ServingEffects& serving, RequestPath& path,
                             StepEffects& training) {
  for (const auto& [name, text] : catalogue.files(deployment_file)) {
    RecordFile file = effects_file(name);
    ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) {
      reader.sources();
      reader.optional_table("serving", [&](RecordReader& inner) {
        visit_deployment(serving, path, [&](std::string_view key, auto& number, std::string_view) {
          if (inner.has(key)) inner.number(key, number);
        });
      });
      reader.optional_table("training", [&](RecordReader& inner) {
        visit_deployment(training, [&](std::string_view key, auto& number, std::string_view) {
          if (inner.has(key)) inner.number(key, number);
        });
      });
    }));
  }
  return {};
}

}  // namespace

bool is_of_deployment(std::string_view source) { return source.starts_with(deployment_file); }

Result<void> apply_deployment(const hardware::Catalogue& catalogue, ServingEffects& effects, RequestPath& path) {
  StepEffects unused;
  return read_deployment(catalogue, effects, path, unused);
}

Result<void> apply_deployment(const hardware::Catalogue& catalogue, StepEffects& effects) {
  ServingEffects unused;
  RequestPath path;
  return read_deployment(catalogue, unused, path, effects);
}

}  // namespace assay::numbers
