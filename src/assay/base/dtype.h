// Number formats: what a tensor's elements are and how many bits each takes in memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "assay/base/result.h"
#include "assay/base/units.h"

namespace assay {

enum class Dtype : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, fp6, fp4, int32, int16, int8, int4 };

struct DtypeFacts {
  Dtype dtype;
  std::string_view name;
  int bits;         ///< bits of one element in memory; tf32 is stored as fp32
  bool is_integer;  ///< its products are exact and accumulate in int32
};

namespace detail {
inline constexpr DtypeFacts dtype_facts[] = {
    {Dtype::fp64, "fp64", 64, false},  {Dtype::fp32, "fp32", 32, false}, {Dtype::tf32, "tf32", 32, false},
    {Dtype::bf16, "bf16", 16, false},  {Dtype::fp16, "fp16", 16, false}, {Dtype::fp8, "fp8", 8, false},
    {Dtype::fp6, "fp6", 6, false},     {Dtype::fp4, "fp4", 4, false},    {Dtype::int32, "int32", 32, true},
    {Dtype::int16, "int16", 16, true}, {Dtype::int8, "int8", 8, true},   {Dtype::int4, "int4", 4, true},
};
}  // namespace detail

/// Inline, like the next three functions: every cost formula calls them in its hot path.
constexpr std::span<const DtypeFacts> all_dtypes() { return detail::dtype_facts; }
constexpr const DtypeFacts& facts(Dtype dtype) { return detail::dtype_facts[static_cast<std::size_t>(dtype)]; }
constexpr std::string_view name(Dtype dtype) { return facts(dtype).name; }

/// Bytes of `count` elements, not rounded up: two int4 share a byte.
constexpr Bytes storage(Dtype dtype, double count) { return Bytes(count * facts(dtype).bits / 8.0); }

/// Accepts our names and other tools' names: f32, float32, s8, e4m3, fp8_e5m2, mxfp4, nvfp4.
Result<Dtype> parse_dtype(std::string_view text, std::string_view where);

/// The format in which a product of the two is computed: the wider float, or the float if one is an integer.
Dtype product_dtype(Dtype a, Dtype b);

}  // namespace assay
