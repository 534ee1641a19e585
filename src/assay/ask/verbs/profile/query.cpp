#include "assay/ask/verbs/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/parallel.h"
#include "assay/base/progress.h"
#include "assay/base/text.h"
#include "assay/profile/hlo/profiled.h"
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
bool one_run(const std::vector<trace::RankSummary>& all) {
  std::set<std::pair<std::int64_t, std::int64_t>> ranks;
  return std::all_of(all.begin(), all.end(), [&](const trace::RankSummary& one) {
    return one.rank && one.world_size == all.front().world_size && ranks.emplace(*one.rank, one.device).second;
  });
}

/// The place of the device that computes longest.
std::size_t longest_computing(const std::vector<trace::RankSummary>& ranks) {
  const auto longest = std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.times.computation < b.times.computation;
  });
  return static_cast<std::size_t>(longest - ranks.begin());
}

using Placed = std::map<std::int64_t, std::vector<trace::PlacedEvent>>;

/// A profile that was read: its devices and, where it is kept, its events.
struct ReadProfile {
  trace::Trace trace;
  Placed placed;
  std::vector<trace::RankSummary> ranks;
  std::int64_t captured = 0;  ///< kernels that have the operations of a capture
};

tl::unexpected<Error> no_work(const trace::Trace& trace) {
  const auto launches = std::count_if(trace.events.begin(), trace.events.end(),
                                      [](const trace::Event& event) { return event.kind == trace::EventKind::launch; });
  return fail(trace.file,
              launches > 0 ? fmt::format("the profile has {} calls that start work of a device, and no such work: the "
                                         "profiler did not record the device",
                                         launches)
                           : "the profile has no work of a device",
              "record the activities of the device, too, and let the program use one");
}

/// What profiles are read with.
struct Names {
  const trace::Vocabulary& vocabulary;
  const hlo::Calls& calls;
  std::vector<trace::Trace> captures = {};
};

Result<trace::Trace> read_trace(Source source, const Names& names) {
  ASSAY_TRY(open, opened(std::move(source)));
  const auto drop = [&](std::size_t bytes) {
    if (open.file) open.file->drop(bytes);
  };
  ASSAY_TRY(out, trace::read_profile(open.content(), open.name, names.vocabulary, drop));
  hlo::adopt_programs(out, names.vocabulary, names.calls);
  return out;
}

Result<ReadProfile> read(Source source, const Names& names) {
  ReadProfile out;
  ASSAY_SET(out.trace, read_trace(std::move(source), names));
  const trace::Vocabulary& vocabulary = names.vocabulary;
  for (const trace::Trace& capture : names.captures) out.captured += trace::adopt_capture(out.trace, capture);
  out.placed = trace::device_events(out.trace, vocabulary);
  if (out.placed.empty()) return no_work(out.trace);
  for (const auto& [device, events] : out.placed)
    out.ranks.push_back(trace::rank_summary(out.trace, vocabulary, device, events));
  return out;
}

/// A source that can be read twice: of many, only places are known.
Source again(const Source& source) { return {source.name, source.bytes, source.part}; }

/// Reads one or two profiles, or many ranks: several at once, of which only summaries are kept.
Result<std::vector<ReadProfile>> read_all(std::vector<Source>& sources, bool keep, const Names& names) {
  std::vector<ReadProfile> out(sources.size());
  std::vector<std::optional<Error>> errors(sources.size());
  progress.start("profiles", sources.size());
  parallel_for(sources.size(), 1, [&](std::size_t i) {
    Result<ReadProfile> one = read(keep ? std::move(sources[i]) : again(sources[i]), names);
    progress.advance();
    if (!one) {
      errors[i] = std::move(one.error());
      return;
    }
    if (keep) {
      out[i] = std::move(*one);
      return;
    }
    for (trace::RankSummary& rank : one->ranks)
      for (const trace::StepEvents& step :
           trace::device_steps(one->trace, names.vocabulary, rank.device, one->placed.at(rank.device)).steps)
        rank.steps.push_back(trace::seconds(step.end - step.begin));
    out[i].ranks = std::move(one->ranks);
    out[i].captured = one->captured;
  });
  for (std::optional<Error>& error : errors)
    if (error) return tl::unexpected(std::move(*error));
  return out;
}

