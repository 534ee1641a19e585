// The default answer of a verb: one screen. The verb says what matters and in which form, from the results that JSON
// has; this lays it out to a width.
#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "assay/ask/report/figures.h"

namespace assay::report {

/// What colour adds; the words say the same without it.
enum class Tone { plain, strong, good, warning, bad, faint };

struct Phrase {
  std::string text;
  Tone tone = Tone::plain;
};

/// Phrases one after the other, as many on a line as there is room for.
struct PhraseLine {
  std::string label;
  std::vector<Phrase> phrases;
};

struct BarPart {
  std::string name;
  double size = 0.0;
};

/// Parts of a whole side by side, and what they are below it: "products 5.2  attention 0.62".
struct StackedBar {
  std::string label;
  std::vector<BarPart> parts;
  SharedUnit unit;
  std::string text;  ///< behind the bar
};

/// How much of a whole is used, and how much more it may be; parts of what is used are listed below.
struct FillBar {
  std::string label;
  double used = 0.0, at_most = 0.0, whole = 1.0;
  std::vector<BarPart> parts;
  SharedUnit unit;
  std::vector<Phrase> text;  ///< behind the bar
};

/// Rows of cells. Columns of numbers are aligned right. Where there is no room, the widest columns of words and long
/// heads are wrapped; then columns that say the same in every row are left out, and at last columns on the right.
struct ScreenTable {
  std::string label;
  std::vector<std::string> head;  ///< may be empty
  std::vector<std::vector<std::string>> rows;
  std::string more{};                ///< what is left out, below the rows
  std::size_t most_lines{2};         ///< of a cell; dots say that something is missing
  std::size_t least_rows{all_rows};  ///< others in the middle are left out where a screen would be too long

  static constexpr std::size_t all_rows = static_cast<std::size_t>(-1);
};

/// A blank line.
struct Gap {};

struct Screen {
  std::vector<Phrase> headline;      ///< the verdict first
  std::vector<std::string> beneath;  ///< what belongs to the headline, a line each
  std::vector<std::variant<PhraseLine, StackedBar, FillBar, ScreenTable, Gap>> blocks;
  std::vector<std::string> notes;     ///< those that matter
  std::optional<ScreenTable> list{};  ///< that was asked for: shown whole, below
  std::vector<std::string> spare{};   ///< labels of blocks that are left out, in this order, where it would be too long
};

struct ScreenStyle {
  std::size_t width = 100;
  bool colour = false, utf8 = true, quiet = false;
  std::size_t height = 25;
};

std::string render(const Screen& screen, const ScreenStyle& style);

/// The largest parts, at most `most` of them, and the rest as "other".
std::vector<BarPart> largest_parts(std::vector<BarPart> parts, std::size_t most);

}  // namespace assay::report
