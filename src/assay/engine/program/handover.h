// What stages of a pipeline pass to each other: every device to the same device of the other stage.
#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "assay/engine/devices.h"
#include "assay/engine/program/activity.h"

namespace assay::engine {

class Handover {
 public:
  /// Stages of so many devices each; with a transport, every device is a process.
  Handover(std::size_t stage_devices, Transport* transport) : devices_(stage_devices), transport_(transport) {}

  struct Way {
    std::int64_t from = 0, to = 0;  ///< stages
    int tag = 0;
  };
  void send(const Way& way, const Shards& shards);
  /// Whether something waits there; from other processes it is waited for.
  bool has(const Way& way) const { return is_remote(way) || boxes_.contains({way.to, way.tag}); }
  Shards take(const Way& way);

  /// When this process waited for other stages since the last call.
  std::vector<Activity> take_activities() { return std::exchange(activities_, {}); }

  /// Bytes that devices of this process received from other stages.
  Bytes received() const { return received_; }

 private:
  bool is_remote(const Way& way) const { return transport_ && way.from != way.to; }
  std::size_t device() const { return transport_->rank() % devices_; }

  std::size_t devices_;
  Transport* transport_;
  std::map<std::pair<std::int64_t, int>, Shards> boxes_;  ///< by receiving stage and tag
  Bytes received_;
  std::vector<Activity> activities_;
};

}  // namespace assay::engine
