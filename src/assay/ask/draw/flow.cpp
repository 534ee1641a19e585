#include "assay/ask/draw/flow.h"

#include <algorithm>
#include <map>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/page.h"

namespace assay::draw {
namespace {

constexpr double line_height = 17.0, rank_gap = 26.0, box_gap = 18.0, text_padding = 12.0, detour = 18.0;

struct PlacedNode {
  std::size_t rank = 0;
  double middle = 0.0, width = 0.0, top = 0.0, height = 0.0;

  double bottom() const { return top + height; }
};

/// Ranks by what nodes read; boxes of a rank start at the same height.
std::vector<PlacedNode> ranked(const Flow& flow) {
  std::vector<PlacedNode> placed(flow.nodes.size());
  std::map<std::size_t, double> heights;
  for (std::size_t i = 0; i < flow.nodes.size(); ++i) {
    const FlowNode& node = flow.nodes[i];
    double widest_line = text_width(node.name, picture_text_size, true);
    for (const FlowLine& line : node.lines)
      widest_line = std::max(widest_line, text_width(line.text, picture_text_size));
    placed[i].width = 2.0 * text_padding + widest_line;
    placed[i].height = 12.0 + line_height * static_cast<double>(node.lines.size() + 1);
    for (const std::size_t input : node.inputs) placed[i].rank = std::max(placed[i].rank, placed[input].rank + 1);
    double& height = heights[placed[i].rank];
    height = std::max(height, placed[i].height);
  }
  for (PlacedNode& node : placed)
    for (const auto& [rank, height] : heights)
      if (rank < node.rank) node.top += height + rank_gap;
  return placed;
}

/// Below the mean of what it reads from the rank above, or of all that it reads; boxes of a rank side by side.
void spread(const Flow& flow, std::vector<PlacedNode>& placed) {
  std::map<std::size_t, std::vector<std::size_t>> ranks;
  for (std::size_t i = 0; i < placed.size(); ++i) ranks[placed[i].rank].push_back(i);
  for (auto& [rank, members] : ranks) {
    double wanted = 0.0, width = -box_gap;
    for (const std::size_t i : members) {
      double sum = 0.0, count = 0.0;
      for (const std::size_t input : flow.nodes[i].inputs)
        if (placed[input].rank + 1 == rank) {
          sum += placed[input].middle;
          count += 1.0;
        }
      placed[i].middle = count > 0.0 ? sum / count : 0.0;
      wanted += placed[i].middle / static_cast<double>(members.size());
      width += placed[i].width + box_gap;
    }
    std::stable_sort(members.begin(), members.end(),
                     [&](std::size_t a, std::size_t b) { return placed[a].middle < placed[b].middle; });
    double at = wanted - width / 2.0;
    for (const std::size_t i : members) {
      placed[i].middle = at + placed[i].width / 2.0;
      at += placed[i].width + box_gap;
    }
  }
}

/// Whether a straight line from one node to another would cross a third.
bool crosses(const std::vector<PlacedNode>& placed, std::size_t from, std::size_t to) {
  const PlacedNode &a = placed[from], &b = placed[to];
  const double start = a.bottom(), length = b.top - start;
  return std::any_of(placed.begin(), placed.end(), [&](const PlacedNode& other) {
    if (other.rank <= a.rank || other.rank >= b.rank) return false;
    const auto x = [&](double y) { return a.middle + (b.middle - a.middle) * (y - start) / length; };
    const double low = std::min(x(other.top), x(other.bottom())), high = std::max(x(other.top), x(other.bottom()));
    return high > other.middle - other.width / 2.0 - 4.0 && low < other.middle + other.width / 2.0 + 4.0;
  });
}

void add_box(Sketch& sketch, const FlowNode& node, const PlacedNode& at) {
  Rectangle box{at.middle - at.width / 2.0, at.top, at.width, at.height, 6.0, {}};
  box.paint = {.fill = node.colour, .fill_opacity = 0.12, .stroke = node.colour, .stroke_width = 1.2};
  sketch.add(box);
  double y = at.top + line_height;
  const auto line = [&](const std::string& text, ColourRole colour, bool bold) {
    sketch.add(Label{{at.middle, y}, text, picture_text_size, Anchor::middle, colour, bold});
    y += line_height;
  };
  line(node.name, ColourRole::ink, true);
  for (const FlowLine& each : node.lines) line(each.text, each.colour, false);
}

void add_arrow(Sketch& sketch, std::vector<PlotPoint> points) {
  const PlotPoint end = points.back();
  const Paint line{.stroke = ColourRole::muted, .stroke_width = 1.2};
  sketch.add(Polyline{std::move(points), line});
  sketch.add(Polygon{{{end.x - 4.0, end.y - 7.0}, {end.x + 4.0, end.y - 7.0}, end}, {.fill = ColourRole::muted}});
}

}  // namespace

Scene draw_flow(const Flow& flow) {
  std::vector<PlacedNode> placed = ranked(flow);
  spread(flow, placed);
  double left = 0.0;
  for (const PlacedNode& node : placed) left = std::min(left, node.middle - node.width / 2.0);
  Sketch sketch;
  double aside = left;
  for (std::size_t i = 0; i < flow.nodes.size(); ++i) {
    const PlacedNode& to = placed[i];
    const auto& inputs = flow.nodes[i].inputs;
    for (std::size_t n = 0; n < inputs.size(); ++n) {
      const PlacedNode& from = placed[inputs[n]];
      const double place = (static_cast<double>(n) + 1.0) / (static_cast<double>(inputs.size()) + 1.0) - 0.5;
      const PlotPoint start{from.middle, from.bottom()}, end{to.middle + place * 0.5 * to.width, to.top};
      if (!crosses(placed, inputs[n], i)) {
        add_arrow(sketch, {start, end});
        continue;
      }
      aside -= detour;
      const double above = start.y + rank_gap / 3.0, below = end.y - rank_gap / 2.0;
      add_arrow(sketch, {start, {start.x, above}, {aside, above}, {aside, below}, {end.x, below}, end});
    }
  }
  for (std::size_t i = 0; i < flow.nodes.size(); ++i) add_box(sketch, flow.nodes[i], placed[i]);
  const double header = picture_margin + 60.0;
  const SketchBounds& bounds = sketch.bounds();
  const double width =
      2.0 * picture_margin + std::max({bounds.width(), text_width(flow.title, picture_title_size, true),
                                       text_width(flow.subtitle, picture_subtitle_size)});
  Scene scene = titled_scene(width, header + bounds.height() + picture_margin, flow.title, flow.subtitle);
  Sketch all;
  all.append(sketch, (scene.width - bounds.width()) / 2.0 - bounds.left, header - bounds.top);
  for (const SceneItem& item : all.items()) scene.items.push_back(item);
  return scene;
}

}  // namespace assay::draw
