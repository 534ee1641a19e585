// Screens as patterns over the results: "{memory.capacity} at {memory.bandwidth}". Numbers on a screen are thereby
// those of the results, and a phrase whose value is missing is left out.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/ask/report/reader.h"
#include "assay/ask/report/response.h"

namespace assay::report {

/// The pattern with the value at each {path}; nothing where one of them is missing or an empty list. {path%} is a
/// percentage, {path+%} one with its sign, {path..} a range in words, {path;} its text up to a semicolon, {path~} cut
/// where it is wide, {path-} without what it has in brackets, {path\n} on one line, {path#} how many rows it has,
/// {path[]} numbers in brackets, {path:.2f} formatted, {path iB} in binary units, {path of path} both in one unit. What
/// stands in <angle brackets> may be missing and may start with a condition.
std::optional<std::string> filled(const Reader& results, std::string_view pattern);

/// The phrases of those patterns that can be filled, in one tone. A pattern may start with conditions: "[chips > 1]",
/// "[!sweep]" (there is none), "[--list]" (the request has that option), "[!fits bad]" (in that tone).
std::vector<Phrase> phrases(const Reader& results, const std::vector<std::string_view>& patterns,
                            Tone tone = Tone::plain);

/// Every scalar of the object at a path, in one unit, which stands at the end: "bf16 989", "fp8 1,979 TFLOP/s".
std::vector<Phrase> each_of(const Reader& results, std::string_view path);

/// Rows of the list at a path, at most `most`. Columns are heads with patterns over a row; a column of plain paths to
/// quantities is in one unit.
ScreenTable table_of(const Reader& results, std::string_view path, std::string label,
                     const std::vector<std::pair<std::string_view, std::string_view>>& columns, std::size_t most);

/// Adds a line unless it would be empty, to the last one where that has the same label.
void add_line(Screen& screen, std::string label, std::vector<Phrase> phrases);
/// Adds a table unless it has no rows.
void add_table(Screen& screen, ScreenTable table);

/// Adds what a text describes, a block a line; a line that starts with a blank goes on with the last one. A block may
/// start with conditions.
///   Label: {a} at {b} | {c%} busy              phrases; with Label!: in strong letters
///   Label: each peak                           every scalar of that object
///   Label: of price: {value} ({provider})      phrases for each row, or for each member of an object with its {name}
///   Label: 6 rows of levels: level = {name}    the list as a table of such columns, with | between them, or all rows;
///                                              ("10 sampled" or "8 largest by KEY");
///                                              all its keys where no columns are named, and * = {*} for the first
///   Label: bars: Compute = {a} | Memory = {b}  times as bars beside each other
///   Label: bar of time: part = {a} | ...       all parts of a time, in their order
///   Label: 7 parts of list: {name} = {a}       its rows as parts of a bar, the largest
///   Label: stack of total: part = {a} | ...    parts of a whole; an exact stack is in whole numbers
///   Label: fill used of whole: part = {a}      how much of a whole is used
void add_blocks(Screen& screen, const Reader& results, std::string_view text);

/// A whole screen from a text: blocks as above; "Headline:" (the first that holds, else that of the answer),
/// "Beneath:", "Whole:" (a list that is shown below, with all it has), "Note:" after the answer's notes, "Notes: none"
/// instead of them. With "All:" there is none: all results are shown.
std::optional<Screen> described_screen(std::string_view text, const Response& answer);

/// A time range in words: "80 % interval 6.13 .. 7.88 s; ideal hardware 3.85 .. 9.05 s".
std::string range_words(const Reader& results, std::string_view path);

}  // namespace assay::report
