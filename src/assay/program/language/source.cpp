#include "assay/program/language/source.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::language {

int Source::line_of(std::size_t at) const {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(at, text.size()));
  return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

tl::unexpected<Error> Source::error(std::size_t at, std::string_view what, std::string hint) const {
  constexpr std::size_t widest = 100;  // of the line that is shown
  at = std::min(at, text.size());
  const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const std::size_t start = before == std::string::npos ? 0 : before + 1;
  const std::size_t column = at - start;
  const std::size_t from = column < widest ? start : at - widest / 2;
  const std::size_t end = std::min({text.find('\n', at), text.size(), from + widest});
  std::string line = text.substr(from, end - from), lead;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte < 32 || byte > 126) line[i] = byte == '\t' ? ' ' : '?';
  }
  lead.assign(at - from, ' ');
  return fail(fmt::format("{}:{}:{}", name, line_of(at), column + 1), fmt::format("{}\n  {}\n  {}^", what, line, lead),
              std::move(hint));
}

}  // namespace assay::language
