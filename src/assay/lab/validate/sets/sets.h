// The validation sets, by what they measure; each kind in its own file.
#pragma once
#include <vector>

#include "assay/lab/validate/validation.h"

namespace assay::validate {

std::vector<ValidationSet> kernel_sets();
std::vector<ValidationSet> training_sets();
std::vector<ValidationSet> inference_sets();
std::vector<ValidationSet> load_sets();
std::vector<ValidationSet> public_sets();

}  // namespace assay::validate
