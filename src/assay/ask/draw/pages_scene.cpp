#include "assay/ask/draw/pages_scene.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/page.h"

namespace assay::draw {
namespace {

constexpr double entry_width = 34.0, entry_height = 26.0, page_width = 132.0, page_height = 46.0, pages_gap = 8.0;
constexpr std::size_t pages_in_a_row = 6;

void add_words(Scene& scene, PlotPoint at, std::string text, ColourRole colour = ColourRole::ink,
               Anchor anchor = Anchor::start) {
  scene.add(Label{at, std::move(text), picture_text_size, anchor, colour});
}

void add_table(Scene& scene, double y, double left, const PageTable& table, const std::vector<PageBox>& pages) {
  add_words(scene, {picture_margin, y + 18.0}, table.name);
  for (std::size_t i = 0; i < table.pages.size(); ++i) {
    const bool is_shared = pages[table.pages[i]].tables.size() > 1;
    Rectangle entry{left + static_cast<double>(i) * (entry_width + 4.0), y, entry_width, entry_height, 4.0, {}};
    entry.paint = {.fill = series_colour(table.colour),
                   .fill_opacity = 0.25,
                   .stroke = is_shared ? ColourRole::ink : series_colour(table.colour)};
    scene.add(entry);
    add_words(scene, {entry.x + entry_width / 2.0, y + 18.0}, fmt::format("{}", table.pages[i]), ColourRole::ink,
              Anchor::middle);
  }
}

void add_page(Scene& scene, PlotPoint at, std::size_t number, const PageBox& page,
              const std::vector<PageTable>& tables) {
  const bool is_free = page.tables.empty(), is_shared = page.tables.size() > 1;
  const ColourRole colour = is_free ? ColourRole::grid : series_colour(tables[page.tables.front()].colour);
  if (!is_free) {
    Rectangle used{at.x, at.y, page_width * page.filled, page_height, 4.0, {}};
    used.paint = {.fill = colour, .fill_opacity = 0.25};
    scene.add(used);
  }
  Rectangle box{at.x, at.y, page_width, page_height, 4.0, {}};
  box.paint = {.stroke = is_shared ? ColourRole::ink : colour,
               .stroke_width = is_shared ? 2.0 : 1.0,
               .dash = is_free ? Dash::dashed : Dash::solid};
  scene.add(box);
  std::string name = fmt::format("page {}", number);
  if (is_free) name += ", free";
  if (is_shared) name += fmt::format(", shared by {}", page.tables.size());
  add_words(scene, {at.x + 8.0, at.y + 17.0}, std::move(name), ColourRole::muted);
  if (!is_free) add_words(scene, {at.x + 8.0, at.y + 36.0}, shortened(page.text, picture_text_size, page_width - 16.0));
}

}  // namespace

Scene draw_pages(const std::string& title, const std::string& subtitle, const std::vector<PageTable>& tables,
                 const std::vector<PageBox>& pages) {
  double names = 0.0;
  std::size_t longest = 0;
  for (const PageTable& table : tables) {
    names = std::max(names, text_width(table.name, picture_text_size));
    longest = std::max(longest, table.pages.size());
  }
  const double left = picture_margin + names + 12.0, top = picture_margin + 52.0;
  const double below = top + static_cast<double>(tables.size()) * (entry_height + 6.0) + 16.0;
  const std::size_t rows = (pages.size() + pages_in_a_row - 1) / pages_in_a_row;
  const double width =
      std::max({left + static_cast<double>(longest) * (entry_width + 4.0),
                picture_margin + static_cast<double>(pages_in_a_row) * (page_width + pages_gap) - pages_gap,
                picture_margin + text_width(title, picture_title_size, true),
                picture_margin + text_width(subtitle, picture_subtitle_size)}) +
      picture_margin;
  Scene scene =
      titled_scene(width, below + static_cast<double>(rows) * (page_height + pages_gap) + picture_margin - pages_gap,
                   title, subtitle);
  for (std::size_t i = 0; i < tables.size(); ++i)
    add_table(scene, top + static_cast<double>(i) * (entry_height + 6.0), left, tables[i], pages);
  for (std::size_t i = 0; i < pages.size(); ++i)
    add_page(scene,
             {picture_margin + static_cast<double>(i % pages_in_a_row) * (page_width + pages_gap),
              below + static_cast<double>(i / pages_in_a_row) * (page_height + pages_gap)},
             i, pages[i], tables);
  return scene;
}

}  // namespace assay::draw
