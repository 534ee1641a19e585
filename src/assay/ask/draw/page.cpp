#include "assay/ask/draw/page.h"

#include <algorithm>
#include <utility>

#include "assay/ask/draw/lettering.h"

namespace assay::draw {

Scene titled_scene(double width, double height, const std::string& title, const std::string& subtitle) {
  Scene scene{width, height, title, subtitle, {}};
  scene.add(
      Label{{picture_margin, picture_margin + 14.0}, title, picture_title_size, Anchor::start, ColourRole::ink, true});
  scene.add(Label{
      {picture_margin, picture_margin + 36.0}, subtitle, picture_subtitle_size, Anchor::start, ColourRole::muted});
  return scene;
}

void Page::text(const std::string& text, double size, ColourRole colour, bool bold, std::size_t most_lines) {
  for (const std::string& line : wrapped(text, size, width_, most_lines, bold)) {
    sketch_.add(Label{{0.0, y_ + 0.8 * size}, line, size, Anchor::start, colour, bold});
    y_ += 1.4 * size;
  }
}

void Page::add(const Sketch& part, double left) {
  sketch_.append(part, left - part.bounds().left, y_ - part.bounds().top);
  y_ += part.bounds().height();
}

Scene Page::scene(std::string title, std::string description, double height) const {
  Sketch placed;
  placed.append(sketch_, picture_margin, picture_margin - sketch_.bounds().top);
  return {std::max(width_, sketch_.bounds().right) + 2.0 * picture_margin, height + 2.0 * picture_margin,
          std::move(title), std::move(description), placed.items()};
}

}  // namespace assay::draw
