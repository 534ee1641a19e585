#include "assay/ask/draw/topology/topology_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/page.h"
#include "assay/ask/draw/topology/switched_sketch.h"
#include "assay/ask/draw/topology/torus_sketch.h"
#include "assay/base/text.h"

namespace assay::draw {
namespace {

constexpr double least_picture_width = 660.0;

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", human_count(count), count == 1 ? one : many);
}

std::string shape_of(const hardware::Torus& torus) {
  hardware::Shape shape;
  for (const hardware::Axis& axis : torus.axes) shape.push_back(axis.size);
  return hardware::shape_text(shape);
}

std::string title_of(const hardware::Cluster& cluster) {
  const std::string& chip = cluster.chip.name;
  if (cluster.chips() == 1) return chip + ", one chip";
  if (!cluster.torus) return fmt::format("{}, {}", chip, counted(cluster.chips(), "chip", "chips"));
  const std::string shape = shape_of(*cluster.torus) + (cluster.torus->twisted ? " twisted" : "");
  if (cluster.slices == 1) return fmt::format("{}, {} slice", chip, shape);
  return fmt::format("{}, {} slices of {}", chip, human_count(cluster.slices), shape);
}

/// Dense peak in bf16, otherwise fp16, otherwise the first format the chip has.
std::string rate_text(const hardware::Cluster& cluster) {
  std::vector<Dtype> order = {Dtype::bf16, Dtype::fp16};
  for (const DtypeFacts& entry : all_dtypes()) order.push_back(entry.dtype);
  for (const Dtype dtype : order)
    if (const FlopsPerSecond rate = hardware::total_rate(cluster, dtype); rate > FlopsPerSecond(0))
      return fmt::format("{} {}", human(rate), name(dtype));
  return "";
}

std::string totals_of(const hardware::Cluster& cluster) {
  std::vector<std::string> parts = {fmt::format("{} on {}", counted(cluster.chips(), "chip", "chips"),
                                                counted(hardware::host_count(cluster), "host", "hosts"))};
  if (std::string rate = rate_text(cluster); !rate.empty()) parts.push_back(std::move(rate));
  parts.push_back(fmt::format("{} of memory at {}", human(hardware::total_memory(cluster)),
                              human(hardware::total_memory_bandwidth(cluster))));
  return join(parts, ", ");
}

std::string network_of(const hardware::Cluster& cluster) {
  std::vector<std::string> parts;
  if (const std::int64_t links = hardware::scale_up_links(cluster); links > 0) {
    const auto& technology = cluster.chip.network.scale_up->technology;
    const std::string kind = cluster.torus && technology ? *technology + " " : "scale-up ";
    parts.push_back(counted(links, kind + "link", kind + "links"));
  }
  if (const std::int64_t switches = hardware::switch_count(cluster); switches > 0)
    parts.push_back(counted(switches, "switch", "switches"));
  if (const std::int64_t hops = hardware::diameter(cluster); hops > 0)
    parts.push_back(fmt::format("at most {}", hardware::switch_count(cluster) > 0
                                                  ? counted(hops, "switch crossing", "switch crossings")
                                                  : counted(hops, "hop", "hops")));
  if (const auto bisection = hardware::bisection_bandwidth(cluster))
    parts.push_back(fmt::format("bisection {} one way", human(*bisection)));
  return join(parts, ", ");
}

Sketch sketch_one_chip(const hardware::Cluster& cluster) {
  const hardware::Chip& chip = cluster.chip;
  std::vector<std::string> lines = {chip.id};
  if (std::string rate = rate_text(cluster); !rate.empty()) lines.push_back(std::move(rate));
  lines.push_back(
      fmt::format("{} of memory at {}", human(chip.hbm().capacity.value), human(chip.hbm().bandwidth->value)));
  double width = 180.0;
  for (const std::string& line : lines) width = std::max(width, text_width(line, 13.0, true) + 48.0);
  const double height = text_block_height(lines.size(), 13.0) + 56.0;
  Sketch sketch;
  // Unconnected ports: the links a larger cluster would use.
  if (const auto& up = chip.network.scale_up) {
    const std::int64_t ports = std::min<std::int64_t>(up->links.value, 6);
    for (std::int64_t i = 0; i < ports; ++i) {
      const bool left = i % 2 == 0;
      const std::int64_t rows = left ? (ports + 1) / 2 : ports / 2;
      const double y = height * (static_cast<double>(i / 2) + 0.5) / static_cast<double>(rows);
      sketch.line({left ? 0.0 : width, y}, {left ? -34.0 : width + 34.0, y},
                  {.stroke = ColourRole::muted, .stroke_width = 1.6, .dash = Dash::dotted});
    }
  }
  sketch.add(
      Rectangle{0.0,
                0.0,
                width,
                height,
                10.0,
                {.fill = ColourRole::muted, .fill_opacity = 0.1, .stroke = ColourRole::ink, .stroke_width = 1.6}});
  sketch.text_block({width / 2.0, (height - text_block_height(lines.size(), 13.0)) / 2.0}, lines, Anchor::middle, 13.0);
  if (const auto& up = chip.network.scale_up)
    sketch.text_block({width / 2.0, height + 14.0},
                      {fmt::format("{}, none in use", counted(up->links.value, up->technology.value_or("") + " link",
                                                              up->technology.value_or("") + " links")),
                       fmt::format("{} one way each", human(up->link_bandwidth.value))},
                      Anchor::middle);
  return sketch;
}

/// The first slice in full, some of the others as outlines, and the network that joins them as a bar above.
Sketch sketch_slices(const hardware::Cluster& cluster) {
  constexpr double gap = 36.0, drop = 34.0, bar_height = 30.0;
  const ColourRole colour = series_colour(4);
  const SliceSketch first = sketch_torus(cluster);
  const SketchBounds whole = first.sketch.bounds();
  const SliceSketch other = sketch_slice_outline(cluster, std::clamp(0.3 * whole.height(), 60.0, 170.0));
  const SketchBounds box = other.sketch.bounds();

  Sketch slices;
  std::vector<PlotPoint> ports = {{first.port.x - whole.left, first.port.y - whole.top}};
  slices.append(first.sketch, -whole.left, -whole.top);
  const double top = std::max(12.0, (whole.height() - box.height() - 20.0) / 3.0);
  const std::int64_t drawn = cluster.slices <= 4 ? cluster.slices : 3;
  for (std::int64_t number = 2; number <= drawn; ++number) {
    const std::string name = fmt::format("slice {}", number);
    const double left = slices.bounds().right + gap;
    const double width = std::max(box.width(), text_width(name, picture_text_size));
    const double dx = left + (width - box.width()) / 2.0 - box.left, dy = top - box.top;
    slices.append(other.sketch, dx, dy);
    slices.add(Label{
        {left + width / 2.0, top + box.height() + 18.0}, name, picture_text_size, Anchor::middle, ColourRole::muted});
    ports.push_back({other.port.x + dx, other.port.y + dy});
  }
  if (drawn < cluster.slices)
    slices.add(Label{{slices.bounds().right + gap / 2.0, top + box.height() / 2.0 + 5.0},
                     fmt::format("\u2026 {} slices", human_count(cluster.slices)),
                     14.0,
                     Anchor::start,
                     ColourRole::ink,
                     true});

  const hardware::Level& network = cluster.levels.back();
  const std::string text = fmt::format("data-centre network: {} one way per chip, {} per slice",
                                       human(network.chip_bandwidth), human(network.child_bandwidth));
  const double width =
      std::max(slices.bounds().right, text_width(text, picture_text_size, true) + 2.0 * picture_text_size);
  Sketch sketch;
  for (const PlotPoint& port : ports) sketch.line({port.x, -drop}, port, {.stroke = colour, .stroke_width = 2.4});
  sketch.append(slices, 0.0, 0.0);
  sketch.add(Rectangle{0.0,
                       -drop - bar_height,
                       width,
                       bar_height,
                       6.0,
                       {.fill = colour, .fill_opacity = 0.14, .stroke = colour, .stroke_width = 1.4}});
  sketch.add(Label{{width / 2.0, -drop - bar_height / 2.0 + 0.35 * picture_text_size},
                   text,
                   picture_text_size,
                   Anchor::middle,
                   ColourRole::ink,
                   true});
  return sketch;
}

/// A sample of each kind of shape with its name, from left to right in as many rows as needed.
class Key {
 public:
  explicit Key(double width) : width_(width) {}

