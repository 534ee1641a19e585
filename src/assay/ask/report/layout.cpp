#include "assay/ask/report/layout.h"

#include <algorithm>
#include <array>
#include <utility>

namespace assay::report {
namespace {

bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Bytes of the first `count` code points.
std::size_t bytes_of(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at)
    if (!continues_code_point(text[at]) && ++seen > count) break;
  return at;
}

}  // namespace

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_code_point(c); }));
}

std::string padded(std::string_view text, std::size_t to) {
  return std::string(text) + std::string(to - std::min(to, columns(text)), ' ');
}

std::string right_aligned(std::string_view text, std::size_t to) {
  return std::string(to - std::min(to, columns(text)), ' ') + std::string(text);
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  width = std::max<std::size_t>(width, 1);
  std::vector<std::string> lines;
  while (columns(text) > width) {
    const std::size_t room = bytes_of(text, width + 1);  // a blank may follow the last word that fits
    std::size_t end = text.substr(0, room).rfind(' ');
    if (end == std::string_view::npos || end == 0) end = bytes_of(text, width);
    std::string_view line = text.substr(0, end);
    while (line.ends_with(' ')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

std::string words(std::string_view key) {
  std::string text(key);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string in_ascii(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> known{
      {{"\u00b5", "u"},
       {"\u00b7", "*"},
       {"\u2026", "..."},
       {"\u00d7", "x"},
       {"\u2588", "#"},
       {"\u2502", "|"},
       {"\u00a0", "\u00a0"}}};  // this holds words together
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = bytes_of(text.substr(at), 1);
    const std::string_view point = text.substr(at, size);
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == point; });
    out += found != known.end() ? found->second : static_cast<unsigned char>(point[0]) < 0x80 ? point : "?";
    at += size;
  }
  return out;
}

}  // namespace assay::report
