#include "assay/ask/draw/scene.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <set>

#include "assay/ask/draw/lettering.h"

namespace assay::draw {
namespace {

constexpr std::string_view font_stack =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";

constexpr std::array<std::string_view, 9> dash_arrays = {
    "", "7 4", "1.5 3.5", "9 3.5 1.5 3.5", "13 4", "4 3", "9 3 1.5 3 1.5 3", "1.5 6", "2 4"};

// Two decimals are finer than any screen shows, and hide the last-digit differences between platforms.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

bool finite(PlotPoint point) { return std::isfinite(point.x) && std::isfinite(point.y); }

bool finite(const std::vector<PlotPoint>& points) {
  for (const PlotPoint& point : points) {
    if (!finite(point)) return false;
  }
  return true;
}

std::string coordinates(const std::vector<PlotPoint>& points) {
  std::string text;
  for (const PlotPoint& point : points) {
    if (!text.empty()) text += ' ';
    text += number(point.x) + ',' + number(point.y);
  }
  return text;
}

// Writes elements, and records which roles they use, so that the style sheet names only those.
class SvgWriter {
 public:
  void write(const SceneItem& item) {
    const std::size_t before = body_.size();
    std::visit([this](const auto& shape) { draw(shape); }, item.shape);
    if (item.tooltip == open_tooltip_ || body_.size() == before) return;
    std::string element = body_.substr(before);
    body_.resize(before);
    close_group();
    open_tooltip_ = item.tooltip;
    if (!open_tooltip_.empty()) body_ += "<g><title>" + xml_escaped(open_tooltip_) + "</title>\n";
    body_ += element;
  }

  void close_group() {
    if (!open_tooltip_.empty()) body_ += "</g>\n";
    open_tooltip_.clear();
  }

  const std::string& body() const { return body_; }

  std::string rules(bool dark) const {
    std::string text;
    for (const ColourRole role : fills_) text += rule("fill", role, dark);
    for (const ColourRole role : strokes_) text += rule("stroke", role, dark);
    return text;
  }

 private:
  static std::string rule(std::string_view property, ColourRole role, bool dark) {
    const RoleColours& colours = role_colours(role);
    return fmt::format(".assay-{0}-{1}{{{0}:{2}}}\n", property, colours.name, dark ? colours.dark : colours.light);
  }

  std::string painted(const Paint& paint) {
    std::string classes;
    std::string attributes;
    if (paint.fill != ColourRole::none) {
      fills_.insert(paint.fill);
      classes = fmt::format("assay-fill-{}", role_colours(paint.fill).name);
      if (paint.fill_opacity < 1.0) attributes += fmt::format(" fill-opacity=\"{}\"", number(paint.fill_opacity));
    } else {
      attributes += " fill=\"none\"";
    }
    if (paint.stroke != ColourRole::none) {
      strokes_.insert(paint.stroke);
      if (!classes.empty()) classes += ' ';
      classes += fmt::format("assay-stroke-{}", role_colours(paint.stroke).name);
      attributes += fmt::format(" stroke-width=\"{}\"", number(paint.stroke_width));
      if (paint.stroke_opacity < 1.0) attributes += fmt::format(" stroke-opacity=\"{}\"", number(paint.stroke_opacity));
      const std::string_view dash = dash_arrays[static_cast<std::size_t>(paint.dash)];
      if (!dash.empty()) attributes += fmt::format(" stroke-dasharray=\"{}\"", dash);
    }
    return classes.empty() ? attributes : fmt::format(" class=\"{}\"{}", classes, attributes);
  }

  void draw(const Polyline& line) {
    if (line.points.size() < 2 || !finite(line.points)) return;
    body_ += fmt::format("<polyline points=\"{}\"{} stroke-linejoin=\"round\"/>\n", coordinates(line.points),
                         painted(line.paint));
  }

  void draw(const Polygon& area) {
    if (area.points.size() < 3 || !finite(area.points)) return;
    body_ += fmt::format("<polygon points=\"{}\"{}/>\n", coordinates(area.points), painted(area.paint));
  }

  void draw(const Rectangle& box) {
    if (!finite({box.x, box.y}) || !finite({box.width, box.height})) return;
    if (box.width <= 0.0 || box.height <= 0.0) return;
    const std::string corner = box.radius > 0.0 ? fmt::format(" rx=\"{}\"", number(box.radius)) : "";
    body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}{}/>\n", number(box.x), number(box.y),
                         number(box.width), number(box.height), corner, painted(box.paint));
  }

