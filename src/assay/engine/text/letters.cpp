#include "assay/engine/text/letters.h"

#include <algorithm>
#include <charconv>

#include "assay/base/text.h"

namespace assay::engine {
namespace {

char32_t hexadecimal(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

}  // namespace

Result<const Letters*> Letters::of(const hardware::Catalogue& catalogue) {
  return catalogue.kept<Letters>("letters", [&]() -> Result<Letters> {
    Letters out;
    for (const auto& [path, text] : catalogue.files("texts/letters.txt"))
      for (const std::string& line : assay::split(text, '\n')) {
        const std::vector<std::string> words = assay::split(line, ' ');
        for (std::size_t i = 1; i < words.size(); ++i) {
          const std::size_t dash = words[i].find('-');
          const char32_t first = hexadecimal(words[i].substr(0, dash));
          const char32_t last = dash == std::string::npos ? first : hexadecimal(words[i].substr(dash + 1));
          out.kinds_[words[0]].emplace_back(first, last);
        }
      }
    return out;
  });
}

LetterRanges Letters::ranges(std::string_view kind) const {
  LetterRanges out;
  for (const auto& [name, ranges] : kinds_)
    if (name == kind || (kind.size() == 1 && name.size() == 2 && name[0] == kind[0]))
      out.insert(out.end(), ranges.begin(), ranges.end());
  std::sort(out.begin(), out.end());
  return out;
}

bool Letters::is(std::string_view kind, char32_t letter) const { return holds(ranges(kind), letter); }

bool holds(const LetterRanges& ranges, char32_t letter) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), letter,
                                      [](char32_t value, const auto& range) { return value < range.first; });
  return after != ranges.begin() && letter <= std::prev(after)->second;
}

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    char32_t letter = length == 1 ? lead : lead & (0x7fU >> length);
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k)
      letter = letter << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    out.push_back(letter);
    i += length;
  }
  return out;
}

}  // namespace assay::engine
