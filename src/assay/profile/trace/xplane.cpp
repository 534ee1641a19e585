// XSpace protobufs of XLA's profiler (*.xplane.pb): planes of devices, whose lines hold events. Numbers of fields are
// those of tsl/profiler/protobuf/xplane.proto.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "assay/base/text.h"
#include "assay/profile/trace/readers.h"
#include "assay/profile/trace/wire.h"

namespace assay::trace {
namespace {

/// A statistic of an event, its metadata or a plane.
struct XStat {
  std::string_view name, text;
  double number = 0.0;
  std::int64_t whole = 0;
};

struct XEventMetadata {
  std::string_view name, display_name;
  std::vector<std::string_view> stats;
};

struct XEvent {
  std::uint64_t metadata = 0;
  Ticks offset = 0, duration = 0;
  std::int64_t correlation = -1, program = 0;
  std::optional<std::int64_t> step;           ///< of a range that a program marks as a step
  std::string_view module_name, instruction;  ///< of the program that it belongs to
  bool graph = false;
};

class XSpaceReader {
 public:
  XSpaceReader(std::string_view bytes, std::string_view file, const Vocabulary& vocabulary)
      : bytes_(bytes), file_(file), vocabulary_(vocabulary) {
    trace_.file = file;
    trace_.compiled = true;
  }

  Result<Trace> read() {
    WireReader space(bytes_);
    bool planes = false;
    while (space.next())
      if (space.field() == 1) {
        planes = true;
        plane(space.bytes());
      }
    if (!damage_ && space.damaged()) damage_ = space.position();
    if (damage_)
      return fail(fmt::format("{}: byte {}", file_, damage_ - bytes_.data()),
                  "the profile is damaged: a message does not end where its length says",
                  "the file was cut off or changed; copy it again, in binary mode");
    if (!planes)
      return fail(std::string(file_), "the profile has no planes",
                  "give the *.xplane.pb file that XLA's profiler wrote");
    keep_main_program();
    link_events(trace_);
    return std::move(trace_);
  }

 private:
  void plane(std::string_view message) {
    std::string_view name;
    std::vector<std::string_view> lines, stats;
    stat_names_.clear();
    events_.clear();
    WireReader reader(message);
    while (reader.next()) {
      if (reader.field() == 2) name = reader.bytes();
      if (reader.field() == 3) lines.push_back(reader.bytes());
      if (reader.field() == 4) event_metadata(reader.bytes());
      if (reader.field() == 5) stat_metadata(reader.bytes());
      if (reader.field() == 6) stats.push_back(reader.bytes());
    }
    note_damage(reader);
    if (name == "/host:metadata") return programs();
    constexpr std::string_view device = "/device:";
    if (name.starts_with("/host:CPU"))
      for (const std::string_view text : lines) line(text, name, -1);
    if (!name.starts_with(device) || name.find("CUSTOM") != std::string_view::npos) return;
    // "/device:GPU:0", "/device:TPU:1"
    std::int64_t id = 0;
    constexpr double most_devices = 1e6;
    if (const auto number = parse_number(name.substr(name.rfind(':') + 1)); number && std::abs(*number) < most_devices)
      id = static_cast<std::int64_t>(*number);
    DeviceProperties properties{id, ""};
    std::map<std::string_view, XStat> known;
    for (const std::string_view text : stats)
      if (const XStat stat = read_stat(text); !stat.name.empty()) known[stat.name] = stat;
    for (const std::string_view key : {"gpu_device_name", "device_type_string"})
      if (known.contains(key)) properties.name = std::string(known[key].text);
    // Some makers' devices have no name there: numbers tell them apart.
    if (properties.name.empty() && known.contains("device_vendor") && known.contains("memory_size"))
      properties.name =
          fmt::format("{} {}.{}, {} cores, {:.0f} GiB, {:.0f} MHz", known["device_vendor"].text,
                      known["compute_cap_major"].whole, known["compute_cap_minor"].whole, known["core_count"].whole,
                      Bytes(known["memory_size"].number).in(1_GiB), known["clock_rate"].number / 1000.0);
    trace_.devices.push_back(std::move(properties));
    runs_.clear();
    for (const bool steps : {true, false})  // what runs there belongs to the runs of programs
      for (const std::string_view text : lines) line(text, name, id, steps);
  }

