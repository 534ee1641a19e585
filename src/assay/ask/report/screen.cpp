#include "assay/ask/report/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/ask/report/layout.h"
#include "assay/base/text.h"

namespace assay::report {
namespace {

constexpr std::size_t margin = 2, most_columns_of_bar = 44;

/// What parts of a bar look like, told apart by shape; colour only adds to it.
constexpr std::string_view shades[] = {"\u2588", "\u2593", "\u2592", "\u2591", "\u259a", "\u00b7"};
constexpr std::string_view plain_shades[] = {"#", "=", "+", "-", "%", "."};
constexpr std::string_view shade_colours[] = {"34", "36", "32", "33", "35", "90"};
constexpr std::string_view eighths[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};

std::string_view colour_of(Tone tone) {
  constexpr std::string_view codes[] = {"", "1", "1;32", "1;33", "1;31", "2"};
  return codes[static_cast<std::size_t>(tone)];
}

/// Cells of a bar by size: at least one for each part, and the largest ones give way to that.
std::vector<std::size_t> cells_of(const std::vector<BarPart>& parts, std::size_t all) {
  double whole = 0.0;
  for (const BarPart& part : parts) whole += part.size;
  std::vector<std::size_t> cells;
  std::size_t sum = 0;
  for (const BarPart& part : parts) {
    cells.push_back(static_cast<std::size_t>(std::max(1L, std::lround(part.size / whole * static_cast<double>(all)))));
    sum += cells.back();
  }
  while (!cells.empty() && sum != all) {
    std::size_t& largest = *std::max_element(cells.begin(), cells.end());
    if (sum > all && largest == 1) break;
    sum > all ? (--largest, --sum) : (++largest, ++sum);
  }
  return cells;
}

struct Painter {
  ScreenStyle style;
  std::size_t label_width = 0;
  std::string out{};

  std::string coloured(std::string_view text, std::string_view code) const {
    return style.colour && !text.empty() && !code.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text)
                                                          : std::string(text);
  }
  std::string shown(std::string_view text) const { return style.utf8 ? printable(text) : in_ascii(printable(text)); }
  std::size_t indent() const { return label_width ? margin + label_width + 2 : margin; }
  std::size_t room() const { return style.width - std::min(style.width, indent()); }
  std::string_view shade(std::size_t i) const {
    i = std::min(i, std::size(shades) - 1);
    return style.utf8 ? shades[i] : plain_shades[i];
  }

  /// A line of a block; the label stands before the first one.
  void line(std::string_view label, const std::string& text) {
    std::string start(margin, ' ');
    if (label_width)
      start += coloured(label, colour_of(Tone::strong)) + std::string(label_width + 2 - columns(label), ' ');
    start += text + "\n";
    constexpr std::string_view held = "\u00a0";  // kept words on one line
    for (std::size_t at = 0; (at = start.find(held, at)) != std::string::npos;) start.replace(at, held.size(), " ");
    out += start;
  }

  /// Phrases with `between` them, in lines that fit into `width`.
  std::vector<std::string> lines_of(const std::vector<Phrase>& phrases, std::string_view between,
                                    std::size_t width) const {
    std::vector<std::string> lines;
    std::size_t used = 0;
    for (const Phrase& phrase : phrases) {
      const std::string text = shown(phrase.text);
      const bool fits = !lines.empty() && used + columns(between) + columns(text) <= width;
      const auto parts = fits ? std::vector{text} : wrapped(text, width);
      for (const std::string& part : parts) {
        const std::string painted = coloured(part, colour_of(phrase.tone));
        if (fits)
          lines.back() += std::string(between) + painted;
        else
          lines.push_back(painted);
        used = fits ? used + columns(between) + columns(part) : columns(part);
      }
    }
    return lines;
  }

  void block(std::string_view label, const std::vector<std::string>& lines) {
    for (const std::string& text : lines) line(&text == &lines.front() ? label : "", text);
  }

