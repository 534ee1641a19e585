// Screens as patterns over the results: "{memory.capacity} at {memory.bandwidth}". Numbers on a screen are thereby
// those of the results, and a phrase whose value is missing is left out.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/ask/report/reader.h"
#include "assay/ask/report/screen.h"

namespace assay::report {

/// The pattern with the value at each {path}, with {path%} as a percentage; nothing where one of them is missing or an
/// empty list.
std::optional<std::string> filled(const Reader& results, std::string_view pattern);

/// The phrases of those patterns that can be filled, all in one tone.
std::vector<Phrase> phrases(const Reader& results, const std::vector<std::string_view>& patterns,
                            Tone tone = Tone::plain);

/// Every scalar of the object at a path, in one unit, which stands at the end: "bf16 989", "fp8 1,979 TFLOP/s".
std::vector<Phrase> each_of(const Reader& results, std::string_view path);

/// Rows of the list at a path, at most `most`. Columns are heads with patterns over a row; a column of plain paths to
/// quantities is in one unit.
ScreenTable table_of(const Reader& results, std::string_view path, std::string label,
                     const std::vector<std::pair<std::string_view, std::string_view>>& columns, std::size_t most);

/// Adds a line unless it would be empty.
void add_line(Screen& screen, std::string label, std::vector<Phrase> phrases);
/// Adds a table unless it has no rows.
void add_table(Screen& screen, ScreenTable table);

/// Adds what a text describes, a block a line; a line that starts with a blank goes on with the last one:
///   Label: {a} at {b} | {c%} busy              phrases; with Label!: in strong letters
///   Label: each peak                           every scalar of that object
///   Label: 6 rows of levels: level = {name}    the list as a table of such columns, with | between them, or all rows
void add_blocks(Screen& screen, const Reader& results, std::string_view text);

/// A time range in words: "80 % interval 6.13 .. 7.88 s; ideal hardware 3.85 .. 9.05 s".
std::string range_words(const Reader& results, std::string_view path);

}  // namespace assay::report
