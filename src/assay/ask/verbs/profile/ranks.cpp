#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/profile/profile.h"
#include "assay/base/text.h"

namespace assay::verbs::profile {
namespace {

namespace trace = assay::trace;
using compare::RankDelay;
using trace::CollectiveSequence;

constexpr std::string_view cause_names[] = {"computation", "communication", "copies", "host", "idle"};
static_assert(std::size(cause_names) == trace::doing_kinds);
/// What a rank does, by the time that it does it longer.
constexpr std::string_view cause_texts[] = {"computes {} longer", "waits {} in other collectives", "copies {} longer",
                                            "its host starts work {} late", "idles {} longer"};

/// Why the others wait for a rank, the longest reason first.
std::string because(const RankDelay& delay) {
  std::vector<std::pair<Seconds, std::string_view>> all;
  for (std::size_t i = 0; i < delay.causes.size(); ++i) all.emplace_back(delay.causes[i], cause_texts[i]);
  all.emplace_back(delay.unexplained, "comes {} late for reasons that the profile does not have");
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  all.resize(2);
  constexpr double least = 0.1;
  std::string out;
  for (const auto& [time, text] : all)
    if (time > Seconds(0) && time >= least * delay.held)
      out += (out.empty() ? "" : ", ") + fmt::format(fmt::runtime(text), report::short_quantity(time));
  return out;
}

Seconds median_computation(const Query& query) {
  std::vector<Seconds> all;
  for (const trace::RankSummary& rank : query.ranks) all.push_back(rank.times.computation);
  std::sort(all.begin(), all.end());
  return (all[all.size() / 2] + all[(all.size() - 1) / 2]) / 2.0;
}

/// What one direction of the links between the devices of a group carries, by the places of its ranks: ranks are
/// numbered host by host.
std::optional<BytesPerSecond> link_of(const Query& query, const CollectiveSequence& sequence) {
  if (!query.chip || sequence.devices < 2) return std::nullopt;
  const auto& up = query.chip->network.scale_up;
  const std::int64_t domain = up && up->domain ? up->domain->value : query.chip->host.chips.value;
  const std::int64_t world = query.ranks[query.shown_rank].world_size.value_or(domain + 1);
  const bool inside = sequence.first_rank ? *sequence.first_rank / domain == *sequence.last_rank / domain
                                          : sequence.devices <= domain && world <= domain;
  if (!inside && !sequence.first_rank && sequence.devices <= domain) return std::nullopt;
  if (inside) {
    if (!up || up->kind == "torus") return std::nullopt;
    return static_cast<double>(up->links.value) * up->link_bandwidth.value;
  }
  if (!query.chip->network.scale_out) return std::nullopt;
  return query.chip->network.scale_out->bandwidth.value;
}

}  // namespace

void add_collectives(const Query& query, report::Members& out) {
  const trace::RankSummary& rank = query.ranks[query.shown_rank];
  const std::vector<std::uint32_t>& groups = query.beside.groups[query.shown_rank];
  std::vector<std::pair<Seconds, report::Members>> rows;
  for (std::size_t i = 0; i < rank.collectives.size(); ++i) {
    const CollectiveSequence& sequence = rank.collectives[i];
    const compare::CollectiveDelay& delay = query.beside.collectives[groups[i]];
    trace::Ticks ticks = 0;
    for (const trace::CollectiveCall& call : sequence.calls) ticks += call.duration;
    const auto calls = static_cast<std::int64_t>(sequence.calls.size());
    const Seconds time = trace::seconds(ticks);
    report::Members row{{"kind", sequence.kind.empty() ? "others" : sequence.kind}};
    if (!sequence.group.empty())
      row.emplace_back("group", sequence.description.empty() ? sequence.group.substr(0, sequence.group.find('\x1f'))
                                                             : sequence.description);
    if (sequence.devices > 0) row.emplace_back("devices", sequence.devices);
    row.emplace_back("calls", calls);
    if (sequence.bytes > Bytes(0)) row.emplace_back("bytes", sequence.bytes / static_cast<double>(calls));
    row.emplace_back("time", time);
    if (delay.ranks > 1) {
      row.emplace_back("moving", delay.moving);
      row.emplace_back("waiting", delay.waiting);
      row.emplace_back("skew", delay.skew);
      row.emplace_back("largest_skew", delay.largest_skew);
    }
    const Seconds moving = delay.ranks > 1 ? delay.moving : time;
    if (sequence.moved > Bytes(0) && moving > Seconds(0)) {
      row.emplace_back("bus_bandwidth", sequence.moved / moving);
      if (const auto link = link_of(query, sequence)) {
        row.emplace_back("link", *link);
        row.emplace_back("link_share", sequence.moved / moving / *link);
      }
    }
    rows.emplace_back(time, std::move(row));
  }
  if (rows.empty()) return;
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  report::Items items;
  for (auto& [time, row] : rows) items.emplace_back(std::move(row));
  out.emplace_back("collectives", std::move(items));
}

report::Items rank_rows(const Query& query) {
  std::vector<std::size_t> order(query.ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Seconds held_a = query.beside.ranks[a].held, held_b = query.beside.ranks[b].held;
    if (held_a != held_b) return held_a > held_b;
    return query.ranks[a].times.computation > query.ranks[b].times.computation;
  });
  return report::rows_of(order, [&](std::size_t place) {
    const trace::RankSummary& rank = query.ranks[place];
    const RankDelay& delay = query.beside.ranks[place];
    report::Members row{{"file", rank.file}};
    if (rank.rank) row.emplace_back("rank", *rank.rank);
    row.emplace_back("device", rank.device);
    if (delay.held > Seconds(0) || delay.waits > Seconds(0)) {
      row.emplace_back("holds_up", delay.held);
      row.emplace_back("waits", delay.waits);
    }
    if (delay.held > notable_wait * rank.times.total) row.emplace_back("because", because(delay));
    add_times(rank.times, row);
    if (rank.launched) row.emplace_back("host_bound_time", rank.host_bound);
    report::Items categories;
    for (const trace::CategoryTime& one : rank.categories) {
      report::Members category{{"category", query.vocabulary->categories[one.category].id}};
      if (!one.kind.empty()) category.emplace_back("kind", one.kind);
      category.emplace_back("count", one.count);
      category.emplace_back("time", one.time);
      categories.emplace_back(std::move(category));
    }
    row.emplace_back("categories", std::move(categories));
    return row;
  });
}

