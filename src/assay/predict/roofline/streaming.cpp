#include "assay/predict/roofline/streaming.h"

#include <algorithm>

namespace assay::roofline {

Stream stream_tiles(std::span<const StreamStage> stages, std::int64_t tiles, std::int64_t buffers) {
  struct OnItsWay {
    std::int64_t tile = 0;
    std::size_t stage = 0;
    Seconds ready;
  };
  std::size_t resources = 0;
  for (const StreamStage& stage : stages) resources = std::max(resources, stage.resource + 1);
  std::vector<Seconds> free(resources);
  std::vector<OnItsWay> window;
  Stream out;
  std::int64_t next = 0;
  for (; next < std::min(tiles, buffers); ++next) window.push_back({next, 0, Seconds(0)});
  while (!window.empty()) {
    const auto start = [&](const OnItsWay& one) { return std::max(one.ready, free[stages[one.stage].resource]); };
    const auto first = std::min_element(window.begin(), window.end(), [&](const OnItsWay& a, const OnItsWay& b) {
      return start(a) != start(b) ? start(a) < start(b) : a.tile < b.tile;
    });
    const StreamStage& stage = stages[first->stage];
    const Seconds from = start(*first), to = from + stage.per_tile;
    out.done.push_back({first->tile, first->stage, from, to});
    out.time = std::max(out.time, to);
    free[stage.resource] = to;
    first->ready = to;
    if (++first->stage < stages.size()) continue;
    window.erase(first);  // its buffer takes another tile
    if (next < tiles) window.push_back({next++, 0, to});
  }
  return out;
}

StreamLimit stream_limit(std::span<const StreamStage> stages) {
  StreamLimit limit;
  for (const StreamStage& one : stages) {
    StreamLimit all;
    for (const StreamStage& stage : stages)
      if (stage.resource == one.resource) {
        all.names += (all.names.empty() ? "" : " and ") + stage.name;
        all.per_tile += stage.per_tile;
      }
    if (all.per_tile > limit.per_tile) limit = all;
  }
  return limit;
}

}  // namespace assay::roofline
