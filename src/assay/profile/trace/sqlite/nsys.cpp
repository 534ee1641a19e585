// SQLite exports of Nsight Systems (`nsys export --type sqlite`), schemas 3.x: kernels, copies, calls of the driver and
// ranges of NVTX, each a table. Columns that a version lacks are left out.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/base/sqlite/database.h"
#include "assay/base/text.h"
#include "assay/profile/trace/readers.h"

namespace assay::trace {
namespace {

constexpr std::string_view damaged_export =
    "the file was cut off or changed; export it again: nsys export --type sqlite";

class NsysReader {
 public:
  NsysReader(Database database, std::string_view file, const Vocabulary& vocabulary)
      : database_(std::move(database)), vocabulary_(vocabulary) {
    trace_.file = file;
  }

  Result<Trace> read() {
    ASSAY_CHECK(strings());
    ASSAY_CHECK(devices());
    bool any = false;
    ASSAY_TRY(of_kernels, database_.columns("CUPTI_ACTIVITY_KIND_KERNEL"));
    several_processes_ = of_kernels.contains("globalPid");
    constexpr std::pair<const char*, EventKind> tables[] = {{"KERNEL", EventKind::kernel},
                                                            {"MEMCPY", EventKind::copy},
                                                            {"MEMSET", EventKind::fill},
                                                            {"RUNTIME", EventKind::launch}};
    for (const auto& [table, kind] : tables) {
      ASSAY_TRY(found, activities(fmt::format("CUPTI_ACTIVITY_KIND_{}", table), kind));
      any |= found;
    }
    if (!any)
      return fail(trace_.file, "the database has no activities of CUDA",
                  "profile with --trace=cuda, then nsys export --type sqlite");
    ASSAY_CHECK(ranges());
    link_events(trace_);
    return std::move(trace_);
  }

 private:
  Result<void> strings() {
    ASSAY_TRY(known, database_.columns("StringIds"));
    if (!known.contains("id") || !known.contains("value")) return {};
    return database_.rows("SELECT id, value FROM StringIds",
                          [&](const DatabaseRow& row) { strings_[row.integer(0)] = row.text(1); });
  }

  Result<void> devices() {
    ASSAY_TRY(known, database_.columns("TARGET_INFO_GPU"));
    if (!known.contains("id") || !known.contains("name")) return {};
    return database_.rows("SELECT id, name FROM TARGET_INFO_GPU", [&](const DatabaseRow& row) {
      trace_.devices.push_back({row.integer(0), row.text(1)});
    });
  }

  /// Whether there is such a table.
  Result<bool> activities(const std::string& table, EventKind kind) {
    ASSAY_TRY(known, database_.columns(table));
    if (!known.contains("start") || !known.contains("end")) return false;
    const auto column = [&](const char* name) { return known.contains(name) ? fmt::format("\"{}\"", name) : "NULL"; };
    const std::string name = kind == EventKind::kernel   ? column("demangledName")
                             : kind == EventKind::launch ? column("nameId")
                             : kind == EventKind::copy   ? column("copyKind")
                                                         : "NULL";
    const std::string process = column(kind == EventKind::launch ? "globalTid" : "globalPid");
    const std::string query = fmt::format("SELECT start, \"end\", {}, {}, {}, {}, {}, {}, {} FROM {} ORDER BY start",
                                          name, column("deviceId"), column("streamId"), column("correlationId"),
                                          process, column("bytes"), column("graphNodeId"), table);
    ASSAY_CHECK(database_.rows(query, [&](const DatabaseRow& row) { activity(row, kind); }));
    return true;
  }

