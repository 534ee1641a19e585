#include "assay/ask/draw/sentences.h"

#include <string_view>

#include "assay/ask/draw/lettering.h"

namespace assay::draw {

Scene sentences(const std::string& heading, const std::vector<std::string>& lines) {
  constexpr double width = 760.0, margin = 24.0, heading_size = 15.0, size = 12.0, spacing = 1.4;
  constexpr std::size_t most_lines = 12;  // of one sentence
  Scene scene{width, margin, heading, {}, {}};
  const auto write = [&](std::string_view text, double letters, ColourRole colour, bool bold) {
    for (const std::string& line : wrapped(text, letters, width - 2.0 * margin, most_lines, bold)) {
      scene.height += spacing * letters;
      scene.add(Label{{margin, scene.height}, line, letters, Anchor::start, colour, bold});
    }
    scene.height += 0.5 * letters;
  };
  write(heading, heading_size, ColourRole::ink, true);
  for (const std::string& line : lines) {
    write(line, size, ColourRole::muted, false);
    scene.description += (scene.description.empty() ? "" : "; ") + line;
  }
  scene.height += margin;
  return scene;
}

}  // namespace assay::draw
