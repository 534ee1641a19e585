// The sets of validation; each lives in a file of its own.
#pragma once
#include "assay/validate/validation.h"

namespace assay {

ValidationSet h200_ops_set();
ValidationSet kernels_set();
ValidationSet collectives_set();
ValidationSet h200_train_set();
ValidationSet h200_train_memory_set();
ValidationSet training_set();
ValidationSet training_memory_set();

}  // namespace assay