  /// `shades_of`: the legend shows which part of the bar is meant.
  std::vector<Phrase> legend(const std::vector<BarPart>& parts, const SharedUnit& unit, bool shades_of) const {
    std::vector<Phrase> phrases;
    for (std::size_t i = 0; i < parts.size(); ++i)
      phrases.push_back({fmt::format("{}{}{} {}", shades_of ? shade(i) : "", shades_of ? " " : "", parts[i].name,
                                     unit.number(parts[i].size))});
    return phrases;
  }

  std::size_t bar_columns(std::size_t text) const {
    return std::clamp<std::size_t>(room() - std::min(room(), text + 2), 10, most_columns_of_bar);
  }

  void draw(const PhraseLine& of) { block(of.label, lines_of(of.phrases, style.utf8 ? " \u00b7 " : "; ", room())); }

  void draw(const StackedBar& of) {
    const std::vector<std::size_t> cells = cells_of(of.parts, bar_columns(columns(of.text)));
    std::string bar;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      std::string part;
      for (std::size_t n = 0; n < cells[i]; ++n) part += shade(i);
      bar += coloured(part, shade_colours[std::min(i, std::size(shade_colours) - 1)]);
    }
    line(of.label, bar + "  " + coloured(shown(of.text), colour_of(Tone::strong)));
    block("", coloured_legend(of));
  }

  /// The legend with each sign in the colour of its part.
  std::vector<std::string> coloured_legend(const StackedBar& of) const {
    std::vector<std::string> lines = lines_of(legend(of.parts, of.unit, true), "  ", room());
    for (std::string& text : lines)
      for (std::size_t i = 0; i < of.parts.size() && i < std::size(shades); ++i) {
        const std::string sign = std::string(shade(i)) + " " + of.parts[i].name;
        if (const std::size_t at = text.find(sign); at != std::string::npos)
          text.replace(at, shade(i).size(), coloured(shade(i), shade_colours[i]));
      }
    return lines;
  }

  void draw(const FillBar& of) {
    std::size_t behind = 0;
    for (const Phrase& phrase : of.text) behind += columns(phrase.text) + 2;
    const std::size_t all = bar_columns(behind);
    const double scale = static_cast<double>(all) / std::max(of.whole, of.used);
    const double full = std::min(of.used, of.whole) * scale;  // what is beyond the whole does not look used
    std::string filled;
    auto cells = static_cast<std::size_t>(style.utf8 ? std::floor(full) : std::round(full));
    for (std::size_t i = 0; i < cells; ++i) filled += shade(0);
    if (const auto part = static_cast<std::size_t>(8.0 * (full - std::floor(full))); style.utf8 && part > 0) {
      filled += eighths[part];
      ++cells;
    }
    const double most = std::max(of.at_most, of.used) * scale;
    const auto limit = std::min(all, static_cast<std::size_t>(std::lround(most)));
    std::string maybe, rest;
    for (std::size_t i = cells; i < all; ++i)
      if (i < limit)
        maybe += shade(2);
      else
        rest += style.utf8 ? shade(3) : ".";
    const bool over = of.used > of.whole, near = of.at_most > of.whole;
    line(of.label, coloured(filled, over   ? "31"
                                    : near ? "33"
                                           : "32") +
                       coloured(maybe, "33") + coloured(rest, "2") + "  " +
                       lines_of(of.text, "  ", style.width).front());
    block("", lines_of(legend(of.parts, of.unit, false), "  ", room()));
  }

  void draw(const ScreenTable& of);
  void draw(const Gap&) { out += "\n"; }
};

/// A number, perhaps with a sign and a short unit, or nothing.
bool is_number(std::string_view cell) {
  if (cell.starts_with('+') || cell.starts_with('-')) cell.remove_prefix(1);
  constexpr std::size_t most = 20;
  return cell.empty() || (cell.front() >= '0' && cell.front() <= '9' && cell.size() <= most);
}

