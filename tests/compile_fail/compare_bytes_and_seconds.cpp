// Comparisons need one dimension.
#include "assay/base/units.h"

using namespace assay;

int main() {
#ifdef ASSAY_CONTROL
  [[maybe_unused]] bool less = 1_GB < 1_GiB;
#else
  [[maybe_unused]] bool less = 1_GB < 1_s;
#endif
}
