// A tornado: how far a result moves when each of several numbers is halved or doubled, the widest bar on top.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"

namespace assay::draw {

/// A value of the result, and how it reads.
struct TornadoEnd {
  double value = 0.0;
  std::string text;
};

struct TornadoRow {
  std::string name;
  TornadoEnd halved, doubled;
  std::optional<TornadoEnd> best;  ///< what is possible where the number is doubled; a mark
};

struct Tornado {
  std::string title, subtitle;
  TornadoEnd now;  ///< bars start here
  std::vector<TornadoRow> rows;
};

Scene draw_tornado(Tornado tornado);

}  // namespace assay::draw
