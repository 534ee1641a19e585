#include "assay/base/number_format.h"

#include <fmt/format.h>

#include <optional>

#include "assay/base/text.h"

namespace assay {
namespace {

struct BlockFormat {
  std::string_view text;
  NumberFormat format;
};
/// Formats that hardware multiplies natively, with 8-bit scales.
constexpr BlockFormat block_formats[] = {
    {"mxfp8", {Dtype::fp8, 8, 32}},
    {"mxfp6", {Dtype::fp6, 8, 32}},
    {"mxfp4", {Dtype::fp4, 8, 32}},
    {"nvfp4", {Dtype::fp4, 8, 16}},
};
constexpr int group_scale_bits = 16, matrix_scale_bits = 32;

/// A side of a block: at least one element and at most 2^20; otherwise empty.
std::optional<int> block_size(std::string_view text) {
  const auto number = parse_number(text);
  if (!number || *number < 1 || *number > (1 << 20) || *number != static_cast<int>(*number)) return std::nullopt;
  return static_cast<int>(*number);
}

/// The part after the dash: g128, g128z or 128x128.
std::optional<NumberFormat> with_blocks(Dtype dtype, std::string_view text) {
  if (text.starts_with('g')) {
    const bool zero = text.ends_with('z');
    const auto group = block_size(text.substr(1, text.size() - (zero ? 2 : 1)));
    if (!group) return std::nullopt;
    return NumberFormat(dtype, group_scale_bits + (zero ? facts(dtype).bits : 0), *group);
  }
  const std::size_t by = text.find('x');
  if (by == std::string_view::npos) return std::nullopt;
  const auto rows = block_size(text.substr(0, by)), columns = block_size(text.substr(by + 1));
  if (!rows || !columns) return std::nullopt;
  return NumberFormat(dtype, matrix_scale_bits, *columns, *rows);
}

}  // namespace

std::string name(const NumberFormat& format) {
  for (const BlockFormat& known : block_formats)
    if (known.format == format) return std::string(known.text);
  const std::string_view elements = name(format.dtype);
  if (format.is_plain()) return std::string(elements);
  if (format.scale_bits == matrix_scale_bits) return fmt::format("{}-{}x{}", elements, format.rows, format.columns);
  if (format.rows == 1 && format.scale_bits == group_scale_bits) return fmt::format("{}-g{}", elements, format.columns);
  if (format.rows == 1 && format.scale_bits == group_scale_bits + facts(format.dtype).bits)
    return fmt::format("{}-g{}z", elements, format.columns);
  return fmt::format("{} and {} bits per {}", elements, format.scale_bits, format.rows * format.columns);
}

Result<NumberFormat> parse_number_format(std::string_view text, std::string_view where) {
  for (const BlockFormat& known : block_formats)
    if (known.text == text) return known.format;
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    ASSAY_TRY(dtype, parse_dtype(text, where));
    return NumberFormat(dtype);
  }
  ASSAY_TRY(dtype, parse_dtype(text.substr(0, dash), where));
  if (const auto format = with_blocks(dtype, text.substr(dash + 1))) return *format;
  return fail(std::string(where), fmt::format("{} is not a number format", in_quotes(text)),
              "blocks that share a scale: int4-g128, int4-g128z with zero points, fp8-128x128");
}

}  // namespace assay
