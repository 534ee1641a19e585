// Sums need one dimension.
#include "assay/base/units.h"

using namespace assay;

int main() {
#ifdef ASSAY_CONTROL
  [[maybe_unused]] auto sum = 1_GB + 1_GiB;
#else
  [[maybe_unused]] auto sum = 1_GB + 1_s;
#endif
}
