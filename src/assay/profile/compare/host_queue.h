// The queue between a host that starts kernels and a device that runs them: when the device runs dry.
#pragma once
#include <optional>
#include <vector>

#include "assay/profile/compare/measured.h"

namespace assay::compare {

/// How long the host of a profile takes for a launch, its pauses aside.
struct HostPace {
  Seconds forward, backward;  ///< of the thread that begins the step, and of others
  double launches = 0;        ///< of a step
};

/// Idle time of a device.
struct IdleTime {
  Seconds dry;      ///< until the host launches the next kernel
  Seconds between;  ///< between kernels that are launched in time
};

/// A host that takes as long to start each kind of kernel as the host of a profile does on average. Kernels that it
/// starts for the first time are a kind of their own. Holds references: for the duration of a call.
class HostQueue {
 public:
  HostQueue(const MeasuredStep& measured, const trace::HostHabits& habits);

  /// Absent where the profile does not tell.
  const std::optional<HostPace>& pace() const { return pace_; }
  /// Where each call takes `share` of its measured time, and without the host's pauses.
  IdleTime idle(const std::vector<double>& share) const;
  /// What the pauses of the host left the device without work.
  trace::Ticks paused() const;

 private:
  /// What the host did before it launched a call.
  enum class Before : std::uint8_t { unknown, launch, pause, wait };

  void set_befores();
  void set_times();

  const MeasuredStep& measured_;
  const trace::HostHabits& habits_;
  const MeasuredCall* first_ = nullptr;  ///< whose launch is known
  std::vector<Before> before_;
  std::vector<Seconds> time_;  ///< of the host for each call
  std::optional<HostPace> pace_;
};

}  // namespace assay::compare
