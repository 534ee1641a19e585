#include "assay/ask/verbs/prices.h"
#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "assay/ask/verbs/ranges.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/predict/search/front.h"
#include "assay/predict/search/training/caches.h"

namespace assay::verbs::train {

/// A search whose profiles and links hold for every batch.
struct SearchOfBatches {
  TrainQuery query;
  search::TrainingCaches caches;

  explicit SearchOfBatches(const TrainQuery& of) : query(of), caches(query.question, query.sequence, query.cluster) {
    query.bind();
  }
};
namespace {

constexpr Seconds never(HUGE_VAL);

Result<void> read_objective(const Request& request, TrainSizes& sizes) {
  const std::string word = request.value("objective").value_or("time");
  sizes.objective = word == "cost"    ? TrainObjective::cost
                    : word == "chips" ? TrainObjective::chips
                                      : TrainObjective::time;
  if (const auto text = request.value("deadline")) {
    ASSAY_TRY(deadline, parse_as<Seconds>(*text, "--deadline"));
    sizes.deadline = deadline;
    if (!request.has("tokens"))
      return fail("--deadline", "how long a run takes depends on its tokens", "add --tokens, e.g. --tokens 15T",
                  Error::Kind::usage);
  }
  if (request.has("mtbf") && !request.has("tokens"))
    return fail("--mtbf", "failures count over a whole run", "add --tokens, e.g. --tokens 15T", Error::Kind::usage);
  if (sizes.objective == TrainObjective::chips && !sizes.deadline)
    return fail("--objective", "the fewest chips are chosen to meet a deadline",
                "add --deadline and --tokens, e.g. --deadline 30day --tokens 15T", Error::Kind::usage);
  if (!sizes.several && (sizes.objective == TrainObjective::chips || request.has("pareto")))
    return fail(
        request.has("pareto") ? "--pareto" : "--objective", "there is only one cluster to choose from",
        "give several: --on h100-sxm:8..64 (every count that nodes allow), 8..512:16 (in steps of 16) or a list a,b",
        Error::Kind::usage);
  return {};
}

/// Seconds of a step beyond which a size misses the deadline, failures left aside: they only add.
Seconds slowest_step(const TrainSizes& sizes, const TrainQuery& query) {
  if (!sizes.deadline || !query.tokens) return never;
  return *sizes.deadline * query.batch_tokens / *query.tokens;
}

/// What is cheapest cannot be said without a price.
Result<void> check_price(const TrainSizes& sizes, const SizedTraining& size) {
  if (sizes.objective != TrainObjective::cost || !size.run || size.run->cost) return {};
  return fail("--objective", no_price_text(size.query.cluster.chip), "or leave it out of --on");
}

/// What searches of this query share, made before or now.
std::shared_ptr<search::TrainingCaches> caches_of(const Request& request, const Context& context,
                                                  const TrainSizes& sizes, TrainQuery& query) {
  if (!context.kept || sizes.several)
    return std::make_shared<search::TrainingCaches>(query.question, query.sequence, query.cluster);
  const std::string text = report::render_json(report::Value(request.without("batch").named_arguments()));
  std::shared_ptr<void>& kept = (*context.kept)["train " + text];
  if (!kept) kept = std::make_shared<SearchOfBatches>(query);
  const auto search = std::static_pointer_cast<SearchOfBatches>(kept);
  search->query.question.sequences = query.question.sequences;
  return {search, &search->caches};
}

Result<void> search_size(const Request& request, const Context& context, const TrainSizes& sizes, SizedTraining& size) {
  TrainQuery& query = size.query;
  query.bind();
  const Bytes capacity = query.cluster.chip.hbm().capacity.value;
  const Seconds slowest = sizes.quick ? slowest_step(sizes, query) : never;
  const auto caches = caches_of(request, context, sizes, query);
  if (!sizes.several) size.caches = caches;
  ASSAY_SET(size.found, search_plans(query, *caches, {capacity, query.top + 1, true, slowest, query.margin.budget}));
  if (!size.shown() && slowest == never) return tl::unexpected<Error>(why_nothing_runs(query));
  if (!size.fits()) {
    size.meets = false;
    return {};
  }
  ASSAY_TRY(run, read_run(request, query, size.found.best.front().cost));
  size.run = run;
  size.meets = !sizes.deadline || run.time <= *sizes.deadline;
  return {};
}

/// What the objective compares: less is better.
double worth(const TrainSizes& sizes, const SizedTraining& size) {
  if (!size.run) return HUGE_VAL;
  switch (sizes.objective) {
    case TrainObjective::time:
      return size.run->time.value();
    case TrainObjective::cost:
      return size.run->cost ? size.run->cost->value() : HUGE_VAL;
    case TrainObjective::chips:
      return size.query.question.chips;
  }
  throw InternalError("unknown objective");
}

/// The best of those that meet the deadline; else the fastest that fits; else the last that was searched. Of each,
/// first those that keep the margin of memory.
std::size_t choose(const TrainSizes& sizes) {
  std::size_t best = sizes.all.size();
  for (const bool meeting : {true, false})
    for (const bool keeping : {true, false}) {
      double least = HUGE_VAL;
      for (std::size_t i = 0; i < sizes.all.size(); ++i) {
        const SizedTraining& size = sizes.all[i];
        if (!size.run || (meeting && !size.meets)) continue;
        if (keeping && memory_verdict(size.query, size.found.best.front().cost) != MemoryVerdict::fits) continue;
        const double value = meeting ? worth(sizes, size) : size.run->time.value();
        if (value < least || best == sizes.all.size()) {
          least = value;
          best = i;
        }
      }
      if (best != sizes.all.size()) return best;
    }
  for (std::size_t i = sizes.all.size(); i-- > 0;)
    if (sizes.all[i].shown()) return i;
  return 0;
}

report::Members size_members(const Request& request, const SizedTraining& size) {
  const TrainQuery& query = size.query;
  const search::Candidate& best = size.found.best.front();
  const TokensPerSecond rate = Tokens(query.batch_tokens) / best.cost.estimate;
  report::Members row{{"cluster", query.cluster.text},
                      {"chips", query.cluster.chips()},
                      {"step_time", best.cost.estimate},
                      {"tokens_per_second", rate}};
  if (request.has("tokens")) row.emplace_back("training_time", size.run->time);
  if (size.run->cost) row.emplace_back("cost", *size.run->cost);
  row.emplace_back("strategy", strategy_text(best.strategy));
  return row;
}

/// Tokens per second and chip, relative to the smallest cluster of the same chip that fits.
double scaling_efficiency(const TrainSizes& sizes, const SizedTraining& size) {
  const auto per_chip = [](const SizedTraining& s) {
    return s.query.batch_tokens / s.found.best.front().cost.estimate / s.query.question.chips;
  };
  const SizedTraining* first = nullptr;
  for (const SizedTraining& other : sizes.all)
    if (other.fits() && other.query.cluster.chip.id == size.query.cluster.chip.id &&
        (!first || other.query.cluster.chips() < first->query.cluster.chips()))
      first = &other;
  return per_chip(size) / per_chip(*first);
}

}  // namespace

Result<TrainSizes> train_sizes(const Request& request, const Context& context) {
  TrainSizes sizes;
  const auto on = request.value("on");
  ASSAY_TRY(range, parse_cluster_range(on.value_or(""), "--on", context.catalogue));
  sizes.several = on && range.clusters.size() > 1;
  sizes.wants_front = request.has("pareto");
  ASSAY_CHECK(read_objective(request, sizes));
  if (!sizes.several) {
    ASSAY_TRY(cluster, cluster_of(request, context));
    ASSAY_TRY(query, read_train_query(request, context, cluster));
    sizes.all.push_back({query, {}, {}, true, {}, {}});
    ASSAY_CHECK(search_size(request, context, sizes, sizes.all.back()));
    ASSAY_CHECK(check_price(sizes, sizes.all.back()));
    return sizes;
  }
  ASSAY_TRY(overrides, overrides_of(request));
  std::vector<hardware::Cluster> clusters;
  for (std::size_t i = 0; i < range.clusters.size(); ++i) {
    const std::string& text = range.clusters[i];
    auto cluster = hardware::parse_cluster(text, context.catalogue, "--on", overrides);
    if (cluster)
      clusters.push_back(*cluster);
    else if (!range.counted[i] || i == 0 || cluster.error().kind == Error::Kind::missing)
      return tl::unexpected<Error>(cluster.error());
    else
      sizes.notes.push_back(fmt::format("{} left out: {}", text, cluster.error().what));
  }
  // The fewest chips are searched from below; with many sizes, those that miss the deadline are not told apart.
  constexpr std::size_t many = 16;
  sizes.quick = sizes.objective == TrainObjective::chips && clusters.size() > many;
  if (sizes.quick)
    std::stable_sort(clusters.begin(), clusters.end(),
                     [](const hardware::Cluster& a, const hardware::Cluster& b) { return a.chips() < b.chips(); });
  std::optional<Error> first;
  for (const hardware::Cluster& cluster : clusters) {
    sizes.all.push_back({});
    SizedTraining& size = sizes.all.back();
    size.query.cluster = cluster;
    const auto refused = [&](const Error& error) {
      size.why_not = error.what;
      size.meets = false;
      if (!first) first = error;
    };
    auto query = read_train_query(request, context, cluster);
    if (!query) {
      refused(query.error());
      continue;
    }
    size.query = std::move(*query);
    if (const auto done = search_size(request, context, sizes, size); !done) refused(done.error());
    ASSAY_CHECK(check_price(sizes, size));
    if (sizes.quick && size.run && size.meets) break;
  }
  sizes.chosen = choose(sizes);
  if (range.coarse && sizes.objective != TrainObjective::time && sizes.best().shown()) {
    const std::string finer = finer_range(range, sizes.best().query.cluster.text, context.catalogue);
    return train_sizes(request.with("on", finer), context);
  }
  if (!sizes.best().shown() && first) return tl::unexpected<Error>(*first);
  if (!sizes.best().shown()) {
    sizes.quick = false;
    sizes.chosen = sizes.all.size() - 1;
    ASSAY_CHECK(search_size(request, context, sizes, sizes.best()));
  }
  return sizes;
}

SizesFront sizes_front(const TrainSizes& sizes) {
  SizesFront out;
  std::vector<const SizedTraining*> fitting;
  for (const SizedTraining& size : sizes.all)
    if (size.run) fitting.push_back(&size);
  // Money and chips are not the same axis: what has no price is on the front only where nothing has one.
  out.priced =
      std::any_of(fitting.begin(), fitting.end(), [](const auto* size) { return size->run->cost.has_value(); });
  for (const SizedTraining* size : fitting)
    (out.priced && !size->run->cost ? out.unpriced : out.compared).push_back(size);
  std::vector<search::FrontPoint> points;
  for (const SizedTraining* size : out.compared) points.push_back({size->run->time.value(), out.price_of(*size)});
  for (std::size_t i : search::pareto_front(points)) out.front.push_back(out.compared[i]);
  return out;
}

void add_sizes(const Request& request, const TrainSizes& sizes, report::Response& response) {
  const bool of_run = request.has("tokens");
  report::Items rows;
  for (const SizedTraining& size : sizes.all) {
    if (!size.run) {
      report::Members row{{"cluster", size.query.cluster.text}, {"chips", size.query.cluster.chips()}};
      if (sizes.deadline) row.emplace_back("meets_deadline", false);
      row.emplace_back("why_not", !size.why_not.empty() ? size.why_not
                                  : size.found.closest  ? std::string("does not fit in memory")
                                                        : std::string("no strategy that fits meets the deadline"));
      rows.emplace_back(std::move(row));
      continue;
    }
    report::Members row = size_members(request, size);
    row.insert(row.end() - 1, {"scaling_efficiency", scaling_efficiency(sizes, size)});
    if (sizes.deadline) row.insert(row.end() - 1, {"meets_deadline", size.meets});
    add_plan(request, size.query, size.found.best.front(), row);
    rows.emplace_back(std::move(row));
  }
  response.results.emplace_back("sizes", std::move(rows));
  response.table_key = "sizes";
  response.notes.insert(response.notes.end(), sizes.notes.begin(), sizes.notes.end());
  if (!of_run) response.notes.emplace_back("cost is for one step; --tokens gives the cost of a run");
  if (!request.has("pareto")) return;
  const SizesFront found = sizes_front(sizes);
  for (const SizedTraining* size : found.unpriced)
    response.notes.push_back(fmt::format("{} is not on the front: it has no price", size->query.cluster.text));
  report::Items front;
  for (const SizedTraining* size : found.front) {
    report::Members row = size_members(request, *size);
    add_plan(request, size->query, size->found.best.front(), row);
    front.emplace_back(std::move(row));
  }
  response.results.emplace_back("pareto", std::move(front));
  response.table_key = "pareto";
}

void say_choice(const TrainSizes& sizes, report::Response& response) {
  const SizedTraining& chosen = sizes.all[sizes.chosen];
  if (!chosen.run) return;
  const std::string cost = chosen.run->cost ? fmt::format(", {}", human(*chosen.run->cost)) : std::string();
  if (!chosen.meets) {
    response.outcome = report::Outcome::infeasible;
    response.headline =
        fmt::format("no cluster meets --deadline {}: the fastest, {}, takes {}{}; {}", human(*sizes.deadline),
                    chosen.query.cluster.text, human(chosen.run->time), cost, response.headline);
    return;
  }
  constexpr std::string_view most[] = {"fastest", "cheapest", "fewest chips"};
  response.headline = fmt::format(
      "{}: {}{}{}, {}", most[static_cast<std::size_t>(sizes.objective)], chosen.query.cluster.text,
      chosen.query.tokens ? fmt::format(", {}", human(chosen.run->time)) : std::string(), cost, response.headline);
}

}  // namespace assay::verbs::train