/// The longest word of a text: a column that is not narrower keeps words whole.
std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    longest = std::max(longest, columns(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

/// The text in at most `most` lines; dots say that something is missing.
std::vector<std::string> cut(std::string_view text, std::size_t width, std::size_t most) {
  std::vector<std::string> lines = wrapped(text, width);
  if (lines.size() <= most) return lines;
  lines.resize(most);
  lines.back() = wrapped(lines.back(), width - std::min<std::size_t>(width, 4)).front() + " ...";
  return lines;
}

/// The columns of a table and how wide they are.
struct Columns {
  std::vector<std::size_t> widths, least;
  std::vector<bool> right;

  Columns(const Painter& painter, const ScreenTable& of, bool fold_heads) {
    const auto widen = [&](const std::vector<std::string>& row, bool is_head) {
      if (widths.size() < row.size())
        widths.resize(row.size()), least.resize(row.size()), right.resize(row.size(), true);
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string shown = painter.shown(row[i]);
        least[i] = std::max(least[i], longest_word(shown));
        widths[i] = std::max(widths[i], is_head && fold_heads ? longest_word(shown) : columns(shown));
        if (!is_head) right[i] = right[i] && is_number(row[i]);
      }
    };
    widen(of.head, true);
    for (const auto& row : of.rows) widen(row, false);
  }
  std::size_t total() const {
    return std::accumulate(widths.begin(), widths.end(), 2 * (std::max<std::size_t>(widths.size(), 1) - 1));
  }
  /// The widest columns of words give way, between words or within them, until the table has no more than `room`.
  bool shrink(std::size_t room, bool whole_words) {
    constexpr std::size_t narrowest = 8;
    while (total() > room) {
      const auto may_shrink = [&](std::size_t i) {
        return !right[i] && widths[i] > (whole_words ? std::max(least[i], narrowest) : narrowest);
      };
      std::size_t widest = widths.size();
      for (std::size_t i = 0; i < widths.size(); ++i)
        if (may_shrink(i) && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
      if (widest == widths.size()) return false;
      --widths[widest];
    }
    return true;
  }
};

void remove_column(ScreenTable& table, std::size_t at) {
  const auto erase = [&](std::vector<std::string>& row) {
    if (at < row.size()) row.erase(row.begin() + static_cast<std::ptrdiff_t>(at));
  };
  erase(table.head);
  for (auto& row : table.rows) erase(row);
}

bool says_the_same(const ScreenTable& table, std::size_t at) {
  return table.rows.size() > 1 && std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
           return at < row.size() && row[at] == table.rows.front()[at];
         });
}

/// The table with as many columns as there is room for, and how wide these are.
std::pair<ScreenTable, Columns> fitted(const Painter& painter, ScreenTable table) {
  const std::size_t room = painter.room();
  Columns columns(painter, table, false);
  const auto fits = [&](bool folds_heads, bool whole_words) {
    columns = Columns(painter, table, folds_heads);
    return columns.shrink(room, true) || (!whole_words && columns.shrink(room, false));
  };
  std::vector<std::string> out;
  const auto leave_out = [&](std::size_t at) {
    if (!table.head[at].empty()) out.insert(out.begin(), table.head[at]);
    remove_column(table, at);
  };
  bool done = fits(false, true) || fits(false, false) || fits(true, true);
  for (std::size_t at = table.head.size(); at-- > 1 && !done;)
    if (says_the_same(table, at)) {
      leave_out(at);
      done = fits(true, true);
    }
  done = done || fits(true, false);
  while (!done && table.head.size() > 1) {
    leave_out(table.head.size() - 1);
    done = fits(true, false);
  }
  if (!out.empty())
    table.more += fmt::format("{}without {}: --all or --format csv", table.more.empty() ? "" : "; ", join(out, ", "));
  return {std::move(table), std::move(columns)};
}

