#include "assay/ask/draw/theme.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

namespace assay::draw {
namespace {

using Rgb = std::array<double, 3>;
using Matrix = std::array<Rgb, 3>;

// Linear light of "#rrggbb", by the transfer function of IEC 61966-2-1.
Rgb linear_light(std::string_view colour) {
  Rgb rgb = {};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(std::string(colour.substr(1 + 2 * i, 2)), nullptr, 16) / 255.0;
    rgb[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return rgb;
}

Rgb times(const Matrix& m, const Rgb& v) {
  Rgb product = {};
  for (std::size_t i = 0; i < 3; ++i) product[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return product;
}

// Contrast ratio of WCAG 2.2.
double contrast(std::string_view a, std::string_view b) {
  const auto luminance = [](std::string_view colour) {
    const Rgb rgb = linear_light(colour);
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
  };
  const double x = luminance(a);
  const double y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

// OKLab (Ottosson 2020), scaled so that black and white are 100 apart.
Rgb oklab(const Rgb& rgb) {
  constexpr Matrix to_cones = {{{0.4122214708, 0.5363325363, 0.0514459929},
                                {0.2119034982, 0.6806995451, 0.1073969566},
                                {0.0883024619, 0.2817188376, 0.6299787005}}};
  constexpr Matrix to_lab = {{{21.04542553, 79.36177850, -0.40720468},
                              {197.79984951, -242.85922050, 45.05937099},
                              {2.59040371, 78.27717662, -80.86757660}}};
  Rgb cones = times(to_cones, rgb);
  for (double& c : cones) c = std::cbrt(c);
  return times(to_lab, cones);
}

double distance(const Rgb& a, const Rgb& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

// Normal vision, then full protanopia, deuteranopia and tritanopia (Machado, Oliveira and Fernandes 2009, table 1).
constexpr std::array<Matrix, 4> visions = {{
    {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
    {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}},
    {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}},
}};

double least_distance(bool dark, int count) {
  double least = 1000.0;
  for (const Matrix& vision : visions) {
    for (int i = 1; i <= count; ++i) {
      for (int j = 1; j < i; ++j) {
        const auto seen = [&](int number) {
          const RoleColours& colours = role_colours(series_colour(number));
          Rgb rgb = times(vision, linear_light(dark ? colours.dark : colours.light));
          for (double& c : rgb) c = std::clamp(c, 0.0, 1.0);
          return oklab(rgb);
        };
        least = std::min(least, distance(seen(i), seen(j)));
      }
    }
  }
  return least;
}

constexpr std::array<ColourRole, 3> regions = {ColourRole::bad, ColourRole::partial, ColourRole::good};

TEST(Theme, TextReadsOnTheSurfaceAndOnRegions) {
  for (const ColourRole text : {ColourRole::ink, ColourRole::muted}) {
    const RoleColours& colours = role_colours(text);
    EXPECT_GE(contrast(colours.light, role_colours(ColourRole::surface).light), 4.5);
    EXPECT_GE(contrast(colours.dark, role_colours(ColourRole::surface).dark), 4.5);
  }
  for (const ColourRole region : regions) {
    EXPECT_GE(contrast(role_colours(ColourRole::ink).light, role_colours(region).light), 7.0);
    EXPECT_GE(contrast(role_colours(ColourRole::ink).dark, role_colours(region).dark), 7.0);
  }
}

TEST(Theme, SeriesStandOutFromTheSurface) {
  for (int number = 1; number <= series_colour_count; ++number) {
    const RoleColours& colours = role_colours(series_colour(number));
    EXPECT_GE(contrast(colours.light, role_colours(ColourRole::surface).light), 3.0) << colours.name;
    EXPECT_GE(contrast(colours.dark, role_colours(ColourRole::surface).dark), 3.0) << colours.name;
  }
}

// A distance of 2 is just noticeable side by side; lines a few pixels wide need several times that.
TEST(Theme, SeriesKeepApartInEveryKindOfColourVision) {
  for (const bool dark : {false, true}) {
    EXPECT_GE(least_distance(dark, series_colour_count), 7.0) << dark;
    EXPECT_GE(least_distance(dark, 4), 12.0) << dark;
  }
}

TEST(Theme, TheGridRecedesBehindEverySeries) {
  for (int number = 1; number <= series_colour_count; ++number) {
    const RoleColours& grid = role_colours(ColourRole::grid);
    const RoleColours& surface = role_colours(ColourRole::surface);
    const RoleColours& series = role_colours(series_colour(number));
    EXPECT_LT(contrast(grid.light, surface.light), 0.5 * contrast(series.light, surface.light));
    EXPECT_LT(contrast(grid.dark, surface.dark), 0.5 * contrast(series.dark, surface.dark));
  }
}

TEST(Theme, NoTwoRolesShareAName) {
  std::set<std::string_view> names;
  for (int role = 0; role <= static_cast<int>(ColourRole::series_8); ++role) {
    EXPECT_TRUE(names.insert(role_colours(static_cast<ColourRole>(role)).name).second);
  }
}

TEST(Theme, SeriesColoursStartAgainAfterTheLast) {
  EXPECT_EQ(series_colour(1), ColourRole::series_1);
  EXPECT_EQ(series_colour(8), ColourRole::series_8);
  EXPECT_EQ(series_colour(9), ColourRole::series_1);
  EXPECT_EQ(series_colour(0), ColourRole::series_8);
  EXPECT_EQ(series_colour(-7), ColourRole::series_1);
}

}  // namespace
}  // namespace assay::draw
