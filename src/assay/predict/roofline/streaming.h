// Tiles that stream through stages, such as loading, arithmetic and storing: what happens when, and what limits it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "assay/base/units.h"

namespace assay::roofline {

/// A stage that every tile goes through. Stages with the same resource share it, one at a time.
struct StreamStage {
  std::string name;
  std::size_t resource = 0;
  Seconds per_tile;
};

struct StreamedTile {
  std::int64_t tile = 0;
  std::size_t stage = 0;
  Seconds start, end;
};

struct Stream {
  std::vector<StreamedTile> done;  ///< in order of their start
  Seconds time;
};

/// Runs the tiles: at most `buffers` are on their way at once; a resource takes whichever tile can start first.
Stream stream_tiles(std::span<const StreamStage> stages, std::int64_t tiles, std::int64_t buffers);

/// The resource that works longest for a tile: what each further tile costs where buffers are enough.
struct StreamLimit {
  std::string names;  ///< names of its stages
  Seconds per_tile;
};
StreamLimit stream_limit(std::span<const StreamStage> stages);

}  // namespace assay::roofline