void Painter::draw(const ScreenTable& given) {
  const std::pair<ScreenTable, Columns> shaped = fitted(*this, given);
  const ScreenTable& of = shaped.first;
  const auto& widths = shaped.second.widths;
  const auto& right = shaped.second.right;
  const auto row_text = [&](const std::vector<std::string>& row, Tone tone, std::string_view label) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (std::size_t i = 0; i < row.size(); ++i) {
      cells.push_back(cut(shown(row[i]), widths[i], of.most_lines));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t k = 0; k < height; ++k) {
      std::string text;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string cell = k < cells[i].size() ? cells[i][k] : "";
        text += (i ? "  " : "") + (right[i] ? right_aligned(cell, widths[i]) : padded(cell, widths[i]));
      }
      while (text.ends_with(' ')) text.pop_back();
      line(k ? "" : label, coloured(text, colour_of(tone)));
    }
  };
  if (!of.head.empty()) row_text(of.head, Tone::faint, of.label);
  for (const auto& row : of.rows)
    row_text(row, Tone::plain, of.head.empty() && &row == &of.rows.front() ? of.label : "");
  if (of.more.empty()) return;
  for (const std::string& text : wrapped(of.more, room())) line("", coloured(text, colour_of(Tone::faint)));
}

}  // namespace

std::vector<BarPart> largest_parts(std::vector<BarPart> parts, std::size_t most) {
  std::erase_if(parts, [](const BarPart& part) { return !(part.size > 0.0); });
  std::stable_sort(parts.begin(), parts.end(), [](const BarPart& a, const BarPart& b) { return a.size > b.size; });
  if (parts.size() <= most) return parts;
  BarPart rest{"other", 0.0};
  for (std::size_t i = most - 1; i < parts.size(); ++i) rest.size += parts[i].size;
  parts.resize(most - 1);
  parts.push_back(std::move(rest));
  return parts;
}

namespace {

/// Leaves out a row from the middle of the last table that can do without; nothing where none can.
bool leave_out_a_row(Screen& screen) {
  for (std::size_t i = screen.blocks.size(); i-- > 0;)
    if (auto* table = std::get_if<ScreenTable>(&screen.blocks[i]); table && table->rows.size() > table->least_rows) {
      table->rows.erase(table->rows.begin() + static_cast<std::ptrdiff_t>(table->rows.size() / 2));
      return true;
    }
  return false;
}

/// Leaves out the next block that the screen can do without; nothing where there is none.
bool leave_out_a_block(Screen& screen) {
  while (!screen.spare.empty()) {
    const std::string label = screen.spare.front();
    screen.spare.erase(screen.spare.begin());
    const auto is_spare = [&](const auto& block) {
      return std::visit(
          [&](const auto& of) {
            if constexpr (requires { of.label; }) return of.label == label;
            return false;
          },
          block);
    };
    if (std::erase_if(screen.blocks, is_spare) > 0) return true;
  }
  return false;
}

std::string rendered(const Screen& screen, const ScreenStyle& style) {
  Painter painter{style};
  const std::size_t whole = style.width - std::min(style.width, margin);
  if (!style.quiet) {
    painter.block("", painter.lines_of(screen.headline, "   ", whole));
    for (const std::string& text : screen.beneath) painter.block("", wrapped(painter.shown(text), whole));
    if (!screen.headline.empty()) painter.out += "\n";
  }
  for (const auto& block : screen.blocks)
    std::visit(
        [&](const auto& of) {
          if constexpr (requires { of.label; }) painter.label_width = std::max(painter.label_width, columns(of.label));
        },
        block);
  for (const auto& block : screen.blocks) std::visit([&](const auto& of) { painter.draw(of); }, block);
  painter.label_width = 0;
  if (!style.quiet && !screen.notes.empty()) {
    painter.out += "\n";
    for (const std::string& note : screen.notes)
      for (const std::string& text : wrapped(painter.shown(note), whole))
        painter.line("", painter.coloured(text, colour_of(Tone::faint)));
  }
  if (screen.list) {
    painter.out += "\n";
    painter.draw(*screen.list);
  }
  return painter.out;
}

}  // namespace

std::string render(const Screen& screen, const ScreenStyle& style) {
  std::string text = rendered(screen, style);
  const auto is_long = [&] {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) > style.height;
  };
  constexpr std::size_t longest_list = 12;  // beside it, there is room for the rest of a screen
  if (screen.list && screen.list->rows.size() > longest_list) return text;
  for (Screen shorter = screen; is_long() && (leave_out_a_row(shorter) || leave_out_a_block(shorter));)
    text = rendered(shorter, style);
  return text;
}

}  // namespace assay::report
