#include "assay/ask/verbs/profile/profile.h"

#include <algorithm>

#include "assay/base/text.h"

namespace assay::verbs::profile {
namespace {

namespace trace = assay::trace;

/// A kernel that reaches less of both ceilings is bound by neither: by latency, or by how few of the chip's units it
/// occupies. Kernels that are bound by one reach half of it and more.
constexpr double bound_from = 0.2;

void add_known(report::Members& out, const char* key, std::string_view text) {
  if (!text.empty()) out.emplace_back(key, text);
}

std::optional<FlopsPerSecond> peak_of(const Query& query, const trace::Work& work) {
  if (!query.chip || !work.format || !work.matrix) return std::nullopt;
  const auto peak = hardware::peak_rate(*query.chip, *work.format, "");
  if (!peak) return std::nullopt;
  return peak->value;
}

void add_work(const Query& query, const trace::OperationTime& operation, report::Members& out) {
  if (!operation.work) return;
  const trace::Work& work = *operation.work;
  const double calls = static_cast<double>(operation.calls);
  const bool timed = operation.time > Seconds(0);
  std::optional<double> of_peak, of_bandwidth;
  if (work.flops > Flops(0)) {
    out.emplace_back("flops", work.flops);
    if (timed) out.emplace_back("achieved", calls * work.flops / operation.time);
    if (const auto peak = peak_of(query, work); peak && timed) of_peak = calls * work.flops / operation.time / *peak;
  }
  if (work.bytes && *work.bytes > Bytes(0)) {
    out.emplace_back("bytes", *work.bytes);
    if (timed) out.emplace_back("bandwidth", calls * *work.bytes / operation.time);
    if (query.chip && timed) of_bandwidth = calls * *work.bytes / operation.time / query.chip->hbm().bandwidth->value;
  }
  if (work.format) out.emplace_back("dtype", name(*work.format));
  if (of_peak) out.emplace_back("peak_share", *of_peak);
  if (of_bandwidth) out.emplace_back("bandwidth_share", *of_bandwidth);
  if (of_peak || of_bandwidth) {
    const double compute = of_peak.value_or(0.0), memory = of_bandwidth.value_or(0.0);
    out.emplace_back("bound", std::max(compute, memory) < bound_from ? "latency"
                              : compute >= memory                    ? "compute"
                                                                     : "memory");
  }
}

/// The time between the two in the middle, or of the one there.
Seconds median(std::vector<Seconds> times) {
  std::sort(times.begin(), times.end());
  const std::size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2.0;
}

}  // namespace

std::string short_kernel(std::string_view name) {
  if (name.starts_with("void ")) name.remove_prefix(5);
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with("(anonymous namespace)::")) {
      i += 22;
      continue;
    }
    const char c = name[i];
    if (c == '(' && depth == 0 && !out.empty() && out != "Memcpy " && out != "Memset ") break;
    if (c == '<') ++depth;
    if (depth == 0) out += c;
    if (c == '>' && depth > 0) --depth;
  }
  const std::size_t last = out.rfind("::");
  if (last != std::string::npos && last + 2 < out.size()) out = out.substr(last + 2);
  const std::string_view trimmed = trim(out);
  return trimmed.empty() ? std::string(name) : std::string(trimmed);
}

void add_times(const trace::DeviceTimes& times, report::Members& out) {
  out.emplace_back("total_time", times.total);
  out.emplace_back("busy_time", times.busy);
  out.emplace_back("idle_time", times.idle);
  out.emplace_back("computation_time", times.computation);
  out.emplace_back("communication_time", times.communication);
  out.emplace_back("exposed_communication_time", times.exposed_communication);
  out.emplace_back("copy_time", times.copies);
  out.emplace_back("exposed_copy_time", times.exposed_copies);
  out.emplace_back("computation_without_fills", times.without_fills);
  if (times.total > Seconds(0)) out.emplace_back("busy_share", times.busy / times.total);
  if (times.communication > Seconds(0)) {
    out.emplace_back("hidden_communication", 1.0 - times.exposed_communication / times.communication);
    out.emplace_back("overlap_without_fills", times.overlap / times.communication);
  }
}

report::Items category_rows(const Query& query, const trace::DeviceSummary& summary) {
  return report::rows_of(summary.categories, [&](const trace::CategoryTime& one) {
    const trace::Category& category = query.vocabulary->categories[one.category];
    report::Members row{{"category", category.id}};
    add_known(row, "kind", one.kind);
    row.emplace_back("count", one.count);
    row.emplace_back("time", one.time);
    if (summary.kernel_time > Seconds(0)) row.emplace_back("share", one.time / summary.kernel_time);
    return row;
  });
}

