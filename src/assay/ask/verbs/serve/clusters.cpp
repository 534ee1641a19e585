// Serve's answers about other hardware: what fits in which format, which slice would do, which cluster is cheapest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/serve/serve.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/predict/search/front.h"

namespace assay::verbs::serve {
namespace {

std::string chip_text(const hardware::Cluster& cluster) {
  std::string text = cluster.text;
  if (const auto star = text.find('*'); star != std::string::npos) text = text.substr(star + 1);
  return text.substr(0, text.find(':'));
}

}  // namespace

std::string slice_text(const ServeQuery& query, const search::SliceSize& slice) {
  return chip_text(query.cluster) + ":" + slice.text;
}

search::SliceQuestion slice_question(const ServeQuery& query, const Request& request, const Context& context) {
  const auto cluster_of = [&](const search::SliceSize& slice) -> Result<hardware::Cluster> {
    ASSAY_TRY(overrides, overrides_of(request));
    return hardware::parse_cluster(slice_text(query, slice), context.catalogue, "--on", overrides);
  };
  return {query.question, query.cluster.chip, query.choices, cluster_of};
}

report::Items fits_list(const ServeQuery& query, double batch) {
  return report::rows_of(search::format_fits(query.question, query.cluster, query.parameters, batch),
                         [&](const search::FormatFit& fit) {
                           report::Members row{{"format", name(fit.format)},
                                               {"weights", fit.weights},
                                               {"kv_bytes_per_token", fit.token_cache},
                                               {"kv_cache_of_a_sequence", fit.sequence_cache},
                                               {"chips_for_weights", fit.chips_for_weights},
                                               {"least_chips", fit.least_chips}};
                           if (fit.smallest) {
                             row.emplace_back("smallest_slice", fit.smallest->slice.text);
                             row.emplace_back("slice_chips", fit.smallest->slice.chips);
                             row.emplace_back("left_for_caches", fit.smallest->left);
                             if (fit.smallest->caches) row.emplace_back("caches", *fit.smallest->caches);
                           }
                           if (fit.for_batch) {
                             row.emplace_back("slice_for_batch", fit.for_batch->text);
                             row.emplace_back("slice_for_batch_chips", fit.for_batch->chips);
                           }
                           if (fit.max_batch) row.emplace_back("max_batch_here", *fit.max_batch);
                           return row;
                         });
}

namespace {

/// A cluster and formats to answer the question for, and what the search found or why it found nothing.
struct Alternative {
  ServeQuery query;
  Result<search::ServingSearch> found;
};

std::string format_text(const ServeQuery& query) {
  const lower::Formats& formats = query.question.setup.formats;
  const bool alike = !formats.quantised && formats.weights == formats.kv_cache && formats.weights == query.compute;
  if (alike) return std::string(name(query.compute));
  return fmt::format(
      "weights {}, cache {}, products {}",
      formats.quantised ? model::text(*formats.quantised, query.model()) : std::string(name(formats.weights)),
      name(formats.kv_cache), name(query.compute));
}

/// The request on another cluster or in other formats; changes of --set are about the chip of --on.
Request asked_of(const Request& request, const ServeQuery& own, const ServeQuery& other) {
  Request out = request.with("on", other.cluster.text);
  if (chip_text(other.cluster) != chip_text(own.cluster)) out = out.without("set");
  const lower::Formats &formats = other.question.setup.formats, &before = own.question.setup.formats;
  if (own.compared_formats.empty() || (formats.weights == before.weights && formats.kv_cache == before.kv_cache))
    return out;
  return out.with("weights", std::string(name(formats.weights)))
      .with("kv", std::string(name(formats.kv_cache)))
      .with("compute", std::string(name(other.compute)));
}

/// Changes of --set are about the chip of --on.
Result<hardware::Cluster> other_cluster(const ServeQuery& query, const std::string& text, const Request& request,
                                        const Context& context) {
  ASSAY_TRY(cluster, hardware::parse_cluster(text, context.catalogue, "--compare"));
  if (chip_text(cluster) != chip_text(query.cluster)) return cluster;
  ASSAY_TRY(overrides, overrides_of(request));
  return hardware::parse_cluster(text, context.catalogue, "--compare", overrides);
}

/// Every cluster in every format, the question's own first.
Result<std::vector<Alternative>> alternatives(const ServeQuery& query, const search::ServingSearch& found,
                                              const Request& request, const Context& context) {
  std::vector<Alternative> out{{query, found}};
  std::vector<hardware::Cluster> clusters{query.cluster};
  for (const std::string& text : query.compared) {
    ASSAY_TRY(cluster, other_cluster(query, text, request, context));
    clusters.push_back(cluster);
  }
  std::vector<std::optional<Dtype>> formats{std::nullopt};
  for (Dtype format : query.compared_formats) formats.emplace_back(format);
  for (std::size_t c = 0; c < clusters.size(); ++c)
    for (std::size_t f = c == 0 ? 1 : 0; f < formats.size(); ++f) {
      auto other = on_other_cluster(query, clusters[c], request, context, formats[f]);
      if (!other) {
        ServeQuery asked = query;
        asked.cluster = clusters[c];
        out.push_back({std::move(asked), tl::unexpected(other.error())});
        continue;
      }
      bind(*other);
      auto there = search::search_serving(other->question, clusters[c], query.choices);
      out.push_back({*std::move(other), std::move(there)});
    }
  for (Alternative& one : out) bind(one.query);  // they have moved
  return out;
}

/// The best point of each, most tokens per dollar first.
report::Items best_of_each(const std::vector<Alternative>& all, const Request& request, bool formats) {
  struct Row {
    double tokens_per_dollar = -1.0;
    report::Members members;
  };
  std::vector<Row> rows;
  for (const auto& [q, found] : all) {
    Row row;
    row.members = {{"cluster", q.cluster.text}, {"chips", q.cluster.chips()}};
    if (formats) row.members.emplace_back("formats", format_text(q));
    std::optional<PointUnderLoad> loaded;
    if (q.rate && found && found->fits)
      if (auto under = best_under_rate(q, *found)) loaded = *std::move(under);
    const bool meets = found && found->best && (!loaded || loaded->meets);
    row.members.emplace_back("meets", meets);
    if (loaded) row.members.emplace_back("most_requests_per_second", loaded->most_requests.value());
    const serving::ServingPoint* p = !found           ? nullptr
                                     : loaded         ? &loaded->point
                                     : found->best    ? &*found->best
                                     : found->closest ? &*found->closest
                                                      : nullptr;
    if (p) {
      const TokensPerSecond rate = p->served.tokens_per_second;
      row.members.emplace_back("fits", p->memory.total() <= q.question.chip_memory);
      row.members.emplace_back("batch", p->batch);
      row.members.emplace_back("latency", p->served.per_token);
      row.members.emplace_back("ttft", p->prefill.estimate);
      row.members.emplace_back("throughput", rate);
      row.members[1].second = static_cast<std::int64_t>(q.all_chips(p->strategy));
      row.members.emplace_back("throughput_per_chip", rate / q.all_chips(p->strategy));
      if (const auto cost = cost_of_million(q, *p, rate)) {
        if (meets) row.tokens_per_dollar = 1e6 / cost->value();
        row.members.emplace_back("cost", *cost);
        row.members.emplace_back("tokens_per_dollar", Tokens(1e6) / *cost);
      }
      if (loaded) {
        report::Members load{{"utilisation", loaded->times.utilisation}};
        if (loaded->times.stable) {
          load.emplace_back("time_to_first_token", loaded->times.first_token.p99);
          load.emplace_back("time_per_token", loaded->times.per_token.p99);
        }
        if (loaded->cost) {
          load.emplace_back("cost", *loaded->cost);
          if (meets) row.tokens_per_dollar = 1e6 / loaded->cost->value();
        }
        row.members.emplace_back("load", std::move(load));
      }
      row.members.emplace_back("strategy", strategy_text(p->strategy));
      add_plan(asked_of(request, all.front().query, q), q, *p, row.members);
    } else if (!found) {
      // A chip without the format, or chips that the given sharding does not split.
      row.members.emplace_back("why", found.error().what + "; " + found.error().hint);
    }
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.tokens_per_dollar > b.tokens_per_dollar; });
  report::Items out;
  for (Row& row : rows) out.emplace_back(std::move(row.members));
  return out;
}

/// Points of all fronts that no other one beats in time per token and in cost, or in tokens per chip where a chip has
/// no price.
report::Items joint_front(const std::vector<Alternative>& all, const Request& request, bool formats) {
  const bool priced = std::all_of(all.begin(), all.end(), [](const Alternative& a) {
    return hardware::newest_price(a.query.cluster.chip) != nullptr;
  });
  std::vector<search::FrontPoint> points;
  std::vector<std::pair<const ServeQuery*, const serving::ServingPoint*>> of;
  for (const auto& [q, found] : all) {
    if (!found) continue;
    for (const serving::ServingPoint& p : found->front) {
      const TokensPerSecond rate = p.served.tokens_per_second;
      points.push_back({p.served.per_token.value(),
                        priced ? cost_of_million(q, p, rate)->value() : q.all_chips(p.strategy) / rate.value()});
      of.emplace_back(&q, &p);
    }
  }
  return report::rows_of(search::pareto_front(points), [&](std::size_t i) {
    const auto& [q, p] = of[i];
    report::Members row{{"cluster", q->cluster.text}, {"chips", static_cast<std::int64_t>(q->all_chips(p->strategy))}};
    if (formats) row.emplace_back("formats", format_text(*q));
    const TokensPerSecond rate = p->served.tokens_per_second;
    row.emplace_back("batch", p->batch);
    row.emplace_back("latency", p->served.per_token);
    row.emplace_back("ttft", p->prefill.estimate);
    row.emplace_back("throughput_per_chip", rate / q->all_chips(p->strategy));
    if (const auto cost = cost_of_million(*q, *p, rate)) row.emplace_back("cost", *cost);
    row.emplace_back("strategy", strategy_text(p->strategy));
    add_plan(asked_of(request, all.front().query, *q), *q, *p, row);
    return row;
  });
}

}  // namespace

