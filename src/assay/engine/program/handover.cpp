#include "assay/engine/program/handover.h"

#include "assay/base/index.h"
#include "assay/base/result.h"

namespace assay::engine {

void Handover::send(const Way& way, const Shards& shards) {
  if (is_remote(way))
    return send_array(*transport_, at(way.to) * devices_ + device(), first_stage_tag + way.tag, shards[device()]);
  if (!boxes_.emplace(std::pair(way.to, way.tag), shards).second)
    throw InternalError("a stage was sent the same twice");
}

Shards Handover::take(const Way& way) {
  Shards out;
  if (is_remote(way)) {
    out.resize(devices_);
    const Seconds start = clock_time();
    out[device()] = receive_array(*transport_, at(way.from) * devices_ + device(), first_stage_tag + way.tag);
    activities_.push_back({-1, Activity::Kind::waits, start, clock_time(), {}});
  } else {
    const auto box = boxes_.find({way.to, way.tag});
    if (box == boxes_.end()) throw InternalError("a stage waits for what was never sent");
    out = std::move(box->second);
    boxes_.erase(box);
  }
  if (way.from != way.to)
    for (const Array& shard : out) received_ += Bytes(static_cast<double>(shard.values.size() * sizeof(double)));
  return out;
}

}  // namespace assay::engine
