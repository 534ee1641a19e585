// Reads a figure that sources give differently.
#pragma once
#include <string_view>

#include "assay/base/record_reader.h"
#include "assay/predict/design/technology.h"

namespace assay::design {

template <class Q>
void read_spread(RecordReader& in, std::string_view key, Spread<Q>& out) {
  in.table(key, [&](RecordReader& one) {
    one.number("typical", out.typical);
    out.low = out.high = out.typical;
    if (one.has("low")) one.number("low", out.low);
    if (one.has("high")) one.number("high", out.high);
    if (out.typical.value < out.low.value || out.high.value < out.typical.value)
      one.fault("typical", "lies between low and high");
  });
}

}  // namespace assay::design