Result<Comparison> comparison(const ServeQuery& query, const search::ServingSearch& found, const Request& request,
                              const Context& context) {
  ASSAY_TRY(all, alternatives(query, found, request, context));
  const bool formats = !query.compared_formats.empty();
  Comparison out{best_of_each(all, request, formats), joint_front(all, request, formats), {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].found) continue;  // the table says why
    const std::string name = all[i].query.cluster.text + (formats ? ", " + format_text(all[i].query) : "");
    out.fronts.push_back({name, std::move(all[i].query), *std::move(all[i].found)});
  }
  return out;
}

namespace {

/// Dollars per hour of so many chips where every cluster has a price, else chips.
double size_of(const ServeQuery& query, double chips, bool priced) {
  const hardware::Price* price = hardware::newest_price(query.cluster.chip);
  return chips * (priced ? price->value.value.value() : 1.0);
}

/// The cheapest cluster of --on that serves the rate within the latency limits; else the one that serves the most.
Result<search::ServingSearch> cheapest_under_load(ServeQuery& query, search::ServingSearch found,
                                                  const Request& request, const Context& context) {
  std::vector<Alternative> all;
  for (std::size_t i = 0; i < query.sizes.size(); ++i) {
    auto other = i == 0 ? Result<ServeQuery>(query) : read_serve_query(request, context, i);
    if (!other) continue;
    bind(*other);
    auto there = i == 0 ? Result<search::ServingSearch>(found) : search_as_measured(*other);
    if (there && there->fits) all.push_back({*std::move(other), std::move(there)});
  }
  const bool priced = std::all_of(all.begin(), all.end(), [](const Alternative& a) {
    return hardware::newest_price(a.query.cluster.chip) != nullptr;
  });
  std::stable_sort(all.begin(), all.end(), [&](const Alternative& a, const Alternative& b) {
    return size_of(a.query, a.query.chips(), priced) < size_of(b.query, b.query.chips(), priced);
  });
  const Alternative* best = nullptr;
  Hertz most(-1.0);
  double least = HUGE_VAL;
  bool meets = false;
  for (Alternative& one : all) {
    bind(one.query);  // it has moved
    ASSAY_TRY(loaded, best_under_rate(one.query, *one.found));
    const bool this_meets = loaded.meets && one.found->best;
    const double size = size_of(one.query, one.query.all_chips(loaded.point.strategy), priced);
    if (this_meets ? size >= least : meets || loaded.most_requests <= most) continue;
    best = &one;
    most = loaded.most_requests;
    meets = this_meets;
    if (meets) least = size;
    if (meets && query.question.prefill_servers == 0.0) break;  // all others have more chips
  }
  const std::size_t sizes = query.sizes.size();
  if (best) {
    query = best->query;
    bind(query);
    found = *best->found;
  }
  query.notes.push_back(
      !best ? fmt::format("--on names {} clusters, and the model fits on none", sizes)
      : meets
          ? fmt::format(
                "--on names {} clusters: {} is the {} that serves {} requests per second{}; comparison shows all",
                sizes, query.cluster.text, priced ? "cheapest" : "smallest", human_number(query.rate->value()),
                query.choices.first_token || query.choices.per_token ? " within the latency limits" : "")
          : fmt::format("none of the {} clusters of --on serves {} requests per second within the latency limits: {} "
                        "serves the most, {}",
                        sizes, human_number(query.rate->value()), query.cluster.text, human_number(most.value())));
  return found;
}

}  // namespace

Result<search::ServingSearch> first_that_serves(ServeQuery& query, search::ServingSearch found, const Request& request,
                                                const Context& context) {
  if (query.sizes.empty()) return found;
  if (query.rate) return cheapest_under_load(query, std::move(found), request, context);
  for (std::size_t i = 1; i < query.sizes.size() && !found.best; ++i) {
    auto other = read_serve_query(request, context, i);
    if (!other) continue;
    bind(*other);
    auto there = search_as_measured(*other);
    if (!there || !there->best) continue;
    query = *std::move(other);
    found = *std::move(there);
    bind(query);
  }
  query.notes.push_back(
      fmt::format("--on names {} clusters: {} is {}", query.sizes.size(), query.cluster.text,
                  found.best ? "the first that meets the request; comparison shows all" : "the first"));
  return found;
}

}  // namespace assay::verbs::serve
