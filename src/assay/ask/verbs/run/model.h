// The model of a run: one of the catalogue or a configuration, as small as options make it.
#pragma once
#include "assay/ask/verbs/run/run.h"
#include "assay/engine/text/tokens.h"
#include "assay/model/import/config_import.h"
#include "assay/program/lower/strategy.h"

namespace assay::verbs::run {

/// The text that a model is trained on and prompted with.
struct RunText {
  std::string name, text;
  engine::Tokenizer tokenizer;
  std::vector<int> tokens;
};
Result<RunText> read_text(const Request& request, const Context& context);

/// The second argument of a run as a model with so many tokens; notes say what was made smaller.
Result<model::ImportedModel> read_model(const Request& request, const Context& context, std::int64_t vocabulary,
                                        std::vector<std::string>& notes);

/// Devices are virtual or ranks: no run has thousands.
Result<void> check_devices(const lower::Parallelism& parallelism);

/// "4 layers, d_model 64, 0.21 M parameters"
std::string size_text(const model::Transformer& model);

}  // namespace assay::verbs::run