  /// Programs are kept as they were compiled.
  void programs() {
    for (const auto& [number, metadata] : events_)
      for (const std::string_view text : metadata.stats) {
        const XStat stat = read_stat(text);
        if (stat.name != "Hlo Proto" && stat.name != "hlo_proto") continue;
        WireReader proto(stat.text);
        while (proto.next())
          if (proto.field() == 1) trace_.programs.push_back({std::string(metadata.name), std::string(proto.bytes())});
      }
  }

  /// The second of two fields of a map's entry, and its key.
  static std::pair<std::uint64_t, std::string_view> entry(std::string_view message, WireReader& reader) {
    std::uint64_t key = 0;
    std::string_view value;
    reader = WireReader(message);
    while (reader.next()) {
      if (reader.field() == 1) key = reader.number();
      if (reader.field() == 2) value = reader.bytes();
    }
    return {key, value};
  }

  void event_metadata(std::string_view message) {
    WireReader reader(message);
    const auto [key, value] = entry(message, reader);
    note_damage(reader);
    XEventMetadata metadata;
    WireReader inner(value);
    while (inner.next()) {
      if (inner.field() == 2) metadata.name = inner.bytes();
      if (inner.field() == 4) metadata.display_name = inner.bytes();
      if (inner.field() == 5) metadata.stats.push_back(inner.bytes());
    }
    note_damage(inner);
    events_.insert_or_assign(key, std::move(metadata));
  }

  void stat_metadata(std::string_view message) {
    WireReader reader(message);
    const auto [key, value] = entry(message, reader);
    note_damage(reader);
    WireReader inner(value);
    while (inner.next())
      if (inner.field() == 2) stat_names_.insert_or_assign(key, inner.bytes());
    note_damage(inner);
  }

  XStat read_stat(std::string_view message) {
    XStat stat;
    WireReader reader(message);
    while (reader.next()) switch (reader.field()) {
        case 1:
          stat.name = stat_name(reader.number());
          break;
        case 2:
          stat.number = reader.real();
          break;
        case 3:
          stat.number = static_cast<double>(reader.number());
          stat.whole = reader.whole();
          break;
        case 4:
          stat.number = static_cast<double>(reader.whole());
          stat.whole = reader.whole();
          break;
        case 5:
        case 6:
          stat.text = reader.bytes();
          break;
        case 7:
          stat.text = stat_name(reader.number());
          break;
        default:
          break;
      }
    note_damage(reader);
    return stat;
  }

  std::string_view stat_name(std::uint64_t id) const {
    const auto known = stat_names_.find(id);
    return known == stat_names_.end() ? std::string_view{} : known->second;
  }

  XEvent read_event(std::string_view message) {
    XEvent event;
    WireReader reader(message);
    while (reader.next()) {
      if (reader.field() == 1) event.metadata = reader.number();
      if (reader.field() == 2) event.offset = reader.whole();
      if (reader.field() == 3) event.duration = reader.whole();
      if (reader.field() != 4) continue;
      const XStat stat = read_stat(reader.bytes());
      if (stat.name == "correlation_id") event.correlation = stat.whole;
      if (stat.name == "cuda_graph_id" || stat.name == "graph_id") event.graph = stat.number > 0.0;
      if (stat.name == "hlo_op") event.instruction = stat.text;
      if (stat.name == "hlo_module") event.module_name = stat.text;
      if (stat.name == "program_id") event.program = stat.whole;
      if (stat.name == "step_num") event.step = stat.whole;
    }
    note_damage(reader);
    return event;
  }

