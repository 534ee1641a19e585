// The dies of a chip, to scale, each cut into strips of its parts.
#include <fmt/format.h>

#include <cmath>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/page.h"
#include "assay/ask/draw/sketch.h"
#include "assay/ask/verbs/design/design.h"
#include "assay/base/text.h"

namespace assay::verbs::design_verb {
namespace {

struct Part {
  const char* name;
  draw::ColourRole colour;
  Area area;
};

std::vector<Part> parts_of(const design::DieArea<Plain>& die) {
  using draw::ColourRole;
  return {{"logic", draw::arithmetic_colour, die.logic},
          {"on-chip memory", draw::memory_colour, die.memory},
          {"memory interfaces", ColourRole::series_5, die.stacks},
          {"links", draw::network_colour, die.links},
          {"other", ColourRole::series_7, die.other},
          {"not listed: control, wires", ColourRole::grid, die.all - die.listed}};
}

}  // namespace

draw::Scene picture_of(const DesignQuery& query, const design::ChipFigures<Plain>& figures) {
  constexpr double widest = 720.0, gap = 40.0, row = 20.0, box = 12.0;
  double sides = 0.0, tallest = 0.0;
  for (const auto& die : figures.dies) {
    sides += std::sqrt(die.all.value());
    tallest = std::max(tallest, std::sqrt(die.all.value()));
  }
  const double scale = std::min(widest / sides, 12.0);  // pixels of a millimetre
  const double top = draw::picture_margin + 64.0, bottom = top + tallest * scale + 28.0;
  std::vector<Part> key = parts_of(figures.dies.front());
  for (std::size_t part = 0; part < key.size(); ++part) {
    key[part].area = Area();
    for (std::size_t die = 0; die < figures.dies.size(); ++die)
      key[part].area += query.chip.dies[die].count * parts_of(figures.dies[die])[part].area;
  }
  std::erase_if(key, [](const Part& part) { return !(part.area > Area()); });
  const double width =
      draw::picture_margin * 2.0 + std::max(360.0, sides * scale + gap * static_cast<double>(figures.dies.size() - 1));
  draw::Scene scene =
      draw::titled_scene(width, bottom + row * static_cast<double>(key.size()) + draw::picture_margin, query.chip.name,
                         fmt::format("{} of silicon, to scale; strips are what each part takes", human(figures.area)));
  double left = draw::picture_margin;
  for (std::size_t i = 0; i < figures.dies.size(); ++i) {
    const design::DieArea<Plain>& die = figures.dies[i];
    const design::Die& of = query.chip.dies[i];
    const double side = std::sqrt(die.all.value()) * scale;
    double y = top;
    for (const Part& part : parts_of(die)) {
      const double height = side * (part.area / die.all);
      if (!(height > 0.0)) continue;
      draw::Rectangle strip{left, y, side, height, 0.0, {}};
      strip.paint.fill = part.colour;
      scene.add(std::move(strip),
                fmt::format("{}: {}, {:.1f} %", part.name, human(part.area), 100.0 * (part.area / die.all)));
      y += height;
    }
    scene.add(draw::Label{
        {left, top + side + 18.0},
        fmt::format("{}{}, {}", of.count > 1.0 ? fmt::format("{} x ", of.count) : "", of.node->name, human(die.all)),
        draw::picture_text_size});
    left += side + gap;
  }
  for (std::size_t i = 0; i < key.size(); ++i) {
    const double y = bottom + row * static_cast<double>(i);
    draw::Rectangle square{draw::picture_margin, y, box, box, 0.0, {}};
    square.paint.fill = key[i].colour;
    scene.add(std::move(square));
    scene.add(draw::Label{{draw::picture_margin + 18.0, y + box - 1.0},
                          fmt::format("{}: {}", key[i].name, human(key[i].area)),
                          draw::picture_text_size});
  }
  return scene;
}

}  // namespace assay::verbs::design_verb
