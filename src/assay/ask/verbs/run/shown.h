// What devices hold while a program runs.
#pragma once
#include "assay/ask/verbs/request.h"
#include "assay/engine/language/run_text.h"

namespace assay::verbs::run {

/// The tensors of --show, which the program must have.
Result<std::vector<std::string>> shown_names(const Request& request, const language::Compiled& compiled);

/// What every device holds of these tensors, at the start and after each step that makes one.
Result<report::Items> shown_rows(const language::Compiled& compiled, const engine::TextRun& run,
                                 const std::vector<std::string>& names);

/// An array as nested lists.
report::Value nested(const engine::Array& array);

/// The type as explicit programs have it: "bf16[8@X, 16]".
std::string type_text(const program::Mesh& mesh, const program::Tensor& tensor);

}  // namespace assay::verbs::run
