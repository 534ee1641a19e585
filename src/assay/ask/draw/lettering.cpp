#include "assay/ask/draw/lettering.h"

#include <array>
#include <cstdint>

namespace assay::draw {
namespace {

constexpr std::string_view ellipsis = "\u2026";

// Bold DejaVu Sans is wider than the regular face by this factor, averaged over the lower-case alphabet.
constexpr double bold_widening = 1.13;

// Advance widths of DejaVu Sans from U+0020 to U+007E, in thousandths of the font size.
constexpr std::array<std::int16_t, 95> ascii_widths = {
    318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,  //
    636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,  //
    1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,  //
    603,  787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,  //
    500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,  //
    635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838};

double em_width(char32_t c) {
  if (c < 0x20 || c == 0x7f) return 0.0;
  if (c < 0x7f) return ascii_widths[c - 0x20] / 1000.0;
  const bool combining = (c >= 0x300 && c < 0x370) || (c >= 0x200b && c < 0x2010) || (c >= 0xfe00 && c < 0xfe10);
  if (combining) return 0.0;
  // Accented Latin, Greek and Cyrillic; then punctuation, arrows, mathematics; then scripts drawn in full squares.
  if (c < 0x2000) return 0.7;
  if (c < 0x2e80 && c != 0x2014 && c != 0x2026) return 0.86;
  return 1.0;
}

double width_in_ems(std::string_view text) {
  double width = 0.0;
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    width += em_width(c.value);
    text.remove_prefix(c.length);
  }
  return width;
}

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// The length of the longest prefix of `text` that ends before a space and fits; 0 if not even one word does.
std::size_t fitting_words(std::string_view text, double size, double width, bool bold) {
  std::size_t fits = 0;
  for (std::size_t end = 1; end <= text.size(); ++end) {
    if (end < text.size() && !is_space(text[end])) continue;
    if (text_width(text.substr(0, end), size, bold) > width) break;
    fits = end;
  }
  return fits;
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const CodePoint broken = {U'\ufffd', 1};
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return broken;
  char32_t value = static_cast<char32_t>(lead & (0xff >> (length + 1)));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return broken;
    value = (value << 6) | static_cast<char32_t>(byte(i) & 0x3f);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (overlong || surrogate || value > 0x10ffff) return broken;
  return {value, length};
}

double text_width(std::string_view text, double size, bool bold) {
  return width_in_ems(text) * size * (bold ? bold_widening : 1.0);
}

std::string shortened(std::string_view text, double size, double width, bool bold) {
  if (text_width(text, size, bold) <= width) return std::string(text);
  const double room = width - text_width(ellipsis, size, bold);
  std::size_t end = 0;
  double used = 0.0;
  while (end < text.size()) {
    const CodePoint c = first_code_point(text.substr(end));
    used += text_width(text.substr(end, c.length), size, bold);
    if (used > room) break;
    end += c.length;
  }
  return std::string(trimmed(text.substr(0, end))).append(ellipsis);
}

std::vector<std::string> wrapped(std::string_view text, double size, double width, std::size_t max_lines, bool bold) {
  std::vector<std::string> lines;
  text = trimmed(text);
  while (!text.empty() && lines.size() < max_lines) {
    const std::size_t fits = fitting_words(text, size, width, bold);
    if (lines.size() + 1 == max_lines || fits == text.size()) {
      lines.push_back(shortened(text, size, width, bold));
      break;
    }
    if (fits == 0) {
      // A word wider than the line is shortened in place, and the text continues after it.
      std::size_t end = 0;
      while (end < text.size() && !is_space(text[end])) ++end;
      lines.push_back(shortened(text.substr(0, end), size, width, bold));
      text = trimmed(text.substr(end));
      continue;
    }
    lines.emplace_back(trimmed(text.substr(0, fits)));
    text = trimmed(text.substr(fits));
  }
  return lines;
}

}  // namespace assay::draw