  /// `device` is -1 of the host. Lines of steps are read first, and alone.
  void line(std::string_view message, std::string_view plane, std::int64_t device, bool of_steps = false) {
    std::string_view name, display_name;
    std::int64_t timestamp = 0;  // in nanoseconds
    std::vector<std::string_view> messages;
    WireReader reader(message);
    while (reader.next()) {
      if (reader.field() == 2) name = reader.bytes();
      if (reader.field() == 3) timestamp = reader.whole();
      if (reader.field() == 4) messages.push_back(reader.bytes());
      if (reader.field() == 11) display_name = reader.bytes();
    }
    note_damage(reader);
    if (!display_name.empty()) name = display_name;
    const auto role = vocabulary_.line_role(name);
    if (device >= 0 && (!role || (*role == LineRole::steps) != of_steps)) return;
    std::vector<XEvent> events;
    for (const std::string_view event : messages) events.push_back(read_event(event));
    if (device < 0) std::erase_if(events, [](const XEvent& event) { return event.correlation < 0 && !event.step; });
    if (events.empty()) return;
    if (!origin_) origin_ = timestamp;
    constexpr std::int64_t longest_nanoseconds = 1'000'000'000'000'000;  // what ticks can count, with room for offsets
    constexpr Ticks longest_offset = 1'000'000'000'000'000'000;
    const std::int64_t since = timestamp / 2 - *origin_ / 2;  // halves cannot overflow
    if (since > longest_nanoseconds / 2 || since < -longest_nanoseconds / 2) {
      trace_.unread += static_cast<std::int64_t>(events.size());
      return;
    }
    const Ticks start = (timestamp - *origin_) * ticks_per_nanosecond;
    std::erase_if(events, [&](const XEvent& event) {
      const bool unreadable = event.offset < -longest_offset || event.offset > longest_offset || event.duration < 0 ||
                              event.duration > longest_offset;
      trace_.unread += unreadable ? 1 : 0;
      return unreadable;
    });
    if (device >= 0 && of_steps) return steps(events, start, device);
    if (device >= 0 && *role == LineRole::nested_work) drop_containers(events);
    trace_.lanes.push_back({std::string(plane), std::string(name), device});
    for (const XEvent& event : events) add(event, start);
  }

  void steps(const std::vector<XEvent>& events, Ticks start, std::int64_t device) {
    for (const XEvent& event : events) {
      const auto metadata = events_.find(event.metadata);
      const std::string_view name = metadata == events_.end() ? "" : metadata->second.name;
      const Ticks begin = start + event.offset;
      trace_.steps.push_back({device, std::string(name), begin, begin + event.duration});
      runs_[begin] = {begin + event.duration, name};
    }
  }

  /// Loops and calls stand on the same line as what they run: only the innermost events are work.
  static void drop_containers(std::vector<XEvent>& events) {
    std::stable_sort(events.begin(), events.end(), [](const XEvent& a, const XEvent& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.duration > b.duration;
    });
    std::vector<XEvent> inner;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool encloses = i + 1 < events.size() && events[i + 1].duration > 0 &&
                            events[i + 1].offset + events[i + 1].duration <= events[i].offset + events[i].duration;
      if (!encloses) inner.push_back(events[i]);
    }
    events = std::move(inner);
  }

  void add(const XEvent& from, Ticks start) {
    Event out{.start = start + from.offset, .duration = from.duration, .correlation = from.correlation};
    out.lane = static_cast<std::uint32_t>(trace_.lanes.size() - 1);
    out.graph = from.graph;
    if (const auto metadata = events_.find(from.metadata); metadata != events_.end()) {
      const XEventMetadata& known = metadata->second;
      const std::string_view name = known.display_name.empty() ? known.name : known.display_name;
      out.name = trace_.names.id(name);
      if (trace_.lanes.back().device < 0)
        out.kind = from.step ? EventKind::mark : EventKind::launch;
      else if (name.starts_with("Memcpy"))
        out.kind = EventKind::copy;
      else if (name.starts_with("Memset"))
        out.kind = EventKind::fill;
      if (from.step) out.name = trace_.names.id(fmt::format("{} step_num={}", name, *from.step));
      add_program(from, name, out);
      for (const std::string_view text : known.stats) {
        const XStat stat = read_stat(text);
        if (stat.name == "hlo_category") out.stated = trace_.names.id(stat.text);
        if (stat.name == "flops" && stat.number > 0.0) out.flops = Flops(stat.number);
        if (stat.name == "bytes_accessed" && stat.number > 0.0) out.bytes = Bytes(stat.number);
      }
    } else {
      out.name = trace_.names.id("unknown");
    }
    trace_.events.push_back(out);
  }

