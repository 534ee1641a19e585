#include "assay/ask/draw/array_scene.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/page.h"

namespace assay::draw {

Scene draw_array(const std::string& title, const std::string& subtitle, const roofline::SystolicFrame& state) {
  constexpr double wide = 84.0, high = 52.0, gap = 6.0;
  const std::string legend = "in a cell: its weight w, the activation x that goes right, the sum s that goes down";
  const double top = picture_margin + 72.0;
  const double width = 2.0 * picture_margin +
                       std::max({static_cast<double>(state.columns) * (wide + gap),
                                 text_width(title, picture_title_size, true), text_width(legend, picture_text_size)});
  Scene scene =
      titled_scene(width, top + static_cast<double>(state.rows) * (high + gap) + picture_margin, title, subtitle);
  scene.add(
      Label{{picture_margin, picture_margin + 56.0}, legend, picture_text_size, Anchor::start, ColourRole::muted});
  for (std::size_t r = 0; r < state.rows; ++r)
    for (std::size_t c = 0; c < state.columns; ++c) {
      const std::size_t i = r * state.columns + c;
      const double x = picture_margin + static_cast<double>(c) * (wide + gap),
                   y = top + static_cast<double>(r) * (high + gap);
      Rectangle cell{x, y, wide, high, 4.0, {}};
      cell.paint = {.fill = ColourRole::series_1,
                    .fill_opacity = state.works[i] ? 0.3 : 0.04,
                    .stroke = state.works[i] ? ColourRole::series_1 : ColourRole::grid};
      scene.add(cell);
      const auto text = [&](double dx, double dy, const std::string& words, Anchor anchor) {
        scene.add(Label{{x + dx, y + dy}, words, picture_text_size, anchor});
      };
      text(wide / 2.0, 20.0, fmt::format("w {:g}", state.weights[i]), Anchor::middle);
      if (!state.works[i]) continue;
      text(6.0, 42.0, fmt::format("x {:g}", state.activations[i]), Anchor::start);
      text(wide - 6.0, 42.0, fmt::format("s {:g}", state.sums[i]), Anchor::end);
    }
  return scene;
}

}  // namespace assay::draw
