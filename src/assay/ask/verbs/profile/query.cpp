#include "assay/ask/verbs/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/profile/trace/readers.h"

namespace assay::verbs::profile {
namespace {

/// The chip of --on or, without it, the one that the profile names.
Result<void> find_chip(Query& query, const Request& request, const Context& context) {
  if (request.has("on")) {
    ASSAY_TRY(cluster, cluster_of(request, context));
    query.chip = std::move(cluster.chip);
    return {};
  }
  const std::string& name = query.device().summary.name;
  const auto id = query.vocabulary->chip(name);
  if (!id) {
    query.notes.push_back(
        name.empty() ? "the profile does not name its device; --on names the chip for shares of its peaks"
                     : fmt::format("{} is no chip of the catalogue; --on names one for shares of its peaks", name));
    return {};
  }
  ASSAY_TRY(overrides, overrides_of(request));
  ASSAY_SET(query.chip, context.catalogue.chip(*id, "chip", overrides));
  return {};
}

/// Whether files are of different ranks of one run.
bool one_run(const std::vector<trace::Trace>& traces) {
  std::set<std::int64_t> ranks;
  for (const trace::Trace& trace : traces)
    if (!trace.rank || trace.world_size != traces.front().world_size || !ranks.insert(*trace.rank).second) return false;
  return true;
}

/// The place of the device that computes longest.
std::size_t longest_computing(const std::vector<Device>& devices) {
  const auto longest = std::max_element(devices.begin(), devices.end(), [](const Device& a, const Device& b) {
    return a.summary.times.computation < b.summary.times.computation;
  });
  return static_cast<std::size_t>(longest - devices.begin());
}

/// The devices of one of the traces; an error where it has none.
Result<std::vector<Device>> devices_of(const Query& query, std::size_t trace) {
  std::vector<Device> out;
  for (trace::DeviceSummary& summary : trace::summarize(query.traces[trace], *query.vocabulary))
    out.push_back({trace, std::move(summary)});
  if (!out.empty()) return out;
  const std::vector<trace::Event>& events = query.traces[trace].events;
  const auto launches = std::count_if(events.begin(), events.end(),
                                      [](const trace::Event& event) { return event.kind == trace::EventKind::launch; });
  return fail(query.traces[trace].file,
              launches > 0 ? fmt::format("the profile has {} calls that start work of a device, and no such work: the "
                                         "profiler did not record the device",
                                         launches)
                           : "the profile has no work of a device",
              "record the activities of the device, too, and let the program use one");
}

/// Says which kernels no category knows, where they take much of the time.
void note_unknown(Query& query) {
  const trace::DeviceSummary& summary = query.device().summary;
  constexpr double much = 0.02;
  const trace::OperationTime* longest = nullptr;
  Seconds all;
  for (const trace::OperationTime& one : summary.operations) {
    if (one.category + 1 < query.vocabulary->categories.size()) continue;
    all += one.time;
    if (!longest || one.time > longest->time) longest = &one;
  }
  if (longest && all > much * summary.kernel_time)
    query.notes.push_back(
        fmt::format("kernels of no known category take {} of kernel time, longest {}: a rule in kernels/ of "
                    "--catalogue DIR gives them one",
                    report::percent(all / summary.kernel_time), short_kernel(longest->kernel)));
}

void note_gaps(Query& query, bool captured) {
  const trace::DeviceSummary& summary = query.device().summary;
  std::int64_t unread = 0;
  for (const trace::Trace& trace : query.traces) unread += trace.unread;
  if (unread > 0) query.notes.push_back(fmt::format("{} events have no readable time and are left out", unread));
  const bool any_kernel = std::any_of(summary.categories.begin(), summary.categories.end(), [&](const auto& one) {
    const trace::Category& category = query.vocabulary->categories[one.category];
    return category.work_class != trace::WorkClass::copy && !category.fills;
  });
  if (!any_kernel)
    query.notes.emplace_back(
        "the profile has no kernels, only copies and fills of memory: what the device computed was not recorded");
  if (summary.launched == 0)
    query.notes.emplace_back(
        "the profile has no launches of kernels: it cannot be told whether the device waits for the host");
  if (summary.steps.empty())
    query.notes.emplace_back("no steps are marked: call the profiler's step() after each");
  else if (summary.steps_by_optimizer)
    query.notes.emplace_back("steps are not marked: each is taken to end with an update of the weights");
  const bool any_work =
      std::any_of(summary.operations.begin(), summary.operations.end(), [](const trace::OperationTime& one) {
        return one.work && (one.work->flops > Flops(0) || one.work->bytes > Bytes(0));
      });
  if (!any_work) query.notes.emplace_back("no operation has shapes: record them (record_shapes) to see FLOP and bytes");
  if (summary.graph_events > 0 && !captured)
    query.notes.push_back(
        fmt::format("{} of {} events were replayed from graphs, which have no operations around them; --capture names "
                    "a profile of the "
                    "capture",
                    summary.graph_events, summary.events));
}

}  // namespace

compare::MeasuredStep measured_of(const Query& query) {
  std::vector<compare::OtherRank> others;
  for (std::size_t i = 0; i < query.devices.size(); ++i)
    if (i != query.shown) others.push_back({&query.traces[query.devices[i].trace], query.devices[i].summary.device});
  const Device& device = query.device();
  return compare::measured_step(query.traces[device.trace], *query.vocabulary, device.summary.device, others);
}

Result<Query> read_query(const Request& request, const Context& context, Sources sources) {
  Query query;
  ASSAY_TRY(vocabulary, trace::vocabulary_of(context.catalogue));
  query.vocabulary = vocabulary;
  const auto read = [&](Source& source) {
    const auto drop = [&](std::size_t bytes) {
      if (source.file) source.file->drop(bytes);
    };
    auto trace = trace::read_profile(source.content(), source.name, *vocabulary, drop);
    source.file.reset();
    std::string().swap(source.bytes);  // assigning an empty one would keep the memory
    return trace;
  };
  for (Source& source : sources.profiles) {
    ASSAY_TRY(trace, read(source));
    query.traces.push_back(std::move(trace));
  }
  for (Source& source : sources.captures) {
    ASSAY_TRY(capture, read(source));
    std::int64_t found = 0;
    for (trace::Trace& trace : query.traces) found += trace::adopt_capture(trace, capture);
    query.notes.push_back(
        fmt::format("{} replayed kernels have the operations of their capture in {}", found, source.name));
  }
  const bool compares = query.traces.size() == 2 && !one_run(query.traces);
  if (query.traces.size() > 2 && !one_run(query.traces))
    return fail(query.traces.front().file, "several profiles are compared where they are of different ranks of one run",
                "give one file of each rank, or two files, BEFORE and AFTER");
  if (!compares)
    std::stable_sort(query.traces.begin(), query.traces.end(),
                     [](const auto& a, const auto& b) { return a.rank < b.rank; });
  for (std::size_t i = 0; i < query.traces.size(); ++i) {
    ASSAY_TRY(found, devices_of(query, i));
    if (compares && i == 0)
      query.before = std::move(found[longest_computing(found)]);
    else
      query.devices.insert(query.devices.end(), found.begin(), found.end());
  }
  query.shown = longest_computing(query.devices);
  ASSAY_CHECK(find_chip(query, request, context));
  note_gaps(query, !sources.captures.empty());
  note_unknown(query);
  return query;
}

}  // namespace assay::verbs::profile