  void add(const SceneShape& sample, const std::string& text) {
    const double needed = sample_width + text_width(text, picture_text_size);
    if (x_ > 0.0 && x_ + needed > width_) {
      x_ = 0.0;
      y_ += row_height;
    }
    Sketch one;
    one.add(sample);
    sketch_.append(one, x_ + 11.0, y_);
    sketch_.add(Label{
        {x_ + sample_width, y_ + 0.35 * picture_text_size}, text, picture_text_size, Anchor::start, ColourRole::muted});
    x_ += needed + 20.0;
  }

  const Sketch& sketch() const { return sketch_; }

 private:
  static constexpr double sample_width = 30.0;
  static constexpr double row_height = 20.0;
  double width_;
  double x_ = 0.0;
  double y_ = 0.0;
  Sketch sketch_;
};

Rectangle box_sample(double width, double height, double radius, const Paint& paint) {
  return {-width / 2.0, -height / 2.0, width, height, radius, paint};
}

void add_torus_key(const hardware::Cluster& cluster, Key& key) {
  const hardware::Torus& torus = *cluster.torus;
  const TorusView view = torus_view(torus);
  const bool cubes = view == TorusView::blocks && block_side(cluster) > 1;
  if (view == TorusView::grid)
    key.add(box_sample(13.0, 13.0, 2.5, chip_paint()), "chip");
  else if (view == TorusView::stack || cubes)
    key.add(Marker{.radius = 5.5, .paint = {.fill = ColourRole::ink}}, "chip");
  else
    key.add(box_sample(13.0, 13.0, 0.0, host_paint()), "chip");
  if (const hardware::Shape host = host_tile(cluster); !host.empty() && (view != TorusView::blocks || cubes))
    key.add(box_sample(20.0, 13.0, 4.0, host_paint()), fmt::format("host of {} chips", hardware::shape_text(host)));
  bool rings = false;
  for (std::size_t i = 0; i < torus.axes.size(); ++i) {
    if (torus.axes[i].size < 2) continue;
    rings = rings || torus.axes[i].ring;
    key.add(Polyline{{{-11.0, 0.0}, {11.0, 0.0}}, link_paint(i)}, torus.axes[i].name + " link");
  }
  if (!rings) return;
  const Paint paint = {.stroke = ColourRole::muted, .stroke_width = 1.5};
  key.add(
      Polyline{half_ellipse({-10.0, 4.0}, {10.0, 4.0}, {0.0, -9.0}), paint},
      view == TorusView::grid ? "wraparound link of a ring" : "wraparound of a ring, drawn on the outer edges only");
}

void add_switched_key(const hardware::Cluster& cluster, Key& key) {
  key.add(box_sample(13.0, 13.0, 2.5, chip_paint()), "chip");
  for (std::size_t i = 0; i < cluster.levels.size(); ++i)
    if (const hardware::Level& level = cluster.levels[i]; level.switches > 0)
      key.add(box_sample(20.0, 12.0, 3.5, {.fill = series_colour(static_cast<int>(i) + 1)}), level.name + " switch");
}

std::string description_of(const hardware::Cluster& cluster) {
  std::string text = fmt::format("{}. {}.", totals_of(cluster), network_of(cluster));
  if (cluster.torus)
    for (std::size_t i = 0; i < cluster.torus->axes.size(); ++i)
      text += fmt::format(" {}.", join(axis_text(cluster, i), ", "));
  for (const hardware::Level& level : cluster.levels)
    text += fmt::format(" Level {}: {} children at {} one way each.", level.name, human_count(level.degree),
                        human(level.child_bandwidth));
  return text;
}

}  // namespace