  void draw(const Marker& marker) {
    if (!finite(marker.centre) || !std::isfinite(marker.radius)) return;
    if (marker.shape == MarkerShape::circle) {
      body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n", number(marker.centre.x),
                           number(marker.centre.y), number(marker.radius), painted(marker.paint));
    } else {
      draw(Polygon{outline(marker), marker.paint});
    }
  }

  // Radii are scaled so that each shape covers about the area of the circle it represents.
  static std::vector<PlotPoint> outline(const Marker& marker) {
    const double r = marker.radius;
    const double arm = 1.25 * r;
    const double half = 0.42 * r;
    std::vector<PlotPoint> points;
    switch (marker.shape) {
      case MarkerShape::circle:
        break;
      case MarkerShape::square:
        points = {{-0.9 * r, -0.9 * r}, {0.9 * r, -0.9 * r}, {0.9 * r, 0.9 * r}, {-0.9 * r, 0.9 * r}};
        break;
      case MarkerShape::triangle:
        points = {{0, -1.3 * r}, {1.2 * r, 0.85 * r}, {-1.2 * r, 0.85 * r}};
        break;
      case MarkerShape::triangle_down:
        points = {{0, 1.3 * r}, {1.2 * r, -0.85 * r}, {-1.2 * r, -0.85 * r}};
        break;
      case MarkerShape::diamond:
        points = {{0, -1.3 * r}, {1.3 * r, 0}, {0, 1.3 * r}, {-1.3 * r, 0}};
        break;
      case MarkerShape::bar:
        points = {{-0.55 * r, -1.3 * r}, {0.55 * r, -1.3 * r}, {0.55 * r, 1.3 * r}, {-0.55 * r, 1.3 * r}};
        break;
      case MarkerShape::plus:
      case MarkerShape::cross:
        points = {{-half, -arm}, {half, -arm}, {half, -half}, {arm, -half}, {arm, half},   {half, half},
                  {half, arm},   {-half, arm}, {-half, half}, {-arm, half}, {-arm, -half}, {-half, -half}};
        break;
    }
    const double turn = marker.shape == MarkerShape::cross ? std::sqrt(0.5) : 1.0;
    const double lean = marker.shape == MarkerShape::cross ? std::sqrt(0.5) : 0.0;
    for (PlotPoint& point : points) {
      point = {marker.centre.x + turn * point.x - lean * point.y, marker.centre.y + lean * point.x + turn * point.y};
    }
    return points;
  }

  void draw(const Label& label) {
    if (label.text.empty() || !finite(label.at) || !std::isfinite(label.size)) return;
    std::string attributes =
        fmt::format(" x=\"{}\" y=\"{}\" font-size=\"{}\"", number(label.at.x), number(label.at.y), number(label.size));
    if (label.anchor != Anchor::start) {
      attributes += fmt::format(" text-anchor=\"{}\"", label.anchor == Anchor::middle ? "middle" : "end");
    }
    if (label.bold) attributes += " font-weight=\"600\"";
    const std::string text = xml_escaped(label.text);
    if (label.halo) {
      // A second copy below, because not every rasteriser knows paint-order.
      const Paint rim = {.stroke = ColourRole::surface, .stroke_opacity = 0.9, .stroke_width = 3.5};
      body_ += fmt::format("<text{}{} stroke-linejoin=\"round\" aria-hidden=\"true\">{}</text>\n", attributes,
                           painted(rim), text);
    }
    body_ += fmt::format("<text{}{}>{}</text>\n", attributes, painted({.fill = label.colour}), text);
  }

  std::set<ColourRole> fills_;
  std::set<ColourRole> strokes_;
  std::string body_;
  std::string open_tooltip_;
};

std::string style_sheet(const SvgWriter& writer, SvgTheme theme) {
  std::string text = writer.rules(theme == SvgTheme::dark);
  if (theme == SvgTheme::automatic) {
    text += "@media (prefers-color-scheme:dark){\n" + writer.rules(true) + "}\n";
  }
  return text;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const bool control = c.value < 0x20 && c.value != '\t' && c.value != '\n' && c.value != '\r';
    const bool valid = c.value != 0xfffd && c.value != 0xfffe && c.value != 0xffff && !control;
    switch (c.value) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&apos;";
        break;
      default:
        escaped += valid ? text.substr(0, c.length) : std::string_view("\ufffd");
    }
    text.remove_prefix(c.length);
  }
  return escaped;
}

std::string to_svg(const Scene& scene, SvgTheme theme) {
  const auto size = [](double length) { return number(std::isfinite(length) && length > 0.0 ? length : 0.0); };
  const std::string width = size(scene.width);
  const std::string height = size(scene.height);
  SvgWriter writer;
  // The surface is painted, since the surrounding page may not follow the same preference as the drawing.
  writer.write({Rectangle{.width = scene.width, .height = scene.height, .paint = {.fill = ColourRole::surface}}, ""});
  for (const SceneItem& item : scene.items) writer.write(item);
  writer.close_group();

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "font-family=\"{2}\" style=\"font-variant-numeric:tabular-nums\">\n",
      width, height, font_stack);
  if (!scene.title.empty()) svg += "<title>" + xml_escaped(scene.title) + "</title>\n";
  if (!scene.description.empty()) svg += "<desc>" + xml_escaped(scene.description) + "</desc>\n";
  svg += "<style>\n" + style_sheet(writer, theme) + "</style>\n" + writer.body() + "</svg>\n";
  return svg;
}

}  // namespace assay::draw
