// Chrome JSON of PyTorch's profiler, Kineto, and of XLA's. Devices are told by categories of events or, where there
// are none, by the names of processes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "assay/base/text.h"
#include "assay/profile/trace/chrome.h"
#include "assay/profile/trace/readers.h"

namespace assay::trace {
namespace {

/// What the arguments of an event say.
struct KinetoArguments {
  std::int64_t correlation = -1, external = -1, device = -1;
  double bytes = -1.0, flops = -1.0;
  std::string_view stream, dims, types, values, kernel, collective, category, name;
  bool graph = false;
  struct {  ///< of a collective
    std::string_view group, description, ranks, type;
    std::int64_t sent = 0, received = 0, devices = 0;
  } of;
};

/// The ranks of a group, as a list or as its text; none where some are left out.
std::vector<std::int64_t> ranks_of(std::string_view text) {
  std::vector<std::int64_t> out;
  if (text.starts_with('[')) text.remove_prefix(1);
  for (const std::string& part : split(text.substr(0, text.find(']')), ',')) {
    const auto rank = whole_number(trim(part));
    if (!rank || *rank < 0) return {};
    out.push_back(*rank);
  }
  return out;
}

KinetoArguments read_arguments(JsonScanner& scanner) {
  KinetoArguments out;
  if (scanner.peek() != '{') return out;
  const auto count = [&](std::int64_t& value) {
    if (const auto number = scanner.number_text())
      if (const auto whole = whole_number(*number)) value = *whole;
  };
  const auto number = [&](double& value) {
    if (const auto digits = scanner.number_text())
      if (const auto read = parse_number(*digits); read && *read >= 0) value = *read;
  };
  const auto words = [&](std::string_view& value) { value = scanner.peek() == '"' ? scanner.string() : scanner.raw(); };
  scanner.object([&](std::string_view key) {
    if (is_word(key, "External id"))
      count(out.external);
    else if (is_word(key, "correlation") || is_word(key, "correlation_id"))
      count(out.correlation);
    else if (is_word(key, "device"))
      count(out.device);
    else if (is_word(key, "stream"))
      words(out.stream);
    else if (is_word(key, "bytes") || is_word(key, "bytes_accessed"))
      number(out.bytes);
    else if (is_word(key, "flops") || is_word(key, "model_flops"))
      number(out.flops);
    else if (is_word(key, "Input Dims"))
      out.dims = scanner.raw();
    else if (is_word(key, "Input type"))
      out.types = scanner.raw();
    else if (is_word(key, "Concrete Inputs"))
      out.values = scanner.raw();
    else if (is_word(key, "kernel"))
      words(out.kernel);
    else if (is_word(key, "Collective name"))
      words(out.collective);
    else if (is_word(key, "Process Group Name"))
      words(out.of.group);
    else if (is_word(key, "Process Group Description"))
      words(out.of.description);
    else if (is_word(key, "Process Group Ranks"))
      words(out.of.ranks);
    else if (is_word(key, "Group size"))
      count(out.of.devices);
    else if (is_word(key, "In msg nelems"))
      count(out.of.sent);
    else if (is_word(key, "Out msg nelems"))
      count(out.of.received);
    else if (is_word(key, "dtype"))
      words(out.of.type);
    else if (is_word(key, "hlo_category"))
      words(out.category);
    else if (is_word(key, "name") && scanner.peek() == '"')
      out.name = scanner.string();
    else if (is_word(key, "graph node id") || is_word(key, "graph id"))
      out.graph = scanner.number_text().value_or("0") != "0";
  });
  return out;
}

/// The kind of an event by the category that Kineto gives it; nothing: it is not needed.
std::optional<EventKind> kind_of(std::string_view category) {
  if (is_word(category, "kernel") || is_word(category, "Kernel")) return EventKind::kernel;
  if (is_word(category, "gpu_memcpy") || is_word(category, "Memcpy")) return EventKind::copy;
  if (is_word(category, "gpu_memset") || is_word(category, "Memset")) return EventKind::fill;
  if (is_word(category, "cpu_op") || is_word(category, "Operator") || is_word(category, "operator"))
    return EventKind::operation;
  if (is_word(category, "user_annotation") || is_word(category, "python_function")) return EventKind::mark;
  if (category.ends_with("_runtime") || category.ends_with("_driver") || is_word(category, "Runtime"))
    return EventKind::launch;
  return std::nullopt;
}

class KinetoReader {
 public:
  KinetoReader(std::string_view text, std::string_view file, const Vocabulary& vocabulary, const Passed& passed)
      : vocabulary_(vocabulary), text_(text), passed_(passed) {
    constexpr std::size_t usual = 256;  // bytes of an event, or more
    trace_.file = file;
    trace_.events.reserve(text.size() / usual);
  }

  void arguments(JsonScanner& scanner) { arguments_ = read_arguments(scanner); }

