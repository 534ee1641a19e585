#include "assay/ask/draw/tornado.h"

#include <algorithm>
#include <cmath>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/page.h"

namespace assay::draw {
namespace {

constexpr double tornado_row = 34.0, tornado_bar = 20.0, tornado_width = 560.0, number_room = 72.0;
constexpr ColourRole halved_colour = ColourRole::series_2, doubled_colour = ColourRole::series_1;

/// Where values are drawn.
struct TornadoAxis {
  double left = 0.0, least = 0.0, scale = 1.0;
  double at(double value) const { return left + (value - least) * scale; }
};

void add_tornado_bar(Scene& scene, const TornadoAxis& axis, double y, double now, const TornadoEnd& end,
                     ColourRole colour, const std::string& tooltip) {
  const double from = axis.at(now), to = axis.at(end.value);
  Rectangle box{std::min(from, to), y, std::abs(to - from), tornado_bar, 0.0, {}};
  box.paint.fill = colour;
  scene.add(std::move(box), tooltip);
  const bool is_left = to < from;
  scene.add(Label{{to + (is_left ? -6.0 : 6.0), y + tornado_bar - 6.0},
                  end.text,
                  picture_text_size,
                  is_left ? Anchor::end : Anchor::start,
                  ColourRole::muted},
            tooltip);
}

}  // namespace

Scene draw_tornado(Tornado tornado) {
  const auto width_of = [](const TornadoRow& row) { return std::abs(row.halved.value - row.doubled.value); };
  std::stable_sort(tornado.rows.begin(), tornado.rows.end(),
                   [&](const TornadoRow& a, const TornadoRow& b) { return width_of(a) > width_of(b); });
  double names = 0.0, least = tornado.now.value, most = least;
  for (const TornadoRow& row : tornado.rows) {
    names = std::max(names, text_width(row.name, picture_text_size));
    for (const double value : {row.halved.value, row.doubled.value, row.best ? row.best->value : least})
      least = std::min(least, value), most = std::max(most, value);
  }
  const double top = picture_margin + 84.0, bottom = top + tornado_row * static_cast<double>(tornado.rows.size());
  const TornadoAxis axis{picture_margin + names + number_room, least,
                         most > least ? tornado_width / (most - least) : 0.0};
  const double width = std::max(axis.left + tornado_width + number_room,
                                picture_margin + text_width(tornado.subtitle, picture_subtitle_size));
  Scene scene = titled_scene(width + picture_margin, bottom + picture_margin, tornado.title, tornado.subtitle);
  double key = picture_margin;
  for (const auto& [colour, word] : {std::pair{halved_colour, "halved"}, std::pair{doubled_colour, "doubled"}}) {
    Rectangle box{key, picture_margin + 50.0, 12.0, 12.0, 0.0, {}};
    box.paint.fill = colour;
    scene.add(std::move(box));
    scene.add(Label{{key + 18.0, picture_margin + 61.0}, word, picture_text_size});
    key += 34.0 + text_width(word, picture_text_size);
  }
  for (std::size_t i = 0; i < tornado.rows.size(); ++i) {
    const TornadoRow& row = tornado.rows[i];
    const double y = top + tornado_row * static_cast<double>(i);
    std::string tooltip = row.name + ": " + row.halved.text + " if halved, " + row.doubled.text + " if doubled";
    if (row.best) tooltip += ", " + row.best->text + " with the best plan then";
    scene.add(Label{{axis.left - number_room, y + tornado_bar - 6.0}, row.name, picture_text_size, Anchor::end},
              tooltip);
    add_tornado_bar(scene, axis, y, tornado.now.value, row.halved, halved_colour, tooltip);
    add_tornado_bar(scene, axis, y, tornado.now.value, row.doubled, doubled_colour, tooltip);
    if (row.best)
      scene.add(
          Marker{
              {axis.at(row.best->value), y + tornado_bar / 2.0}, MarkerShape::diamond, 4.0, {.fill = ColourRole::ink}},
          tooltip);
  }
  const double now = axis.at(tornado.now.value);
  scene.add(Polyline{{{now, top - 8.0}, {now, bottom}}, {.stroke = ColourRole::ink}});
  scene.add(Label{{now, top - 14.0}, tornado.now.text, picture_text_size, Anchor::middle});
  return scene;
}

}  // namespace assay::draw
