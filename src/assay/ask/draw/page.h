// The frame that pictures share: a title, lines of text below it, and margins.
#pragma once

#include <cstddef>
#include <string>

#include "assay/ask/draw/sketch.h"

namespace assay::draw {

/// A picture of this size that holds nothing but a title and a line below it, which is also its description.
Scene titled_scene(double width, double height, const std::string& title, const std::string& subtitle);

/// A page that grows downwards: lines of text no wider than the page, and sketches.
class Page {
 public:
  explicit Page(double width) : width_(width) {}

  void text(const std::string& text, double size, ColourRole colour = ColourRole::muted, bool bold = false,
            std::size_t most_lines = 3);
  void space(double height) { y_ += height; }
  /// A sketch, this far from the left edge.
  void add(const Sketch& part, double left = 0.0);
  void rule() { sketch_.line({0.0, y_}, {width_, y_}, {.stroke = ColourRole::grid}); }

  /// The height up to where the next part goes, and that of all parts so far.
  double next() const { return y_; }
  double drawn() const { return sketch_.bounds().height(); }
  /// All parts on a picture with margins around this height.
  Scene scene(std::string title, std::string description, double height) const;

 private:
  double width_;
  double y_ = 0.0;
  Sketch sketch_;
};

}  // namespace assay::draw