Scene draw_cluster(const hardware::Cluster& cluster) {
  const bool torus = cluster.torus.has_value() && cluster.chips_per_slice > 1;
  Sketch body;
  if (cluster.slices > 1)
    body = sketch_slices(cluster);
  else if (torus)
    body = sketch_torus(cluster).sketch;
  else if (!cluster.levels.empty())
    body = sketch_switched(cluster);
  else
    body = sketch_one_chip(cluster);

  const std::string title = title_of(cluster);
  const double width = std::max(
      {body.bounds().width(), least_picture_width, std::min(900.0, text_width(title, picture_title_size, true))});
  Page page(width);
  page.text(title, picture_title_size, ColourRole::ink, true, 2);
  page.space(2.0);
  page.text(totals_of(cluster), picture_subtitle_size, ColourRole::muted, false, 2);
  page.text(network_of(cluster), picture_subtitle_size, ColourRole::muted, false, 2);
  page.space(22.0);
  page.add(body, (width - body.bounds().width()) / 2.0);
  page.space(24.0);
  Key key(width);
  if (torus) add_torus_key(cluster, key);
  if (!torus && !cluster.levels.empty()) add_switched_key(cluster, key);
  if (!key.sketch().empty()) {
    page.add(key.sketch(), key.sketch().bounds().left);
    page.space(12.0);
  }
  for (const std::string& note : cluster.notes) page.text(note, 11.0);
  return page.scene(title, description_of(cluster), page.drawn());
}

}  // namespace assay::draw
