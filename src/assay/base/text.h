// Reading and writing plain text: numbers, counts, quantities, names. The only parser and printer of units.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"

namespace assay {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
std::string_view trim(std::string_view text);
std::string lower_case(std::string_view text);
inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
bool contains_any(std::string_view text, std::span<const std::string> parts);
std::vector<std::string> split(std::string_view text, char separator);
/// Cells of a line of a table, separated by commas; quotes around a cell are taken off, commas inside of them stay.
std::vector<std::string_view> csv_cells(std::string_view line);
std::string join(std::span<const std::string> parts, std::string_view separator);

/// A finite decimal number, nothing before or after it; independent of the locale.
std::optional<double> parse_number(std::string_view text);

/// A whole count >= 1 with an optional suffix: k M G T (decimal) or Ki Mi Gi Ti (binary), e.g. "4Mi", "1e6", "128k".
Result<std::int64_t> parse_count(std::string_view text, std::string_view where);

/// A number followed by a unit: "3.35 TB/s", "80GiB", "400 Gbit/s", "1.2 USD/h". Units are products over quotients of
/// unit_names.
Result<AnyQuantity> parse_quantity(std::string_view text, std::string_view where);

/// Parses a quantity whose dimension must be `dim`; a bare number is refused except for counts and ratios.
Result<AnyQuantity> parse_quantity(std::string_view text, Dim dim, std::string_view where);

template <class Q>
Result<Q> parse_as(std::string_view text, std::string_view where) {
  auto parsed = parse_quantity(text, Q::dim, where);
  if (!parsed) return tl::unexpected<Error>(std::move(parsed).error());
  return Q(parsed->value);
}

/// The base unit of a dimension: "B/s", "FLOP/B", "" for a ratio.
std::string base_unit(Dim dim);

/// For people: four significant digits and a fitting prefix, e.g. "40.22 us", "3.35 TB/s", "80 GiB".
/// Bytes are printed with a binary prefix if that is exact, else with a decimal one; the unit always says which.
enum class BytePrefix { binary_if_exact, decimal };
std::string human(AnyQuantity quantity, BytePrefix bytes = BytePrefix::binary_if_exact);

/// Four significant digits without exponent where that stays readable: "0.05", "226.7", "1.5e+12".
std::string human_number(double value);

/// A whole number with thousands separators: "2,097,152".
std::string human_count(std::int64_t value);

/// Shortest decimal text that reads back as the same double.
std::string exact_number(double value);

/// Up to three candidates closest to `name`, best first; empty when nothing is near.
std::vector<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

/// "did you mean A, B or C?" from the nearest names, or "known: ..." if none is near and the list is short.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

/// How names are compared: lower case, without spaces, dashes and underscores except between digits, so that
/// llama-2-7b is not llama-27b.
std::string plain_name(std::string_view name);

/// Text in double quotes with control and non-ASCII bytes escaped and long text shortened, safe to print in a message.
std::string in_quotes(std::string_view text);

/// Text for a terminal: what moves its cursor or turns its writing around is shown as \xNN, but for ends of lines and
/// tabs.
std::string printable(std::string_view text);

/// "FILE:LINE:COLUMN" of an offset in the text of a file.
std::string place_in(std::string_view file, std::string_view text, std::size_t offset);

/// Byte offset of the first byte that is not part of well-formed UTF-8, if any.
std::optional<std::size_t> invalid_utf8(std::string_view text);

/// Appends a character, by its number in Unicode.
void append_utf8(std::string& out, std::uint32_t code);

}  // namespace assay
