#include "assay/ask/verbs/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"

namespace assay::verbs::serve {
namespace {

/// Every choice as the point makes it.
search::ServingChoices fixed_choices(const ServeQuery& query, const serving::ServingPoint& point) {
  const serving::ServingStrategy& s = point.strategy;
  search::ServingChoices out;
  out.refuses = query.choices.refuses;
  out.first_token = query.choices.first_token;
  out.per_token = query.choices.per_token;
  out.tensor = s.tensor;
  out.second = s.second;
  out.pipeline = s.pipeline;
  out.expert = s.expert;
  out.data = s.data;
  out.expert_over = s.expert_over;
  out.cache = s.scheme.cache;
  out.weights = s.scheme.weights;
  out.batch = static_cast<std::int64_t>(point.batch);
  return out;
}

using ServingOpening = void (*)(search::ServingChoices&);
constexpr ServingOpening serving_openings[] = {
    [](search::ServingChoices& c) { c.batch.reset(); },
    [](search::ServingChoices& c) { c.tensor.reset(), c.data.reset(); },
    [](search::ServingChoices& c) { c.pipeline.reset(), c.data.reset(); },
    [](search::ServingChoices& c) { c.tensor.reset(), c.pipeline.reset(); },
    [](search::ServingChoices& c) { c.expert.reset(), c.expert_over.reset(); },
    [](search::ServingChoices& c) { c.cache.reset(); },
};

std::string change_of(const serving::ServingPoint& from, const serving::ServingPoint& to) {
  std::string out;
  const auto add = [&](std::string_view option, const auto& before, const auto& after) {
    if (before != after) out += fmt::format("{}--{} {}", out.empty() ? "" : " ", option, after);
  };
  const serving::ServingStrategy &a = from.strategy, &b = to.strategy;
  add("batch", from.batch, to.batch);
  add("dp", a.data, b.data);
  add("tp", a.tensor, b.tensor);
  add("pp", a.pipeline, b.pipeline);
  add("ep", a.expert, b.expert);
  if (b.expert > 1) add("ep-over", expert_axes(a), expert_axes(b));
  add("cache", cache_name(a.scheme.cache), cache_name(b.scheme.cache));
  return out;
}

/// A change that may help, as an option or in words, and the question then.
struct WhatIf {
  std::string change;
  ServeQuery query;
  search::ServingChoices choices;
  std::optional<Request> request;  ///< that asks so; nothing where a cluster's own figures cannot be set
  bool same_chips = false;         ///< what kernels take on them does not change
};

/// Faster hardware of the same kind, and the figures of the chip that say so.
struct FasterPart {
  std::string_view text;
  void (*scale)(hardware::Cluster&);
  std::vector<std::string> (*figures)(const hardware::Chip&);
  bool is_network = false;
};
constexpr double twice = 2.0;

template <class Q>
std::string doubled(std::string_view key, const Q& quantity) {
  return fmt::format("{}={}{}", key, exact_number(twice * quantity.value()), base_unit(Q::dim));
}

constexpr FasterPart faster_parts[] = {
    {"twice the memory bandwidth",
     [](hardware::Cluster& c) {
       if (auto& hbm = c.chip.memory.front().bandwidth) hbm->value = twice * hbm->value;
     },
     [](const hardware::Chip& chip) {
       return std::vector{doubled("memory.hbm.bandwidth", chip.hbm().bandwidth->value)};
     }},
    {"twice the matrix rate",
     [](hardware::Cluster& c) {
       for (auto& peak : c.chip.peak)
         if (peak) peak->value = twice * peak->value;
     },
     [](const hardware::Chip& chip) {
       std::vector<std::string> out;
       for (const DtypeFacts& dtype : all_dtypes())
         if (const auto& peak = chip.peak[static_cast<std::size_t>(dtype.dtype)])
           out.push_back(doubled(fmt::format("peak.{}", dtype.name), peak->value));
       return out;
     }},
    {"twice the network bandwidth",
     [](hardware::Cluster& c) {
       for (hardware::Level& level : c.levels) {
         level.child_bandwidth = twice * level.child_bandwidth;
         level.chip_bandwidth = twice * level.chip_bandwidth;
       }
       if (auto& up = c.chip.network.scale_up; up && c.torus)
         up->link_bandwidth.value = twice * up->link_bandwidth.value;
     },
     [](const hardware::Chip& chip) {
       std::vector<std::string> out;
       if (const auto& up = chip.network.scale_up)
         out.push_back(doubled("network.scale_up.link_bandwidth", up->link_bandwidth.value));
       if (const auto& beyond = chip.network.scale_out) {
         out.push_back(doubled("network.scale_out.bandwidth", beyond->bandwidth.value));
         for (const hardware::FabricLevel& level : beyond->levels)
           out.push_back(
               doubled(fmt::format("network.scale_out.level.{}.bandwidth", level.name), level.bandwidth.value));
       }
       return out;
     },
     true},
};

/// The request with these figures of the chip, if it then means such a cluster.
std::optional<Request> request_of(const Request& request, const Context& context, const hardware::Cluster& cluster,
                                  const std::vector<std::string>& figures) {
  Request out = request.with("on", cluster.text);
  for (const std::string& figure : figures) out = out.with_more("set", figure);
  const auto overrides = overrides_of(out);
  if (!overrides) return std::nullopt;
  const auto same = hardware::parse_cluster(cluster.text, context.catalogue, "--on", *overrides);
  if (!same || same->levels.size() != cluster.levels.size()) return std::nullopt;
  for (std::size_t i = 0; i < cluster.levels.size(); ++i)
    if (same->levels[i].child_bandwidth != cluster.levels[i].child_bandwidth ||
        same->levels[i].chip_bandwidth != cluster.levels[i].chip_bandwidth)
      return std::nullopt;
  return out;
}

/// The options by which the formats of a question differ.
std::vector<std::pair<std::string_view, std::string_view>> format_options(const ServeQuery& from,
                                                                          const ServeQuery& to) {
  const lower::Formats &a = from.question.setup.formats, &b = to.question.setup.formats;
  std::vector<std::pair<std::string_view, std::string_view>> out;
  if (a.most() != b.most()) out.emplace_back("weights", name(b.most().dtype));
  if (a.kv_cache != b.kv_cache) out.emplace_back("kv", name(b.kv_cache));
  if (from.compute != to.compute) out.emplace_back("compute", name(to.compute));
  return out;
}

/// Weights and cache in the next narrower format that the chip has; the cache alone where weights are narrow already.
void add_narrower(const Request& request, const Context& context, const ServeQuery& query,
                  const search::ServingChoices& same, std::vector<WhatIf>& out) {
  const lower::Formats& formats = query.question.setup.formats;
  const auto add = [&](ServeQuery narrower) {
    std::string change;
    Request asked = request;
    for (const auto& [option, format] : format_options(query, narrower)) {
      change += fmt::format("{}--{} {}", change.empty() ? "" : " ", option, format);
      asked = asked.with(option, std::string(format));
    }
    if (!change.empty()) out.push_back({std::move(change), std::move(narrower), same, std::move(asked)});
  };
  const int bits = facts(formats.most().dtype).bits;
  if (bits <= 8 && facts(formats.kv_cache).bits > 8) {
    ServeQuery narrower = query;
    narrower.question.setup.formats.kv_cache = search::narrow_format(query.cluster.chip, 8);
    add(std::move(narrower));
  }
  if (bits <= 4) return;
  const Dtype format = search::narrow_format(query.cluster.chip, bits > 8 ? 8 : 4);
  if (auto narrower = on_other_cluster(query, query.cluster, request, context, format)) add(*std::move(narrower));
}

/// The same plan over twice the chips of a slice that exists.
void add_larger(const Request& request, const Context& context, const ServeQuery& query,
                const search::ServingChoices& same, std::vector<WhatIf>& out) {
  const search::SliceQuestion slices = slice_question(query, request, context);
  for (const search::SliceSize& slice : search::slice_sizes(query.cluster.chip)) {
    if (slice.chips != 2 * query.cluster.chips()) continue;
    const auto cluster = slices.cluster_of(slice);
    if (!cluster) continue;
    auto larger = on_other_cluster(query, *cluster, request, context);
    if (!larger) continue;
    for (std::optional<std::int64_t> search::ServingChoices::*axis :
         {&search::ServingChoices::tensor, &search::ServingChoices::pipeline}) {
      search::ServingChoices choices = same;
      choices.*axis = 2 * *(choices.*axis);
      const std::string on = slice_text(query, slice);
      out.push_back({"--on " + on, *larger, choices, request.with("on", on), true});
    }
    return;
  }
}

}  // namespace

Result<report::Items> change_rows(const Request& request, const ServeQuery& query, const serving::ServingPoint& given) {
  struct Better {
    std::string change;
    serving::ServingPoint point;
  };
  std::vector<Better> better;
  for (const ServingOpening open : serving_openings) {
    search::ServingChoices choices = fixed_choices(query, given);
    open(choices);
    const auto found = search::search_serving(query.question, query.cluster, choices);
    if (!found || !found->best ||
        !(found->best->served.tokens_per_second > given.served.tokens_per_second * (1.0 + 1e-6)))
      continue;
    std::string change = change_of(given, *found->best);
    const bool known = std::any_of(better.begin(), better.end(), [&](const Better& b) { return b.change == change; });
    if (!known && !change.empty()) better.push_back({std::move(change), *found->best});
  }
  std::stable_sort(better.begin(), better.end(), [](const Better& a, const Better& b) {
    return a.point.served.tokens_per_second > b.point.served.tokens_per_second;
  });
  return report::rows_of(better, [&](const Better& one) {
    report::Members row{{"change", one.change},
                        {"tokens_per_second", one.point.served.tokens_per_second},
                        {"gain", one.point.served.tokens_per_second / given.served.tokens_per_second - 1.0},
                        {"time_per_token", one.point.served.per_token},
                        {"time_to_first_token", one.point.prefill.estimate}};
    add_plan(request, query, one.point, row);
    return row;
  });
}

Result<report::Items> help_rows(const Request& request, const Context& context, const ServeQuery& query,
                                const serving::ServingPoint& given, serving::KnownProfiles* profiles) {
  search::ServingChoices same = fixed_choices(query, given);
  same.cache_by_heads = given.strategy.cache_ways > 1;
  const bool is_batch_given = query.choices.batch.has_value();
  if (!is_batch_given) same.batch.reset();
  std::vector<WhatIf> all;
  add_narrower(request, context, query, same, all);
  for (const FasterPart& part : faster_parts) {
    if (part.is_network && query.cluster.chips() == 1) continue;
    hardware::Cluster cluster = query.cluster;
    part.scale(cluster);
    if (auto faster = on_other_cluster(query, cluster, request, context))
      all.push_back({std::string(part.text), *std::move(faster), same,
                     request_of(request, context, cluster, part.figures(query.cluster.chip)), part.is_network});
  }
  add_larger(request, context, query, same, all);
  if (query.choices.batch) {
    search::ServingChoices more = same;
    more.batch = 2 * *same.batch;
    all.push_back({fmt::format("--batch {}", *more.batch), query, more, request, true});
  }
  struct Help {
    const WhatIf* of;
    serving::ServingPoint point;
    double output_gain, time_gain;
  };
  std::vector<Help> helps;
  for (WhatIf& one : all) {
    bind(one.query);
    const auto found = search::search_serving(one.query.question, one.query.cluster, one.choices,
                                              search::ServingGoal::best, one.same_chips ? profiles : nullptr);
    if (!found || !found->best) continue;
    const serving::ServedRate &now = given.served, &then = found->best->served;
    const TokensPerSecond output = then.tokens_per_second / one.query.chips(),
                          before = now.tokens_per_second / query.chips();
    Help help{&one, *found->best, output / before - 1.0, 1.0 - then.per_token / now.per_token};
    const auto known =
        std::find_if(helps.begin(), helps.end(), [&](const Help& h) { return h.of->change == one.change; });
    const auto gain = [&](const Help& h) { return is_batch_given ? h.time_gain : h.output_gain; };
    if (known == helps.end())
      helps.push_back(std::move(help));
    else if (gain(help) > gain(*known))
      *known = std::move(help);
  }
  std::stable_sort(helps.begin(), helps.end(), [&](const Help& a, const Help& b) {
    return is_batch_given ? a.time_gain > b.time_gain : a.output_gain > b.output_gain;
  });
  return report::rows_of(helps, [&](const Help& help) {
    report::Members row{{"change", help.of->change},
                        {"chips", help.of->query.chips()},
                        {"tokens_per_second", help.point.served.tokens_per_second},
                        {"output_gain", help.output_gain},
                        {"time_per_token", help.point.served.per_token},
                        {"time_gain", help.time_gain},
                        {"time_to_first_token", help.point.prefill.estimate},
                        {"strategy", strategy_text(help.point.strategy)}};
    add_plan(help.of->request, help.of->query, help.point, row);
    return row;
  });
}

}  // namespace assay::verbs::serve
