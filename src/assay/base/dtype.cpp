#include "assay/base/dtype.h"

#include <fmt/format.h>

#include <vector>

#include "assay/base/text.h"

namespace assay {
namespace {

struct Alias {
  std::string_view text;
  Dtype dtype;
};
constexpr Alias aliases[] = {
    {"f64", Dtype::fp64},        {"float64", Dtype::fp64}, {"double", Dtype::fp64},   {"f32", Dtype::fp32},
    {"float32", Dtype::fp32},    {"float", Dtype::fp32},   {"bfloat16", Dtype::bf16}, {"f16", Dtype::fp16},
    {"float16", Dtype::fp16},    {"half", Dtype::fp16},    {"f8", Dtype::fp8},        {"float8", Dtype::fp8},
    {"e4m3", Dtype::fp8},        {"e5m2", Dtype::fp8},     {"fp8_e4m3", Dtype::fp8},  {"fp8_e5m2", Dtype::fp8},
    {"f8e4m3fn", Dtype::fp8},    {"f8e5m2", Dtype::fp8},   {"mxfp8", Dtype::fp8},     {"float8_e4m3fn", Dtype::fp8},
    {"float8_e5m2", Dtype::fp8}, {"mxfp6", Dtype::fp6},    {"f4", Dtype::fp4},        {"float4", Dtype::fp4},
    {"mxfp4", Dtype::fp4},       {"nvfp4", Dtype::fp4},    {"s32", Dtype::int32},     {"i32", Dtype::int32},
    {"s16", Dtype::int16},       {"i16", Dtype::int16},    {"s8", Dtype::int8},       {"i8", Dtype::int8},
    {"u8", Dtype::int8},         {"uint8", Dtype::int8},   {"s4", Dtype::int4},       {"i4", Dtype::int4},
    {"u4", Dtype::int4},         {"uint4", Dtype::int4},   {"nf4", Dtype::int4},
};

}  // namespace

Result<Dtype> parse_dtype(std::string_view text, std::string_view where) {
  for (const DtypeFacts& entry : all_dtypes())
    if (entry.name == text) return entry.dtype;
  for (const Alias& alias : aliases)
    if (alias.text == text) return alias.dtype;
  std::vector<std::string> names;
  for (const DtypeFacts& entry : all_dtypes()) names.emplace_back(entry.name);
  return fail(std::string(where), fmt::format("unknown dtype {}", in_quotes(text)), suggestion(text, names));
}

Dtype product_dtype(Dtype a, Dtype b) {
  const DtypeFacts &x = facts(a), &y = facts(b);
  if (x.is_integer != y.is_integer) return x.is_integer ? b : a;
  return x.bits >= y.bits ? a : b;
}

}  // namespace assay
