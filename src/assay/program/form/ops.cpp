#include "assay/program/form/ops.h"

namespace assay::program {

std::string_view kernel_group(CostClass cost) {
  switch (cost) {
    case CostClass::product:
      return "products";
    case CostClass::attention:
      return "attention";
    case CostClass::collective:
      return "network";
    default:
      return "other kernels";
  }
}

}  // namespace assay::program
