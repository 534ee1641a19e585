// Leaving the type names the unit.
#include "assay/base/units.h"

using namespace assay;

int main() {
#ifdef ASSAY_CONTROL
  [[maybe_unused]] double gib = (80_GiB).in(1_GiB);
#else
  [[maybe_unused]] double gib = 80_GiB;
#endif
}
