// What a trace says: where the time of each device went, and which operations took it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/units.h"
#include "assay/profile/trace/trace.h"
#include "assay/profile/trace/vocabulary.h"
#include "assay/profile/trace/work.h"

namespace assay::trace {

/// An event of a device with what its name and surroundings say about it.
struct PlacedEvent {
  std::uint32_t event = 0;   ///< in Trace::events
  std::size_t category = 0;  ///< in Vocabulary::categories
  std::string_view kind;     ///< within it; of the vocabulary
  bool recomputed = false;   ///< inside of a range that recomputes activations
};
/// The events of each device, in order of their starts.
std::map<std::int64_t, std::vector<PlacedEvent>> device_events(const Trace& trace, const Vocabulary& vocabulary);

/// The events of one step of a device, from the end of the step before it, or the start of its own first event where
/// that end is later or there is none, to the end of its last one.
struct StepEvents {
  std::string name;
  std::vector<PlacedEvent> events;  ///< in order of their starts
  Ticks begin = 0, end = 0;
};
struct DeviceSteps {
  std::vector<StepEvents> steps;
  bool by_optimizer = false;  ///< for want of better marks, steps end with updates of the weights
};
DeviceSteps device_steps(const Trace& trace, const Vocabulary& vocabulary, std::int64_t device,
                         const std::vector<PlacedEvent>& events);

/// The launch of an event of a device; null where the file lacks it.
const Event* launch_of(const Trace& trace, const Event& event);

/// Of one device, from its first event to the end of its last one. Computation, exposed communication, exposed copies
/// and idle time add up to the total.
struct DeviceTimes {
  Seconds total, busy, idle;
  Seconds computation;            ///< at least one kernel computes, or memory is filled
  Seconds communication, copies;  ///< at least one kernel communicates; at least one copy runs
  Seconds exposed_communication;  ///< while nothing computes
  Seconds exposed_copies;         ///< while nothing computes or communicates
  Seconds without_fills;          ///< computation without fills of memory
  Seconds overlap;                ///< communication while a kernel computes, without fills
};

DeviceTimes times_of(const Trace& trace, const Vocabulary& vocabulary, const std::vector<PlacedEvent>& events);

struct CategoryTime {
  std::size_t category = 0;  ///< in Vocabulary::categories
  std::string kind;          ///< within it; may be empty
  std::int64_t count = 0;
  Seconds time;  ///< sum over its kernels; those that run at once are counted twice
};

/// The longest first.
std::vector<CategoryTime> category_times(const Trace& trace, const std::vector<PlacedEvent>& events);

/// Calls of one operation with equal inputs or, where none is known, of one kernel.
struct OperationTime {
  std::string name, kernel, shapes;  ///< the operation may be empty; of several kernels, the one that takes longest
  std::size_t category = 0;
  std::string kind;
  std::int64_t calls = 0, kernels = 0;
  Seconds time, shortest, longest;  ///< of all calls; of one kernel
  std::optional<Work> work;         ///< of one call
};

/// A stretch of time without an event of the device.
struct Gap {
  const Event *after, *before;
  bool host_bound;  ///< the launch came after the device ran dry

  Ticks length() const { return before->start - after->end(); }
};
/// In order of time.
std::vector<Gap> idle_gaps(const Trace& trace, const std::vector<PlacedEvent>& events);

/// The device waits.
struct IdleGap {
  Seconds start, length;      ///< since the first event of the device
  std::string after, before;  ///< the kernels on both sides
  std::string host;           ///< the operation that launched the next one
  bool host_bound = false;    ///< the launch came after the device ran dry
};

/// One stream by the definitions of Holistic Trace Analysis: gaps before kernels that were launched after the stream
/// ran dry, gaps below 30 ns, and others.
struct StreamTimes {
  std::string stream;
  std::int64_t events = 0;
  Seconds busy, host_wait, kernel_wait, other_wait;
};

struct StepTime {
  std::string name;
  Seconds time;  ///< from the end of the step before it to its own
  DeviceTimes times;
};

/// Of events inside and outside of ranges that recompute activations, where the file marks them.
struct RecomputationTimes {
  DeviceTimes alone, without;
};

struct DeviceSummary {
  std::optional<std::int64_t> rank;
  std::int64_t device = 0;
  std::string name;                                         ///< as the driver has it; may be empty
  std::int64_t events = 0, graph_events = 0, launched = 0;  ///< launched: events whose launch is in the file
  Seconds kernel_time;                                      ///< sum over all events
  DeviceTimes times;
  std::optional<RecomputationTimes> recomputation;
  /// Of those events alone to which an arrow leads from their launch, where some lack one: what TraceLens counts.
  std::optional<DeviceTimes> linked;
  std::optional<RecomputationTimes> linked_recomputation;
  std::vector<CategoryTime> categories;   ///< the longest first
  std::vector<OperationTime> operations;  ///< the longest first
  Seconds host_bound;                     ///< idle time, in whole
  std::vector<IdleGap> gaps;              ///< the longest first, at most 20
  std::vector<StreamTimes> streams;
  std::vector<StepTime> steps;
  bool steps_by_optimizer = false;  ///< for want of better marks, steps end with updates of the weights
};

/// The name of a device as the driver has it; may be empty.
std::string device_name(const Trace& trace, std::int64_t device);

struct RankSummary;
/// Of one device; `rank` is what is known of it beside the others.
DeviceSummary summary_of(const Trace& trace, const Vocabulary& vocabulary, const RankSummary& rank,
                         const std::vector<PlacedEvent>& events);
/// One for each device with events, in order of their numbers.
std::vector<DeviceSummary> summarize(const Trace& trace, const Vocabulary& vocabulary);

}  // namespace assay::trace
