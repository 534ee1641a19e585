// What a profiler recorded, whatever program wrote it: events on lanes of devices and of host threads.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assay/base/units.h"

namespace assay::trace {

/// Picoseconds since the origin of a trace. Profilers count nanoseconds or picoseconds; sums of either are exact.
using Ticks = std::int64_t;
inline constexpr Ticks ticks_per_microsecond = 1'000'000, ticks_per_nanosecond = 1'000;
/// Sums over many events are doubles, which are exact for hours and do not overflow.
constexpr Seconds seconds(double ticks) { return ticks * (1_us / static_cast<double>(ticks_per_microsecond)); }
constexpr Seconds seconds(Ticks ticks) { return seconds(static_cast<double>(ticks)); }

/// Texts that occur often, each kept once.
class Names {
 public:
  std::uint32_t id(std::string_view text);
  const std::string& operator[](std::uint32_t id) const { return texts_[id]; }

 private:
  std::deque<std::string> texts_;  // a deque, since the keys below point into it
  std::unordered_map<std::string_view, std::uint32_t> ids_;
};

inline constexpr std::uint32_t none = 0xFFFFFFFF;

enum class EventKind : std::uint8_t {
  kernel,     ///< on a device
  copy,       ///< on a device: memory to memory, by a copy engine
  fill,       ///< on a device: memory set to a value
  launch,     ///< a call of the driver that starts work of a device
  operation,  ///< of the framework, on a thread of the host
  mark,       ///< a range that the program or its framework named
};
constexpr bool on_device(EventKind kind) { return kind <= EventKind::fill; }

struct Event {
  Ticks start = 0, duration = 0;
  std::int64_t correlation = -1;  ///< equal for work of a device and the launch that started it
  std::int64_t external = -1;     ///< equal for an operation and what it started; -1: not known
  Flops flops{-1.0};              ///< where the file states it; else -1
  Bytes bytes{-1.0};              ///< the same
  std::uint32_t name = 0;         ///< in Trace::names
  std::uint32_t lane = 0;         ///< in Trace::lanes
  std::uint32_t inputs = none;    ///< of an operation: in Trace::names, as the file writes them
  std::uint32_t stated = none;    ///< the kind of work that the file states; of a launch, the kernel: in Trace::names
  std::uint32_t captured = none;  ///< of a replayed kernel, the operation that it was captured in: in Trace::events
  std::uint32_t parent = none;    ///< the event that encloses it or, on a device, its launch: in Trace::events
  EventKind kind = EventKind::kernel;
  bool arrow = false;  ///< the file draws an arrow from its launch
  bool graph = false;  ///< started by replaying a graph of launches

  Ticks end() const { return start + duration; }
};

/// A stream of a device, or a thread of the host.
struct Lane {
  std::string process, thread;  ///< as the file names them
  std::int64_t device = -1;     ///< -1: of the host
};

/// A device that the file describes.
struct DeviceProperties {
  std::int64_t id = 0;
  std::string name;
};

/// One run of a program on a device, where the file says so itself.
struct DeviceStep {
  std::int64_t device = 0;
  std::string name;
  Ticks start = 0, end = 0;
};

/// A compiled program that a profile holds.
struct Program {
  std::string name;     ///< with the number that tells it from others of the same name
  std::string message;  ///< HloModuleProto
};

/// What a file says of a kernel of a compiled program.
struct ProgramEvent {
  std::uint32_t event = 0;        ///< in Trace::events
  std::uint32_t program = 0;      ///< its name, in Trace::names
  std::uint32_t instruction = 0;  ///< the same
};

/// Ranks that communicate with each other.
struct ProcessGroup {
  std::string name, description;    ///< as the framework has them; either may be empty
  std::int64_t size = 0;            ///< 0: not known
  std::vector<std::int64_t> ranks;  ///< empty where the file leaves some out
};

/// What a file says of a collective beside its kernel.
struct Collective {
  std::uint32_t event = 0;  ///< in Trace::events
  std::uint32_t group = 0;  ///< in Trace::groups
  Bytes sent, received;     ///< of this rank, as the framework counts its messages; 0: not known
};

/// One file: one process, in most cases one rank with one device.
struct Trace {
  std::string file;
  std::optional<std::int64_t> rank, world_size;
  std::vector<DeviceProperties> devices;
  Names names;
  std::vector<Lane> lanes;
  std::vector<Event> events;
  std::vector<DeviceStep> steps;
  std::vector<Program> programs;
  std::vector<ProgramEvent> program_events;  ///< in order of their events
  std::vector<ProcessGroup> groups;
  std::vector<Collective> collectives;  ///< in order of their events
  bool compiled = false;                ///< a compiler made whole programs, with launches of its own
  bool has_arrows = false;              ///< from launches to work of devices
  std::int64_t unread = 0;              ///< events without a time, or that end before they start

  const std::string& name(const Event& event) const { return names[event.name]; }
};

/// Finds for each event of the host the one that encloses it, and for each event of a device its launch.
void link_events(Trace& trace);

/// The nearest event of a kind that encloses an event, itself included; `none` where there is none.
std::uint32_t enclosing(const Trace& trace, std::uint32_t event, EventKind kind);

/// The operation that an event of a device belongs to; `none` where it is not known.
std::uint32_t operation_of(const Trace& trace, const Event& event);

/// Gives kernels that a graph replays the operations that they had when the graph was captured, from a profile of the
/// capture. A replay is found as a run of launches of the same kernels in the same order. Returns how many were found.
std::int64_t adopt_capture(Trace& trace, const Trace& capture);

}  // namespace assay::trace
