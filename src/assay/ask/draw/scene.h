#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "assay/ask/draw/theme.h"

namespace assay::draw {

/// A place in a drawing (x to the right, y down, in CSS pixels), or a pair of data values.
struct PlotPoint {
  double x = 0.0;
  double y = 0.0;
};

/// The point at this share of the way from one to the other.
inline PlotPoint between(PlotPoint a, PlotPoint b, double share) {
  return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
}

/// A pattern of dashes; together with the marker shape it tells series apart without colour.
enum class Dash { solid, dashed, dotted, dash_dot, long_dashed, short_dashed, dash_dot_dot, long_dotted, sparse };

/// How a shape is filled and outlined; a role of `none` leaves that part out.
struct Paint {
  ColourRole fill = ColourRole::none;
  double fill_opacity = 1.0;
  ColourRole stroke = ColourRole::none;
  double stroke_opacity = 1.0;
  double stroke_width = 1.0;
  Dash dash = Dash::solid;
};

/// A line through points.
struct Polyline {
  std::vector<PlotPoint> points = {};
  Paint paint = {};
};

/// A closed area between points.
struct Polygon {
  std::vector<PlotPoint> points = {};
  Paint paint = {};
};

/// An upright rectangle, with rounded corners where `radius` is above 0.
struct Rectangle {
  double x = 0.0;
  double y = 0.0;
  double width = 0.0;
  double height = 0.0;
  double radius = 0.0;
  Paint paint = {};
};

/// The outline of a marker, in the order in which series take them.
enum class MarkerShape { circle, square, triangle, diamond, triangle_down, plus, cross, bar };

/// A small symbol, drawn so that all shapes of one radius look equally large.
struct Marker {
  PlotPoint centre = {};
  MarkerShape shape = MarkerShape::circle;
  double radius = 4.0;
  Paint paint = {};
};

/// Which part of a label is at its position.
enum class Anchor { start, middle, end };

/// One line of text whose baseline goes through `at`.
struct Label {
  PlotPoint at = {};
  std::string text = {};
  double size = 12.0;
  Anchor anchor = Anchor::start;
  ColourRole colour = ColourRole::ink;
  bool bold = false;
  bool halo = false;  // a rim in the colour of the surface, for text over lines
};

/// Anything a scene can show.
using SceneShape = std::variant<Polyline, Polygon, Rectangle, Marker, Label>;

/// A shape and its tooltip; neighbours with the same tooltip form one group.
struct SceneItem {
  SceneShape shape = {};
  std::string tooltip = {};
};

/// A drawing: shapes in the order they are painted, on a surface of `width` by `height`.
/// Title and description are read out to people who cannot see it.
struct Scene {
  double width = 0.0;
  double height = 0.0;
  std::string title = {};
  std::string description = {};
  std::vector<SceneItem> items = {};

  /// Paints a shape on top of the existing ones.
  void add(SceneShape shape, std::string tooltip = {}) { items.push_back({std::move(shape), std::move(tooltip)}); }
};

/// The colours of an SVG; `automatic` follows the reader's preference and is light if there is none.
enum class SvgTheme { automatic, light, dark };

/// The scene as a standalone SVG document; equal scenes give equal bytes.
/// Colours are set by classes such as `assay-fill-ink`, which a page that embeds the document may override.
/// Shapes with a coordinate that is not finite are left out, and text that XML cannot hold is replaced by U+FFFD.
std::string to_svg(const Scene& scene, SvgTheme theme = SvgTheme::automatic);

/// `text` escaped for use between XML tags or in a quoted attribute.
std::string xml_escaped(std::string_view text);

}  // namespace assay::draw
