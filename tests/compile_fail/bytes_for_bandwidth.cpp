// A size is not a rate.
#include "assay/base/units.h"

using namespace assay;

Seconds time_on_wire(Bytes size, BytesPerSecond bandwidth) { return size / bandwidth; }

int main() {
#ifdef ASSAY_CONTROL
  time_on_wire(1_GB, 50_GB_per_s);
#else
  time_on_wire(1_GB, 50_GB);
#endif
}