  void activity(const DatabaseRow& row, EventKind kind) {
    Event event{.kind = kind};
    if (!timed(row, event)) return;
    const std::int64_t process = row.integer(6);
    // Numbers of launches count from 0 in each process; threads of a process differ in the lower bits alone.
    constexpr std::int64_t thread_bits = 24;
    if (!row.is_null(5))
      event.correlation =
          (process_number(several_processes_ ? process >> thread_bits : 0) << 40) | (row.integer(5) & 0xFFFFFFFF);
    if (on_device(kind)) {
      const std::int64_t device = std::max<std::int64_t>(row.integer(3), 0);
      event.lane = lane(fmt::format("GPU {}", device), std::to_string(row.integer(4)), device);
      if (!row.is_null(7)) event.bytes = Bytes(static_cast<double>(row.integer(7)));
      event.graph = row.integer(8) != 0;
    } else {
      event.lane = lane("host", std::to_string(process), -1);
    }
    if (kind == EventKind::copy)
      event.name = trace_.names.id(copy_name(row.integer(2)));
    else if (kind == EventKind::fill)
      event.name = trace_.names.id("Memset");
    else
      event.name = trace_.names.id(string(row.integer(2)));
    trace_.events.push_back(event);
  }

  /// Ranges of NVTX: marks where their names say so, and else operations.
  Result<void> ranges() {
    ASSAY_TRY(known, database_.columns("NVTX_EVENTS"));
    for (const char* needed : {"start", "end", "text", "globalTid"})
      if (!known.contains(needed)) return {};
    const std::string text_id = known.contains("textId") ? "textId" : "NULL";
    return database_.rows(
        fmt::format(
            "SELECT start, \"end\", text, {}, globalTid FROM NVTX_EVENTS WHERE \"end\" IS NOT NULL ORDER BY start",
            text_id),
        [&](const DatabaseRow& row) {
          Event event{.kind = EventKind::operation};
          if (!timed(row, event)) return;
          std::string name = row.text(2);
          if (name.empty()) name = string(row.integer(3));
          if (vocabulary_.role(name)) event.kind = EventKind::mark;
          name = name.substr(0, name.find(", "));  // frameworks add numbers and sizes behind a comma
          event.name = trace_.names.id(name);
          event.lane = lane("host", std::to_string(row.integer(4)), -1);
          trace_.events.push_back(event);
        });
  }

  bool timed(const DatabaseRow& row, Event& event) {
    const std::int64_t start = row.integer(0), end = row.integer(1);
    if (!origin_) origin_ = start;
    constexpr std::int64_t most = 1'000'000'000'000'000;  // nanoseconds: what ticks can count
    const auto far = [&](std::int64_t time) {
      return time / 2 - *origin_ / 2 > most / 2 || time / 2 - *origin_ / 2 < -most / 2;
    };
    if (end < start || far(start) || far(end)) return ++trace_.unread, false;
    event.start = (start - *origin_) * ticks_per_nanosecond;
    event.duration = (end - start) * ticks_per_nanosecond;
    return true;
  }

  /// CUPTI's kinds of copies, in the words of the other readers.
  static std::string copy_name(std::int64_t kind) {
    constexpr std::string_view names[] = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                          "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
    const bool known = kind >= 0 && static_cast<std::size_t>(kind) < std::size(names);
    return fmt::format("Memcpy {}", names[known ? static_cast<std::size_t>(kind) : 0]);
  }

  std::string string(std::int64_t id) const {
    const auto known = strings_.find(id);
    return known == strings_.end() ? "unknown" : known->second;
  }

  std::int64_t process_number(std::int64_t process) {
    return processes_.try_emplace(process, static_cast<std::int64_t>(processes_.size())).first->second;
  }

  std::uint32_t lane(const std::string& process, const std::string& thread, std::int64_t device) {
    const auto [known, is_new] = lanes_.try_emplace({process, thread}, static_cast<std::uint32_t>(trace_.lanes.size()));
    if (is_new) trace_.lanes.push_back({process, thread, device});
    return known->second;
  }

  Database database_;
  const Vocabulary& vocabulary_;
  Trace trace_;
  std::map<std::int64_t, std::string> strings_;
  std::map<std::int64_t, std::int64_t> processes_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> lanes_;
  std::optional<std::int64_t> origin_;
  bool several_processes_ = false;  ///< work of devices says which process started it
};

}  // namespace

Result<Trace> read_nsys(std::string_view bytes, std::string_view file, const Vocabulary& vocabulary) {
  ASSAY_TRY(database, Database::of_bytes(bytes, file, damaged_export));
  return NsysReader(std::move(database), file, vocabulary).read();
}

}  // namespace assay::trace
