#pragma once

#include <string_view>

namespace assay::draw {

/// What a colour stands for in a drawing; each role has one colour on a light and one on a dark background.
/// The eight series colours stay distinct in the three common kinds of colour blindness; theme_test.cpp says how far.
enum class ColourRole {
  none,
  ink,
  muted,
  grid,
  surface,
  bad,
  partial,
  good,
  series_1,
  series_2,
  series_3,
  series_4,
  series_5,
  series_6,
  series_7,
  series_8,
};

/// What a series colour means wherever time is shown by what it is spent on.
inline constexpr ColourRole arithmetic_colour = ColourRole::series_1, network_colour = ColourRole::series_2,
                            memory_colour = ColourRole::series_3, waiting_colour = ColourRole::series_4,
                            fixed_cost_colour = ColourRole::series_6;

/// How many series colours there are.
inline constexpr int series_colour_count = 8;

/// The two colours of a role as "#rrggbb", and the name the role has in style sheets.
struct RoleColours {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};

/// The colours of `role`; empty for `none`.
const RoleColours& role_colours(ColourRole role);

/// The number of a series colour, counted from 1.
constexpr int series_number(ColourRole role) {
  return static_cast<int>(role) - static_cast<int>(ColourRole::series_1) + 1;
}

/// The colour of the series with number `number`, counted from 1; larger numbers start again with the first colour.
ColourRole series_colour(int number);

}  // namespace assay::draw
