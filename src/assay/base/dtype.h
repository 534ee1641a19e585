// Number formats: what a tensor's elements are and how many bits each takes in memory.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "assay/base/result.h"
#include "assay/base/units.h"

namespace assay {

enum class Dtype { fp64, fp32, tf32, bf16, fp16, fp8, fp6, fp4, int32, int16, int8, int4 };

struct DtypeFacts {
  Dtype dtype;
  std::string_view name;
  int bits;         ///< of one element in memory; tf32 is stored as fp32
  bool is_integer;  ///< its products are exact and accumulate in int32
};

std::span<const DtypeFacts> all_dtypes();
const DtypeFacts& facts(Dtype dtype);
std::string_view name(Dtype dtype);

/// Bytes of `count` elements, not rounded up: two int4 share a byte.
Bytes storage(Dtype dtype, double count);

/// Accepts our names and those of other tools: f32, float32, s8, e4m3, fp8_e5m2, mxfp4, nvfp4.
Result<Dtype> parse_dtype(std::string_view text, std::string_view where);

/// The format in which a product of the two is computed: the wider float, or the float if one is an integer.
Dtype product_dtype(Dtype a, Dtype b);

/// The format in which sums of products are kept: int32 for integers, fp64 for fp64, else fp32.
Dtype accumulator_dtype(Dtype compute);

}  // namespace assay