Device device_of(const ReadProfile& profile, std::size_t trace, const trace::RankSummary& rank,
                 const trace::Vocabulary& vocabulary) {
  return {trace, trace::summary_of(profile.trace, vocabulary, rank, profile.placed.at(rank.device))};
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
  std::int64_t unread = query.before ? query.traces[query.before->trace].unread : 0;
  for (const trace::RankSummary& rank : query.ranks) unread += rank.unread;
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
  const bool compiled = query.traces[query.device().trace].compiled;
  if (summary.steps.empty())
    query.notes.emplace_back(compiled ? "no steps are known: no program runs for most of the time"
                                      : "no steps are marked: call the profiler's step() after each");
  else if (summary.steps_by_optimizer)
    query.notes.emplace_back("steps are not marked: each is taken to end with an update of the weights");
  const bool any_work =
      std::any_of(summary.operations.begin(), summary.operations.end(), [](const trace::OperationTime& one) {
        return one.work && (one.work->flops > Flops(0) || one.work->bytes > Bytes(0));
      });
  if (!any_work)
    query.notes.emplace_back(compiled
                                 ? "no operation has shapes: profiles in xplane.pb hold the programs that have them"
                                 : "no operation has shapes: record them (record_shapes) to see FLOP and bytes");
  if (summary.graph_events > 0 && !captured && !compiled)
    query.notes.push_back(
        fmt::format("{} of {} events were replayed from graphs, which have no operations around them; --capture names "
                    "a profile of the "
                    "capture",
                    summary.graph_events, summary.events));
}

}  // namespace

compare::MeasuredStep measured_of(const Query& query) {
  const Device& device = query.device();
  return compare::measured_step(query.traces[device.trace], *query.vocabulary, device.summary.device,
                                compare::waits_of(query.beside, query.ranks, query.shown_rank));
}

Result<Query> read_query(const Request& request, const Context& context, Sources sources) {
  Query query;
  ASSAY_TRY(vocabulary, trace::vocabulary_of(context.catalogue));
  query.vocabulary = vocabulary;
  ASSAY_TRY(calls, hlo::calls_of(context.catalogue));
  Names names{*vocabulary, *calls};
  std::vector<std::string> captured_in;
  for (Source& source : sources.captures) {
    captured_in.push_back(source.name);
    ASSAY_TRY(capture, read_trace(std::move(source), names));
    names.captures.push_back(std::move(capture));
  }
  const bool few = sources.profiles.size() <= 2;
  ASSAY_TRY(profiles, read_all(sources.profiles, few, names));
  std::vector<std::size_t> of_profile;  // by rank
  std::int64_t captured = 0;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    captured += profiles[i].captured;
    of_profile.insert(of_profile.end(), profiles[i].ranks.size(), i);
    std::copy(profiles[i].ranks.begin(), profiles[i].ranks.end(), std::back_inserter(query.ranks));
  }
  if (!captured_in.empty())
    query.notes.push_back(fmt::format("{} replayed kernels have the operations of their capture in {}", captured,
                                      fmt::join(captured_in, ", ")));
  const bool runs_alike = one_run(query.ranks) || profiles.size() == 1;
  if (profiles.size() > 2 && !runs_alike) {
    query.over_time = true;
    std::vector<trace::RankSummary> runs;
    for (ReadProfile& profile : profiles) runs.push_back(std::move(profile.ranks[longest_computing(profile.ranks)]));
    query.ranks = std::move(runs);
    return query;
  }
  if (profiles.size() == 2 && !runs_alike) {
    const auto after = std::find(of_profile.begin(), of_profile.end(), std::size_t{1}) - of_profile.begin();
    const std::vector<trace::RankSummary> before(query.ranks.begin(), query.ranks.begin() + after);
    query.before = device_of(profiles[0], 0, before[longest_computing(before)], *vocabulary);
    query.ranks.erase(query.ranks.begin(), query.ranks.begin() + after);
    of_profile.erase(of_profile.begin(), of_profile.begin() + after);
  }
  query.beside = compare::compare_ranks(query.ranks);
  query.waited_for = compare::waited_for(query.beside, notable_wait * query.ranks.front().times.total);
  query.shown_rank = query.waited_for.value_or(longest_computing(query.ranks));
  std::size_t from = of_profile[query.shown_rank];
  if (!few) {
    ASSAY_TRY(shown, read(std::move(sources.profiles[from]), names));
    profiles.clear();
    profiles.push_back(std::move(shown));
    from = 0;
  }
  query.shown = device_of(profiles[from], from, query.ranks[query.shown_rank], *vocabulary);
  query.mesh = compare::run_mesh(profiles[from].trace, *vocabulary, query.ranks[query.shown_rank]);
  for (ReadProfile& profile : profiles) query.traces.push_back(std::move(profile.trace));
  const std::vector<trace::CollectiveSequence>& collectives = query.ranks[query.shown_rank].collectives;
  if (query.ranks.size() > 2 &&
      std::any_of(collectives.begin(), collectives.end(), [](const auto& sequence) { return sequence.group.empty(); }))
    query.notes.emplace_back(
        "the profile does not say which ranks communicate: collectives of equal kernels are taken to be of all");
  ASSAY_CHECK(find_chip(query, request, context));
  note_gaps(query, !sources.captures.empty());
  note_unknown(query);
  return query;
}

}  // namespace assay::verbs::profile