  void event(const ChromeEvent& event) {
    visit(event);
    arguments_ = {};
    constexpr std::size_t often = std::size_t{1} << 24;  // bytes
    if (!passed_ || event.phase.empty()) return;
    const auto at = static_cast<std::size_t>(event.phase.data() - text_.data());
    if (at - told_ >= often) passed_(told_ = at);
  }

  void member(std::string_view key, JsonScanner& scanner) {
    if (key == "distributedInfo" && scanner.peek() == '{')
      scanner.object([&](std::string_view inner) {
        if (inner == "rank") count(scanner, trace_.rank);
        if (inner == "world_size") count(scanner, trace_.world_size);
        if (inner == "pg_config" && scanner.peek() == '[') scanner.array([&] { read_group(scanner); });
      });
    if (key == "deviceProperties" && scanner.peek() == '[')
      scanner.array([&] {
        if (scanner.peek() != '{') return;
        DeviceProperties device;
        scanner.object([&](std::string_view inner) {
          if (inner == "id") device.id = whole_number(scanner.number_text().value_or("")).value_or(0);
          if (inner == "name" && scanner.peek() == '"') device.name = unescaped(scanner.string());
        });
        trace_.devices.push_back(std::move(device));
      });
  }

  Trace finish() {
    trace_.has_arrows = !arrows_.empty();
    for (Event& event : trace_.events)
      event.arrow = on_device(event.kind) && event.correlation >= 0 && arrows_.contains(event.correlation);
    link_events(trace_);
    return std::move(trace_);
  }

 private:
  void visit(const ChromeEvent& event) {
    if (is_word(event.phase, "M")) return metadata(event);
    if (is_word(event.phase, "s") && (is_word(event.category, "ac2g") || is_word(event.category, "async_cpu_to_gpu")))
      if (const auto id = whole_number(event.id)) arrows_.insert(*id);
    if (event.phase != "X") return;
    if (const auto kind = kind_of(event.category)) return add(event, *kind);
    if (!event.category.empty()) return;
    const auto process = processes_.find(event.process);  // XLA writes no categories
    if (process == processes_.end()) return;
    if (process->second.device >= 0)
      add_device_operation(event, process->second.device);
    else
      add(event, EventKind::operation);
  }

  struct Process {
    std::string name;
    std::int64_t device = -1;
  };

  static void count(JsonScanner& scanner, std::optional<std::int64_t>& out) {
    if (const auto text = scanner.number_text()) out = whole_number(*text);
  }

  std::uint32_t group(std::string_view name) {
    std::vector<ProcessGroup>& groups = trace_.groups;
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const ProcessGroup& one) { return one.name == name; });
    const auto place = static_cast<std::uint32_t>(known - groups.begin());
    if (place == groups.size()) groups.push_back({std::string(name), "", 0, {}});
    return place;
  }

  void read_group(JsonScanner& scanner) {
    if (scanner.peek() != '{') return;
    std::string name;
    ProcessGroup read;
    scanner.object([&](std::string_view key) {
      const auto text = [&] { return scanner.peek() == '"' ? scanner.string() : scanner.raw(); };
      if (key == "pg_name") name = unescaped(text());
      if (key == "pg_desc") read.description = unescaped(text());
      if (key == "pg_size") read.size = whole_number(scanner.number_text().value_or("")).value_or(0);
      if (key == "ranks") read.ranks = ranks_of(scanner.raw());
    });
    read.name = name;
    trace_.groups[group(name)] = std::move(read);
  }

  /// What the arguments of a kernel say of its collective.
  void add_collective(std::uint32_t event) {
    const auto& of = arguments_.of;
    const std::uint32_t place = group(unescaped(of.group));
    ProcessGroup& in = trace_.groups[place];
    if (in.description.empty()) in.description = unescaped(of.description);
    if (in.size <= 0) in.size = of.devices;
    if (in.ranks.empty()) in.ranks = ranks_of(of.ranks);
    const auto type = vocabulary_.dtype(of.type);
    const auto bytes = [&](std::int64_t elements) {
      return type && elements > 0 ? storage(*type, static_cast<double>(elements)) : Bytes();
    };
    trace_.collectives.push_back({event, place, bytes(of.sent), bytes(of.received)});
  }

  /// Names of processes and threads; XLA writes them before all events.
  void metadata(const ChromeEvent& event) {
    if (arguments_.name.empty() || (event.name != "process_name" && event.name != "thread_name")) return;
    if (event.name == "thread_name") {
      threads_[{std::string(event.process), std::string(event.thread)}] = unescaped(arguments_.name);
      return;
    }
    const std::string text = unescaped(arguments_.name);
    constexpr std::string_view device = "/device:";
    if (!text.starts_with(device) && !text.starts_with("/host:")) return;
    Process process{text};
    if (text.starts_with(device)) {
      process.device = whole_number(std::string_view(text).substr(text.rfind(':') + 1)).value_or(0);
      trace_.devices.push_back({process.device, ""});
    }
    processes_.insert_or_assign(std::string(event.process), process);
  }

