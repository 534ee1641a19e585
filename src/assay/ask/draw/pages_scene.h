// A cache in pages: the tables of sequences, and what every page holds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"

namespace assay::draw {

struct PageTable {
  std::string name = {};
  std::vector<std::size_t> pages = {};
  int colour = 1;  ///< of the series
};

struct PageBox {
  std::string text = {};                 ///< of its tokens
  std::vector<std::size_t> tables = {};  ///< whose it is; none: free
  double filled = 1.0;                   ///< share of it
};

/// A page is filled as far as it is used, in the colour of its sequence; one that several share has an outline of ink.
Scene draw_pages(const std::string& title, const std::string& subtitle, const std::vector<PageTable>& tables,
                 const std::vector<PageBox>& pages);

}  // namespace assay::draw