void add_straggler(const Query& query, report::Members& out) {
  if (query.ranks.size() < 2) return;
  const trace::RankSummary& rank = query.ranks[query.shown_rank];
  const RankDelay& delay = query.beside.ranks[query.shown_rank];
  const Seconds middle = median_computation(query);
  const bool held = query.waited_for.has_value();
  const bool wait = std::any_of(query.beside.ranks.begin(), query.beside.ranks.end(),
                                [&](const RankDelay& one) { return one.held > notable_wait * rank.times.total; });
  if (!held && (wait || !(rank.times.computation > (1.0 + notable_wait) * middle))) return;
  report::Members row;
  if (rank.rank) row.emplace_back("rank", *rank.rank);
  row.emplace_back("device", rank.device);
  if (middle > Seconds(0)) row.emplace_back("computation_over_median", rank.times.computation / middle);
  if (held) {
    report::Items causes;
    const auto add = [&](std::string_view cause, Seconds time) {
      if (time > Seconds(0)) causes.emplace_back(report::Members{{"cause", cause}, {"time", time}});
    };
    for (std::size_t i = 0; i < delay.causes.size(); ++i) add(cause_names[i], delay.causes[i]);
    add("unknown", delay.unexplained);
    row.emplace_back("extra_time", delay.held);
    row.emplace_back("because", because(delay));
    row.emplace_back("causes", std::move(causes));
  } else {
    const Seconds longer = rank.times.computation - middle;
    row.emplace_back("extra_time", longer);
    row.emplace_back("because", fmt::format("computes {} longer than the median", report::short_quantity(longer)));
  }
  out.emplace_back("straggler", std::move(row));
}

}  // namespace assay::verbs::profile