  std::uint32_t lane(std::string_view process, std::string_view thread, std::int64_t device) {
    if (!trace_.lanes.empty() && process == last_.process && thread == last_.thread && device == last_.device)
      return last_.lane;
    return (last_ = {process, thread, device, found_lane(process, thread, device)}).lane;
  }

  std::uint32_t found_lane(std::string_view process, std::string_view thread, std::int64_t device) {
    std::string key = fmt::format("{}\x1f{}\x1f{}", process, thread, device);
    const auto [known, is_new] = lanes_.try_emplace(std::move(key), static_cast<std::uint32_t>(trace_.lanes.size()));
    if (is_new) {
      const auto name = threads_.find({std::string(process), std::string(thread)});
      trace_.lanes.push_back({unescaped(process), name == threads_.end() ? unescaped(thread) : name->second, device});
    }
    return known->second;
  }

  std::uint32_t text_id(std::string_view written) {
    return written.find('\\') == std::string_view::npos ? trace_.names.id(written)
                                                        : trace_.names.id(unescaped(written));
  }

  bool timed(const ChromeEvent& event, Event& out) {
    const bool readable = event.start && event.duration.value_or(0) >= 0;
    if (!readable) return ++trace_.unread, false;
    out.start = *event.start;
    out.duration = event.duration.value_or(0);
    return true;
  }

  void add(const ChromeEvent& event, EventKind kind) {
    if (kind == EventKind::mark && !vocabulary_.role(event.name)) return;  // functions of Python are many
    Event out{.kind = kind};
    if (!timed(event, out)) return;
    const KinetoArguments arguments = kind == EventKind::mark ? KinetoArguments{} : arguments_;
    out.name = text_id(event.name);
    out.correlation = arguments.correlation;
    out.external = arguments.external;
    out.graph = arguments.graph;
    if (on_device(kind)) {
      const std::int64_t device = arguments.device >= 0 ? arguments.device : whole_number(event.process).value_or(0);
      out.lane = lane(event.process, arguments.stream.empty() ? event.thread : arguments.stream, device);
      out.bytes = Bytes(arguments.bytes);
      if (!arguments.collective.empty()) {
        out.stated = text_id("collective:" + std::string(arguments.collective));
        add_collective(static_cast<std::uint32_t>(trace_.events.size()));
      }
    } else {
      out.lane = lane(event.process, event.thread, -1);
    }
    if (kind == EventKind::launch && !arguments.kernel.empty()) out.stated = text_id(arguments.kernel);
    if (kind == EventKind::operation && !arguments.dims.empty()) {
      scratch_.assign(arguments.dims);
      scratch_.append("\x1f").append(arguments.types).append("\x1f").append(arguments.values);
      out.inputs = trace_.names.id(scratch_);
    }
    trace_.events.push_back(out);
  }

  /// On lines of a device that hold its work; others repeat it.
  void add_device_operation(const ChromeEvent& event, std::int64_t device) {
    const auto thread = threads_.find({std::string(event.process), std::string(event.thread)});
    const std::string_view line = thread == threads_.end() ? std::string_view{} : std::string_view(thread->second);
    const auto role = vocabulary_.line_role(line);
    if (!role || *role == LineRole::steps) return;
    trace_.compiled = true;
    Event out{.kind = EventKind::kernel};
    if (!timed(event, out)) return;
    const KinetoArguments& arguments = arguments_;
    if (event.name.starts_with("Memcpy")) out.kind = EventKind::copy;
    if (event.name.starts_with("Memset")) out.kind = EventKind::fill;
    out.name = text_id(event.name);
    out.correlation = arguments.correlation;
    out.flops = Flops(arguments.flops);
    out.bytes = Bytes(arguments.bytes);
    out.lane = lane(event.process, event.thread, device);
    if (!arguments.category.empty()) out.stated = text_id(arguments.category);
    trace_.events.push_back(out);
  }

  const Vocabulary& vocabulary_;
  std::string_view text_;
  const Passed& passed_;
  std::size_t told_ = 0;       ///< to passed_
  KinetoArguments arguments_;  ///< of the current event
  Trace trace_;
  std::map<std::string, Process, std::less<>> processes_;
  std::map<std::pair<std::string, std::string>, std::string> threads_;
  std::unordered_map<std::string, std::uint32_t> lanes_;
  struct {
    std::string_view process, thread;
    std::int64_t device = -1;
    std::uint32_t lane = 0;
  } last_;  ///< the lane that was asked for last: most events follow one on their own
  std::unordered_set<std::int64_t> arrows_;
  std::string scratch_;
};

}  // namespace

Result<Trace> read_kineto(std::string_view text, std::string_view file, const Vocabulary& vocabulary,
                          const Passed& passed) {
  KinetoReader reader(text, file, vocabulary, passed);
  ASSAY_CHECK(visit_chrome(
      text, file,
      {[&](JsonScanner& scanner) { reader.arguments(scanner); }, [&](const ChromeEvent& event) { reader.event(event); },
       [&](std::string_view key, JsonScanner& scanner) { reader.member(key, scanner); }}));
  return reader.finish();
}

}  // namespace assay::trace
