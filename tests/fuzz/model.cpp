// Models from foreign files: any bytes as a config.json, a safetensors header, a GGUF header or a catalogue file give a
// model that can be counted, or an error.
#include <cmath>
#include <string_view>

#include "assay/model/accounting.h"
#include "assay/model/checkpoint/checkpoint.h"
#include "assay/model/model_catalogue.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

/// What holds for every model that was read.
void check(const model::ImportedModel& imported) {
  const model::Transformer& model = imported.model;
  require(model.d_model > 0 && model.vocabulary > 0);
  const model::ParameterCounts counts = model::parameter_counts(model);
  std::int64_t sum = 0;
  for (std::int64_t part : counts.by_part) {
    require(part >= 0);
    sum += part;
  }
  require(sum == counts.total && counts.total > 0);
  require(counts.active <= counts.total && counts.active > 0);
  const auto flops = model::token_flops(Plain{}, model, 1000);
  require(std::isfinite(flops.train.value()) && flops.attention.value() >= 0);
  require(model::kv_values_per_token(model) >= 0 && model::state_values_per_sequence(model) >= 0);
  require(model::kept_bytes_per_token(model, model::KeepPolicy::none, Dtype::bf16) >=
          model::kept_bytes_per_token(model, model::KeepPolicy::full, Dtype::bf16));
}

template <class T>
void check_error(const Result<T>& result) {
  if (!result) require(!result.error().what.empty());
}

const fuzz::Target model_target("model", [](std::string_view bytes) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto imported = model::import_config(bytes, "fuzz", catalogue);
  check_error(imported);
  if (imported) check(*imported);
  const auto tensors = model::parse_safetensors(bytes, bytes.size(), "fuzz");
  check_error(tensors);
  if (tensors)
    for (const model::CheckpointTensor& tensor : *tensors) require(tensor.elements >= 0 && tensor.bytes >= Bytes());
  const auto gguf = model::parse_gguf(bytes, "fuzz");
  check_error(gguf);
  if (gguf && gguf->config.kind == model::Json::Kind::object)
    if (const auto model = model::import_config(gguf->config, "fuzz", catalogue)) check(*model);
  if (bytes.size() > 3 && bytes.starts_with("id ")) {
    const auto entry = model::read_model(bytes, "fuzz", false, catalogue);
    check_error(entry);
    if (entry) check(entry->imported);
  }
});

}  // namespace
