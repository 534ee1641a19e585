#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::draw {

/// One character of a UTF-8 text: its code point, and how many bytes it took.
/// A byte that belongs to no valid character reads as U+FFFD and takes one byte.
struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;
};

/// The first character of `text`, which must not be empty.
CodePoint first_code_point(std::string_view text);

/// The width of `text` set at `size`, in the unit of `size`.
/// No font is available when a drawing is made, so widths are taken from the widest common sans-serif face
/// (DejaVu Sans): text given this much room fits in any face of the font stack.
double text_width(std::string_view text, double size, bool bold = false);

/// `text`, cut at the end and marked with an ellipsis if it is wider than `width`.
std::string shortened(std::string_view text, double size, double width, bool bold = false);

/// `text` broken at spaces into at most `max_lines` lines no wider than `width`; what does not fit ends in an ellipsis.
std::vector<std::string> wrapped(std::string_view text, double size, double width, std::size_t max_lines,
                                 bool bold = false);

}  // namespace assay::draw
