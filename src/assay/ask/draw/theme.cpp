#include "assay/ask/draw/theme.h"

#include <array>
#include <cstddef>

namespace assay::draw {
namespace {

// The series colours come from a search over OKLCH that maximised the smallest distance between any two of them as
// seen with normal vision, protanopia, deuteranopia and tritanopia (Machado, Oliveira and Fernandes 2009), under a
// contrast of at least 3.2 to the light and 4 to the dark surface; the first four were kept further apart.
constexpr std::array<RoleColours, 16> colours = {{
    {"none", "", ""},
    {"ink", "#1b1f24", "#e9ecef"},
    {"muted", "#57606a", "#a4adb6"},
    {"grid", "#dfe3e8", "#2e353c"},
    {"surface", "#ffffff", "#14171a"},
    {"bad", "#f8d7d3", "#4d2523"},
    {"partial", "#faeabb", "#463a15"},
    {"good", "#d3ebd5", "#1d4027"},
    {"series-1", "#2d47b0", "#8299fd"},
    {"series-2", "#f2601a", "#ef984f"},
    {"series-3", "#2b8689", "#4ee1df"},
    {"series-4", "#8a1454", "#ba5884"},
    {"series-5", "#8162e8", "#8b60f1"},
    {"series-6", "#7d613c", "#f4cc0d"},
    {"series-7", "#639d5e", "#aff0a5"},
    {"series-8", "#681a24", "#f13a2a"},
}};

}  // namespace

const RoleColours& role_colours(ColourRole role) { return colours[static_cast<std::size_t>(role)]; }

ColourRole series_colour(int number) {
  const int offset = ((number - 1) % series_colour_count + series_colour_count) % series_colour_count;
  return static_cast<ColourRole>(static_cast<int>(ColourRole::series_1) + offset);
}

}  // namespace assay::draw
