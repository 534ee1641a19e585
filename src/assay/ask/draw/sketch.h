#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"

namespace assay::draw {

// What every drawing of sketches shares.
inline constexpr double picture_margin = 24.0, picture_title_size = 18.0, picture_subtitle_size = 13.0,
                        picture_text_size = 12.0;

/// The upright box that shapes cover.
struct SketchBounds {
  double left = 0.0;
  double top = 0.0;
  double right = 0.0;
  double bottom = 0.0;

  double width() const { return right - left; }
  double height() const { return bottom - top; }
  double middle_x() const { return (left + right) / 2.0; }
  double middle_y() const { return (top + bottom) / 2.0; }
};

/// A part of a drawing with its own coordinates and a known bounding box, text included, so that parts can be drawn
/// separately and then placed side by side without touching.
class Sketch {
 public:
  bool empty() const { return items_.empty(); }
  const SketchBounds& bounds() const { return bounds_; }
  const std::vector<SceneItem>& items() const { return items_; }

  /// Assumes that lines and areas cover their points, markers their radius and text the width of the widest font.
  void add(SceneShape shape, std::string tooltip = {});
  void line(PlotPoint from, PlotPoint to, const Paint& paint, std::string tooltip = {});
  /// Lines of text below each other from `at.y` down, the first one bold.
  void text_block(PlotPoint at, const std::vector<std::string>& lines, Anchor anchor, double size = 12.0);
  /// Adds all of another sketch in front, shifted.
  void append(const Sketch& other, double dx, double dy);

 private:
  std::vector<SceneItem> items_;
  SketchBounds bounds_;
};

SceneShape moved(SceneShape shape, double dx, double dy);

/// The height of a text block with this many lines.
double text_block_height(std::size_t lines, double size = 12.0);

/// A line through `corners` whose inner corners are rounded with up to `radii`, one for each.
std::vector<PlotPoint> rounded_path(const std::vector<PlotPoint>& corners, const std::vector<double>& radii);

/// Half an ellipse from one point to another that bulges by `bulge` at its middle.
std::vector<PlotPoint> half_ellipse(PlotPoint from, PlotPoint to, PlotPoint bulge);

/// Where the members of a long row are drawn: all of them, or the first and last few with a gap between.
struct RowSlots {
  std::vector<std::int64_t> index;  ///< which members are drawn
  std::vector<double> place;        ///< where, in units of the pitch, from 0
  std::size_t head = 0;             ///< how many come before the gap; all if there is none

  std::size_t size() const { return index.size(); }
  bool broken() const { return head < index.size(); }
  double length() const { return place.empty() ? 0.0 : place.back(); }
};

/// Slots for `count` members: all if there are at most `most`, otherwise `head` and `tail` of them around a gap.
RowSlots row_slots(std::int64_t count, std::int64_t most, std::int64_t head, std::int64_t tail);

}  // namespace assay::draw
