// The validation sets, each in its own file.
#pragma once
#include "assay/lab/validate/validation.h"

namespace assay::validate {

ValidationSet h200_ops_set();
ValidationSet h200_random_set();
ValidationSet h200_measure_set();
ValidationSet h200_experts_set();
ValidationSet h200_products_set();
ValidationSet h200_odd_set();
ValidationSet h200_heads_set();
ValidationSet kernels_set();
ValidationSet collectives_set();
ValidationSet h200_train_set();
ValidationSet h200_train_memory_set();
ValidationSet training_set();
ValidationSet training_memory_set();
ValidationSet h200_prefill_set();
ValidationSet h200_decode_set();
ValidationSet h200_static_cache_set();
ValidationSet inference_tpot_set();
ValidationSet inference_ttft_set();
ValidationSet inference_throughput_set();
ValidationSet public_set();

}  // namespace assay::validate
