// A bare number has no unit.
#include "assay/base/units.h"

using namespace assay;

int main() {
#ifdef ASSAY_CONTROL
  [[maybe_unused]] Bytes b = 3_B;
#else
  [[maybe_unused]] Bytes b = 3;
#endif
}
