// References between the values of a YAML file, as OmegaConf writes them: ${model.seq_length}, ${.hidden_size},
// ${multiply:4, ${.hidden_size}}, ${oc.env:NODES,8}.
#pragma once
#include "assay/model/checkpoint/json_reader.h"

namespace assay::launch {

/// Puts values in for references to them; others stay as they are.
void resolve_references(model::Json& tree);

}  // namespace assay::launch