report::Items operation_rows(const Query& query) {
  const trace::DeviceSummary& summary = query.device().summary;
  return report::rows_of(summary.operations, [&](const trace::OperationTime& one) {
    report::Members row{{"label", one.name.empty() || !one.work ? short_kernel(one.kernel) : one.name}};
    add_known(row, "operation", one.name);
    row.emplace_back("kernel", one.kernel);
    add_known(row, "shapes", one.shapes);
    row.emplace_back("category", query.vocabulary->categories[one.category].id);
    add_known(row, "kind", one.kind);
    row.emplace_back("calls", one.calls);
    row.emplace_back("kernels", one.kernels);
    row.emplace_back("time", one.time);
    if (summary.kernel_time > Seconds(0)) row.emplace_back("share", one.time / summary.kernel_time);
    row.emplace_back("time_per_call", one.time / static_cast<double>(one.calls));
    row.emplace_back("shortest", one.shortest);
    row.emplace_back("longest", one.longest);
    add_work(query, one, row);
    return row;
  });
}

report::Items gap_rows(const trace::DeviceSummary& summary) {
  return report::rows_of(summary.gaps, [&](const trace::IdleGap& gap) {
    report::Members row{{"start", gap.start},
                        {"time", gap.length},
                        {"after", short_kernel(gap.after)},
                        {"before", short_kernel(gap.before)}};
    add_known(row, "operation", gap.host);
    row.emplace_back("host_bound", gap.host_bound);
    return row;
  });
}

report::Items stream_rows(const trace::DeviceSummary& summary) {
  return report::rows_of(summary.streams, [&](const trace::StreamTimes& stream) {
    return report::Members{{"stream", stream.stream},           {"events", stream.events},
                           {"busy_time", stream.busy},          {"host_wait", stream.host_wait},
                           {"kernel_wait", stream.kernel_wait}, {"other_wait", stream.other_wait}};
  });
}

void add_rates(const Query& query, report::Members& out) {
  const trace::DeviceSummary& summary = query.device().summary;
  Flops flops(0), with_peak(0);
  Seconds known(0), unknown(0), at_peak(0);  // at_peak: each product at the peak of its own format
  for (const trace::OperationTime& one : summary.operations) {
    const std::string& category = query.vocabulary->categories[one.category].id;
    if (!one.work || !one.work->matrix) {
      if (category == "matmul" || category == "attention" || category == "convolution") unknown += one.time;
      continue;
    }
    const Flops all = static_cast<double>(one.calls) * one.work->flops;
    flops += all;
    known += one.time;
    if (const auto peak = peak_of(query, *one.work)) {
      at_peak += all / *peak;
      with_peak += all;
    }
  }
  if (!(flops > Flops(0)) || !(summary.times.total > Seconds(0))) return;
  const double covered = known / (known + unknown);
  report::Members rates{
      {"flops", flops}, {"achieved", flops / summary.times.total}, {"while_running", flops / known}, {"time", known}};
  constexpr double share_with_peaks =
      0.99;                       // a few small products in formats that the chip has no peak for do not matter
  constexpr double enough = 0.9;  // of the time of products: less says nothing of the whole
  if (with_peak / flops >= share_with_peaks) {
    if (covered >= enough) rates.emplace_back("peak_share", at_peak / summary.times.total);
    rates.emplace_back("peak_share_while_running", at_peak / known);
  }
  rates.emplace_back("known_share", covered);
  out.emplace_back("products", std::move(rates));
}

void add_steps(const trace::DeviceSummary& summary, report::Members& out) {
  if (summary.steps.empty()) return;
  report::Items rows;
  std::vector<Seconds> times;
  for (const trace::StepTime& step : summary.steps) {
    report::Members row{{"name", step.name}, {"time", step.time}};
    report::Members parts;
    add_times(step.times, parts);
    for (auto& [key, value] : parts)
      if (key == "computation_time" || key == "exposed_communication_time" || key == "exposed_copy_time" ||
          key == "idle_time")
        row.emplace_back(key, std::move(value));
    rows.emplace_back(std::move(row));
    times.push_back(step.time);
  }
  const Seconds middle = median(times), shortest = *std::min_element(times.begin(), times.end()),
                longest = *std::max_element(times.begin(), times.end());
  report::Members spread{{"count", static_cast<std::int64_t>(times.size())},
                         {"median", middle},
                         {"shortest", shortest},
                         {"longest", longest}};
  if (middle > Seconds(0)) spread.emplace_back("spread", (longest - shortest) / middle);
  out.emplace_back("step_time", std::move(spread));
  out.emplace_back("steps", std::move(rows));
}

}  // namespace assay::verbs::profile
