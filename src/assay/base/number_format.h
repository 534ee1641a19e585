// How numbers are stored: a dtype, and the scales shared by blocks of a quantised tensor.
#pragma once
#include <string>
#include <string_view>

#include "assay/base/dtype.h"

namespace assay {

/// Elements of a dtype, and scales shared by blocks of them. Scales of a whole tensor are too few to count.
struct NumberFormat {
  Dtype dtype = Dtype::bf16;
  int scale_bits = 0;         ///< bits of a block's scale, including its zero point
  int columns = 1, rows = 1;  ///< sides of the block that shares a scale

  constexpr NumberFormat(Dtype elements, int scale = 0, int block_columns = 1, int block_rows = 1)
      : dtype(elements), scale_bits(scale), columns(block_columns), rows(block_rows) {}
  constexpr double scale_bits_per_element() const { return scale_bits / (1.0 * columns * rows); }
  constexpr double bits() const { return facts(dtype).bits + scale_bits_per_element(); }
  constexpr bool is_plain() const { return scale_bits == 0; }
  friend constexpr bool operator==(const NumberFormat&, const NumberFormat&) = default;
};
constexpr Bytes storage(const NumberFormat& format, double count) { return Bytes(count * format.bits() / 8.0); }

/// "bf16", "mxfp4", "int4-g128", "fp8-128x128".
std::string name(const NumberFormat& format);

/// A dtype is a plain format. mxfp8, mxfp6, mxfp4: 8 bits per 32 elements; nvfp4: 8 per 16; DTYPE-gN: 16 per N of a
/// row; DTYPE-gNz: also a zero point, as wide as an element; DTYPE-MxN: 32 per M x N elements of a matrix.
Result<NumberFormat> parse_number_format(std::string_view text, std::string_view where);

}  // namespace assay