  /// The instruction that an event of a device runs: the file names it, or its program is the one that runs then.
  void add_program(const XEvent& from, std::string_view name, const Event& event) {
    if (!on_device(event.kind)) return;
    std::string program = from.module_name.empty() ? "" : fmt::format("{}({})", from.module_name, from.program);
    std::string_view instruction = from.instruction;
    if (const auto after = runs_.upper_bound(event.start); program.empty() && after != runs_.begin())
      if (const auto& [end, running] = std::prev(after)->second; event.start < end) {
        program = running;
        instruction = name.substr(name.starts_with("%") ? 1 : 0);
        instruction = instruction.substr(0, instruction.find(' '));
      }
    if (program.empty() || instruction.empty()) return;
    trace_.program_events.push_back(
        {static_cast<std::uint32_t>(trace_.events.size()), trace_.names.id(program), trace_.names.id(instruction)});
  }

  /// Runs of programs by their events, where no line of the device has them.
  void find_runs() {
    std::vector<ProgramEvent> sorted = trace_.program_events;
    const auto device_of = [&](const ProgramEvent& of) { return trace_.lanes[trace_.events[of.event].lane].device; };
    std::stable_sort(sorted.begin(), sorted.end(), [&](const ProgramEvent& a, const ProgramEvent& b) {
      const std::int64_t left = device_of(a), right = device_of(b);
      return left != right ? left < right : trace_.events[a.event].start < trace_.events[b.event].start;
    });
    const ProgramEvent* first = nullptr;
    for (const ProgramEvent& one : sorted) {
      const Event& event = trace_.events[one.event];
      const bool again = first && one.instruction == first->instruction &&
                         event.name == trace_.events[first->event].name &&
                         event.correlation != trace_.events[first->event].correlation;
      if (!first || again || one.program != first->program || device_of(one) != device_of(*first)) {
        first = &one;
        trace_.steps.push_back({device_of(one), trace_.names[one.program], event.start, event.end()});
      }
      trace_.steps.back().end = std::max(trace_.steps.back().end, event.end());
    }
  }

  /// Steps are runs of the program that takes most of a device's time; where none does, runs are no steps.
  void keep_main_program() {
    if (trace_.steps.empty()) find_runs();
    std::map<std::int64_t, std::map<std::string_view, double>> times;
    for (const DeviceStep& step : trace_.steps)
      times[step.device][step.name] += static_cast<double>(step.end - step.start);
    std::map<std::int64_t, std::string> most;
    for (const auto& [device, by_name] : times) {
      double all = 0.0;
      for (const auto& [name, time] : by_name) all += time;
      for (const auto& [name, time] : by_name)
        if (time > all / 2.0) most[device] = std::string(name);
    }
    std::erase_if(trace_.steps, [&](const DeviceStep& step) { return most[step.device] != step.name; });
    for (DeviceStep& step : trace_.steps) step.name = step.name.substr(0, step.name.find('('));
    std::stable_sort(trace_.steps.begin(), trace_.steps.end(),
                     [](const DeviceStep& a, const DeviceStep& b) { return a.start < b.start; });
  }

  void note_damage(const WireReader& reader) {
    if (reader.damaged() && !damage_) damage_ = reader.position();
  }

  std::string_view bytes_, file_;
  const Vocabulary& vocabulary_;
  Trace trace_;
  std::map<std::uint64_t, std::string_view> stat_names_;
  std::map<std::uint64_t, XEventMetadata> events_;
  std::map<Ticks, std::pair<Ticks, std::string_view>> runs_;  ///< of programs on the device: start, end and name
  std::optional<std::int64_t> origin_;
  const char* damage_ = nullptr;
};

}  // namespace

bool is_xplane(std::string_view bytes) {
  // A message whose first field is a plane, which starts with its number or its name.
  WireReader space(bytes);
  if (!bytes.starts_with('\x0a')) return false;
  if (space.next()) {
    WireReader plane(space.bytes());
    return plane.next() && (plane.field() == 1 || plane.field() == 2);
  }
  // Cut off inside of the first plane: the plane's length is followed by its first field.
  return bytes.size() > 16 && bytes.find("/") < 64;
}

Result<Trace> read_xplane(std::string_view bytes, std::string_view file, const Vocabulary& vocabulary) {
  return XSpaceReader(bytes, file, vocabulary).read();
}

}  // namespace assay::trace
