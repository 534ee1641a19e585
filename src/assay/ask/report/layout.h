// Text in columns of a terminal: its width, padding and wrapping.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

/// Columns that text takes: one for each code point of UTF-8.
std::size_t columns(std::string_view text);

/// The text, filled up with blanks to that many columns.
std::string padded(std::string_view text, std::size_t to);
std::string right_aligned(std::string_view text, std::size_t to);

/// Lines of at most `width` columns, broken at blanks; a word that is longer still is cut.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// A key as people read it: "exposed copy time".
std::string words(std::string_view key);

/// The text without characters beyond ASCII, for terminals that cannot show them.
std::string in_ascii(std::string_view text);

}  // namespace assay::report
