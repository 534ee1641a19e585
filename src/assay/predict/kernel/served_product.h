// A product of a serving step that is priced at many batches: what does not depend on its size is found once.
#pragma once
#include "assay/predict/kernel/price.h"
#include "assay/predict/kernel/product_time.h"

namespace assay::kernel {

/// A product among the other kernels of a step, of which `load` times the mean work is on the fullest expert.
template <class N>
NumberOf<N, Seconds> product_in_step(const NumberOf<N, Seconds>& starts, const NumberOf<N, double>& slower,
                                     const NumberOf<N, double>& load, const NumberOf<N, Seconds>& alone) {
  return starts + slower * load * alone;
}

/// Refers to what its rates refer to, and to the table.
class ServedProduct {
 public:
  ServedProduct(const ServingKernels& kernels, const Kernel& kernel, TileTable& tiles);
  /// What price() gives the kernel at another size.
  Seconds operator()(const Kernel& kernel) const {
    return product_in_step<Plain>(starts_, slower_, kernel.load, alone_.time(kernel.product).total);
  }

 private:
  Seconds starts_;
  double slower_;
  PreparedProduct alone_;
};

}  // namespace assay::kernel
