// A size is not a time.
#include "assay/base/units.h"

using namespace assay;

int main() {
#ifdef ASSAY_CONTROL
  [[maybe_unused]] Seconds t = 1_s;
#else
  [[maybe_unused]] Seconds t = 1_GB;
#endif
}
