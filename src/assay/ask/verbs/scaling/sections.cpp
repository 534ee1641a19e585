#include "assay/ask/verbs/scaling/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/report/reader.h"
#include "assay/base/text.h"

namespace assay::verbs::scaling {
namespace {

/// Nothing where a value is not finite: JSON has no infinity.
report::Value finite(double v) { return std::isfinite(v) ? report::Value(v) : report::Value(); }

std::string_view name(roofline::Pass pass) { return pass == roofline::Pass::forward ? "forward" : "backward"; }

report::Items collective_rows(const std::vector<roofline::LayerCollective>& collectives) {
  return report::rows_of(collectives, [&](const roofline::LayerCollective& one) {
    return report::Members{
        {"pass", name(one.pass)}, {"collective", program::name(one.kind)},
        {"tensor", one.tensor},   {"over", program::name(one.over_fsdp ? program::Role::fsdp : program::Role::tensor)},
        {"bytes", one.bytes},     {"needed", one.needed}};
  });
}

report::Members pass_members(const ScalingQuery& query, const roofline::LayerRates<Plain>& rates,
                             const roofline::Split& split, roofline::WeightsAre scheme, roofline::Pass pass) {
  const Tokens batch = slice_batch(query);
  const roofline::LayerTimes<Plain> times = roofline::layer_times(Plain{}, rates, split, batch, scheme, pass);
  const auto collectives = roofline::layer_collectives(query.shape, split, batch, scheme);
  const std::int64_t of_pass = std::count_if(collectives.begin(), collectives.end(),
                                             [&](const roofline::LayerCollective& one) { return one.pass == pass; });
  const Seconds estimate = roofline::expected_layer_time(query.cluster.chip, times);
  const Flops flops =
      (pass == roofline::Pass::forward ? 1.0 : 2.0) * batch * roofline::layer_flops_per_token(Plain{}, query.shape);
  return {{"flops_per_chip", flops / split.chips()},
          {"collective_bytes", roofline::collective_bytes(collectives, pass)},
          {"collectives", of_pass},
          {"compute_time", times.compute},
          {"weight_time", times.weights},
          {"activation_time", times.activations},
          {"communication_time", times.communication},
          {"communication_in_series", times.communication_in_series},
          {"time", report::range(times.lower, estimate, times.upper)},
          {"ratio", finite(times.compute / times.communication)}};
}

/// What the batch means for a scheme: both passes and whether arithmetic takes longer in each.
void add_passes(report::Members& out, const ScalingQuery& query, const roofline::LayerRates<Plain>& rates,
                const roofline::Split& split, roofline::WeightsAre scheme) {
  if (!query.batch) return;
  bool bound = true;
  double worst = HUGE_VAL;
  for (roofline::Pass pass : {roofline::Pass::forward, roofline::Pass::backward}) {
    const roofline::LayerTimes<Plain> times =
        roofline::layer_times(Plain{}, rates, split, slice_batch(query), scheme, pass);
    bound = bound && times.compute >= times.communication;
    worst = std::min(worst, times.compute / times.communication);
  }
  out.emplace_back("compute_bound", bound);
  out.emplace_back("ratio", finite(worst));
  out.emplace_back("forward", pass_members(query, rates, split, scheme, roofline::Pass::forward));
  out.emplace_back("backward", pass_members(query, rates, split, scheme, roofline::Pass::backward));
  if (query.list)
    out.emplace_back("collectives",
                     collective_rows(roofline::layer_collectives(query.shape, split, slice_batch(query), scheme)));
}

}  // namespace

Result<SchemeLinks> scheme_links(const ScalingQuery& query) {
  SchemeLinks links;
  if (!query.slice.torus) {
    const roofline::Split all{query.slice_chips(), 1, 1}, wide{1, query.slice_chips(), 1};
    const auto node = static_cast<double>(std::min(query.slice.chips_per_node, query.slice.chips_per_slice));
    ASSAY_TRY(outer,
              roofline::place_split(query.slice, query.shape, query.peak, all, roofline::Counting::exact, "--on"));
    ASSAY_TRY(whole,
              roofline::place_split(query.slice, query.shape, query.peak, wide, roofline::Counting::exact, "--on"));
    // A cluster that nodes do not divide has no group of one node; its chips all stand in for it.
    links.weights = outer.weights;
    links.whole = links.activations = whole.activations;
    links.weights_text = links.activations_text = "all levels";
    if (auto inner = roofline::place_split(query.slice, query.shape, query.peak, {query.slice_chips() / node, node, 1},
                                           roofline::Counting::exact, "--on");
        inner && std::fmod(query.slice_chips(), node) == 0.0) {
      links.activations = inner->activations;
      links.activations_text = query.slice.levels.front().name;
    }
    return links;
  }
  std::vector<hardware::Axis> axes;
  for (const hardware::Axis& axis : query.slice.torus->axes)
    if (axis.size > 1) axes.push_back(axis);
  std::stable_sort(axes.begin(), axes.end(),
                   [](const hardware::Axis& a, const hardware::Axis& b) { return a.size > b.size; });
  const std::size_t count = axes.size();
  const auto names = [&](std::size_t wanted, bool longest) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < wanted; ++i) all.push_back(axes[longest ? i : count - 1 - i].name);
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto group = [&](const std::vector<std::string>& wanted) {
    return collective::make_group(query.slice, wanted, 1, "--on");
  };
  const auto pure = names(static_cast<std::size_t>(query.axes_fsdp.value_or(static_cast<std::int64_t>(count))), true);
  const auto inner = names(static_cast<std::size_t>(query.axes_tensor.value_or(1)), false);
  ASSAY_TRY(weights, group(pure));
  ASSAY_TRY(activations, group(inner));
  ASSAY_TRY(whole, group(query.axes_tensor ? inner : names(count, true)));
  links = {weights, activations, whole, join(pure, ","), join(inner, ","), std::nullopt};
  if (count < 2) return links;
  const auto outer_axes = static_cast<std::size_t>(
      query.axes_fsdp.value_or(static_cast<std::int64_t>(count) - query.axes_tensor.value_or(1)));
  const auto outer = names(std::max<std::size_t>(outer_axes, 1), true);
  ASSAY_TRY(fsdp_links, group(outer));
  links.mixed = SchemeLinks::Mixed{fsdp_links,
                                   activations,
                                   join(outer, ","),
                                   join(inner, ","),
                                   static_cast<double>(outer.size()),
                                   static_cast<double>(inner.size())};
  return links;
}

Tokens slice_batch(const ScalingQuery& query) {
  return query.batch.value_or(Tokens(0)) / static_cast<double>(query.cluster.slices);
}

roofline::LayerRates<Plain> rates_of(const ScalingQuery& query, const collective::CollectiveGroup& weights,
                                     const collective::CollectiveGroup& activations, roofline::Counting counting) {
  return roofline::layer_rates(Plain{}, query.shape, query.peak, {weights, activations}, counting);
}

Result<std::optional<roofline::PlacedSplit>> given_split(const ScalingQuery& query, const SchemeLinks& links) {
  if (!query.fsdp && !query.tensor && !query.pipeline) return std::optional<roofline::PlacedSplit>{};
  const auto pipeline = static_cast<double>(query.pipeline.value_or(1));
  const double rest = query.slice_chips() / pipeline;
  const double tensor = query.tensor ? static_cast<double>(*query.tensor)
                        : query.fsdp ? rest / static_cast<double>(*query.fsdp)
                                     : 1.0;
  const roofline::Split split{rest / tensor, tensor, pipeline};
  if (links.mixed && (query.axes_fsdp || query.axes_tensor)) {
    roofline::PlacedSplit assumed = roofline::assume_split(query.shape, query.peak, split, roofline::Counting::exact,
                                                           links.mixed->weights, links.mixed->activations);
    assumed.placed = fmt::format("assuming that fsdp has all of {} and tensor all of {}", links.mixed->weights_text,
                                 links.mixed->activations_text);
    return std::optional<roofline::PlacedSplit>(assumed);
  }
  ASSAY_TRY(placed,
            roofline::place_split(query.slice, query.shape, query.peak, split, roofline::Counting::exact, "--tp"));
  return std::optional<roofline::PlacedSplit>(placed);
}

report::Members data_parallel_section(const ScalingQuery& query, const SchemeLinks& links,
                                      roofline::WeightsAre scheme) {
  const double chips = query.slice_chips();
  const roofline::LayerRates<Plain> rates = rates_of(query, links.weights, links.activations);
  const roofline::LayerRates<Plain> rule =
      rates_of(query, links.weights, links.activations, roofline::Counting::approximate);
  const Tokens least = roofline::min_tokens_data_parallel(Plain{}, rates, scheme);
  const Tokens about = roofline::min_tokens_data_parallel(Plain{}, rule, scheme);
  const Bytes weights = roofline::layer_weight_bytes(Plain{}, query.shape);
  report::Members out{{"ways", whole(chips)},
                      {"links", links.weights_text},
                      {"bandwidth", weights / rates.gather},
                      {"approximate_bandwidth", weights / rule.gather},
                      {"intensity", query.peak.value / (weights / rule.gather)},
                      {"min_tokens_per_chip", least},
                      {"approximate_min_tokens_per_chip", about},
                      {"min_batch", chips * least},
                      {"approximate_min_batch", chips * about}};
  if (query.batch) {
    out.emplace_back("max_chips", *query.batch / least);
    if (const auto& up = query.cluster.chip.network.scale_up; up && up->pod) {
      double pod = 1;
      for (std::int64_t side : up->pod->value) pod *= static_cast<double>(side);
      out.emplace_back("max_pods", *query.batch / least / pod);
    }
    if (query.tokens && query.active)
      out.emplace_back("time_on_max_chips",
                       roofline::training_time(Plain{}, *query.active, *query.tokens, std::floor(*query.batch / least),
                                               query.peak, query.mfu));
  }
  add_passes(out, query, rates, {chips, 1, 1}, scheme);
  return out;
}

report::Members tensor_parallel_section(const ScalingQuery& query, const SchemeLinks& links) {
  const roofline::LayerRates<Plain> rule =
      rates_of(query, links.weights, links.activations, roofline::Counting::approximate);
  const Bytes token = query.shape.element * query.shape.d_model;
  const BytesPerSecond bandwidth = token / (0.5 * rule.exchange * Tokens(1));
  const double most = roofline::max_tensor_ways(Plain{}, rule);
  report::Members out{{"links", links.activations_text},
                      {"bandwidth", bandwidth},
                      {"intensity", query.peak.value / bandwidth},
                      {"max_ways", finite(most)}};
  if (std::isfinite(most)) {
    // Beyond the links of these ways other limits hold.
    const double group = query.slice.torus ? most : std::min(most, links.activations.devices);
    out.emplace_back("power_of_two_ways", whole(roofline::power_of_two_ways(group)));
  }
  if (query.tensor) {
    const auto ways = static_cast<double>(*query.tensor);
    out.emplace_back("ways", whole(ways));
    out.emplace_back("within_limit", ways <= most);
    out.emplace_back("min_width", query.shape.d_ff * ways / most);
  }
  if (query.batch) {
    report::Members wide{{"ways", whole(query.slice_chips())}};
    add_passes(wide, query, rates_of(query, links.weights, links.whole), {1, query.slice_chips(), 1},
               roofline::WeightsAre::sharded);
    out.emplace_back("over_all_chips", std::move(wide));
  }
  return out;
}

report::Members mixed_section(const ScalingQuery& query, const SchemeLinks::Mixed& links, const SchemeLinks& all) {
  const double chips = query.slice_chips();
  const roofline::LayerRates<Plain> rates =
      rates_of(query, links.weights, links.activations, roofline::Counting::approximate);
  const Tokens least = roofline::min_tokens_mixed(Plain{}, rates);
  const Tokens pure = roofline::min_tokens_data_parallel(Plain{}, rates_of(query, all.weights, all.activations),
                                                         roofline::WeightsAre::sharded);
  report::Members out{{"fsdp_links", links.weights_text},
                      {"tensor_links", links.activations_text},
                      {"axes_product", whole(links.weights_axes * links.activations_axes)},
                      {"min_tokens_per_chip", least},
                      {"min_batch", chips * least},
                      {"min_tokens_without_overlap", 4.0 * least},
                      {"min_batch_without_overlap", chips * 4.0 * least},
                      {"gain_over_fsdp", pure / least}};
  if (!query.batch) return out;
  const Tokens batch = slice_batch(query);
  const roofline::MixedSplit split = roofline::best_mixed_split(rates, batch, chips);
  out.emplace_back("fsdp", split.fsdp);
  out.emplace_back("tensor", split.tensor);
  out.emplace_back("rounded_fsdp", whole(split.rounded_fsdp));
  out.emplace_back("rounded_tensor", whole(split.rounded_tensor));
  out.emplace_back("ratio", roofline::mixed_ratio(rates, batch / chips));
  out.emplace_back("compute_bound", batch / chips >= least);
  out.emplace_back("margin", (batch / chips) / least);
  return out;
}

report::Members split_section(const ScalingQuery& query, const roofline::PlacedSplit& split) {
  const double inner = split.split.tensor * split.split.pipeline;
  report::Members out{{"fsdp", whole(split.split.fsdp)},
                      {"tensor", whole(split.split.tensor)},
                      {"pipeline", whole(split.split.pipeline)}};
  if (!split.placed.empty()) out.emplace_back("placed", split.placed);
  out.emplace_back("model_parallel_ways", whole(inner));
  if (split.split.fsdp > 1.0) {
    const roofline::LayerRates<Plain> rule =
        rates_of(query, split.weights, split.activations, roofline::Counting::approximate);
    out.emplace_back("bandwidth", inner * roofline::layer_weight_bytes(Plain{}, query.shape) / rule.gather);
    out.emplace_back("min_tokens_per_chip",
                     roofline::min_tokens_data_parallel(Plain{}, split.rates, roofline::WeightsAre::sharded) / inner);
    out.emplace_back("approximate_min_tokens_per_chip",
                     roofline::min_tokens_data_parallel(Plain{}, rule, roofline::WeightsAre::sharded) / inner);
  }
  const auto least = split.min_batch();
  out.emplace_back("min_batch", least);
  add_passes(out, query, split.rates, split.split, roofline::WeightsAre::sharded);
  return out;
}

report::Members slices_section(const ScalingQuery& query, const collective::CollectiveGroup& between) {
  const double chips = query.slice_chips();
  const auto per_slice = [&](roofline::Counting counting) {
    return chips * roofline::min_tokens_data_parallel(Plain{}, rates_of(query, between, between, counting),
                                                      roofline::WeightsAre::replicated);
  };
  const Tokens least = per_slice(roofline::Counting::exact);
  report::Members out{{"slices", query.cluster.slices},
                      {"bandwidth_per_chip", between.levels.front().chip_bandwidth},
                      {"min_tokens_per_slice", least},
                      {"approximate_min_tokens_per_slice", per_slice(roofline::Counting::approximate)}};
  if (query.batch) {
    out.emplace_back("tokens_per_slice", slice_batch(query));
    out.emplace_back("compute_bound", slice_batch(query) >= least);
  }
  return out;
}

report::Members expert_section(const ScalingQuery& query, const collective::CollectiveGroup& group) {
  const auto ways = static_cast<double>(*query.expert);
  const roofline::ExpertTimes<Plain> times = roofline::expert_times(Plain{}, query.shape, query.peak, group, ways);
  report::Members out{{"ways", whole(ways)},
                      {"experts_per_chip", query.shape.experts / ways},
                      {"nodes", whole(std::ceil(ways / static_cast<double>(query.cluster.chips_per_node)))},
                      {"ratio", finite(times.compute / times.communication)},
                      {"compute_bound", times.compute >= times.communication},
                      {"min_width", times.min_width}};
  if (!group.torus())
    out.emplace_back("wide_min_width", roofline::wide_expert_width(query.shape, query.peak.value, group));
  if (query.batch) {
    const Tokens tokens = *query.batch * (ways / query.chips());
    out.emplace_back("compute_time", tokens * times.compute);
    out.emplace_back("communication_time", tokens * times.communication);
  }
  return out;
}

report::Items level_rows(const ScalingQuery& query, const roofline::PlacedSplit& split) {
  return report::rows_of(
      roofline::level_thresholds(query.slice, query.shape, split), [&](const roofline::LevelThresholds& level) {
        const hardware::Level& physical = query.slice.levels[level.level];
        report::Members row{{"name", physical.name}, {"chips", physical.chips}};
        if (level.data_parallel) {
          row.emplace_back("bandwidth", level.data_parallel->bandwidth);
          row.emplace_back("min_tokens_per_chip", level.data_parallel->min_tokens);
          row.emplace_back("approximate_min_tokens_per_chip", level.data_parallel->approximate_min_tokens);
        }
        row.emplace_back("approximate_max_tensor", level.approximate_max_tensor);
        row.emplace_back("max_tensor", level.max_tensor);
        return row;
      });
}

report::Items split_rows(const ScalingQuery& query, const std::vector<roofline::PlacedSplit>& splits) {
  const Tokens batch = slice_batch(query);
  return report::rows_of(splits, [&](const roofline::PlacedSplit& split) {
    const roofline::LayerTimes<Plain> times = roofline::forward_times(split, batch);
    const roofline::LayerTimes<Plain> backward = roofline::layer_times(
        Plain{}, split.rates, split.split, batch, roofline::WeightsAre::sharded, roofline::Pass::backward);
    const auto least = split.min_batch();
    const bool computes = times.compute >= times.communication;
    return report::Members{{"fsdp", whole(split.split.fsdp)},
                           {"tensor", whole(split.split.tensor)},
                           {"compute_time", times.compute},
                           {"weight_time", times.weights},
                           {"activation_time", times.activations},
                           {"ratio", finite(times.compute / times.communication)},
                           {"backward_ratio", finite(backward.compute / backward.communication)},
                           {"layer_time", roofline::layer_lower(split, batch)},
                           {"limiter", computes                            ? "compute"
                                       : times.weights > times.activations ? "weights"
                                                                           : "activations"},
                           {"min_batch", least}};
  });
}

namespace {

/// One test; left out where the answer lacks what it compares.
struct Test {
  std::string_view name;
  const report::Value *have, *limit;
  bool at_most = false;  ///< what there is must not exceed what is needed
  std::string holds, fails;
};

}  // namespace

report::Items walk_rows(const report::Members& results) {
  const report::Reader read(results);
  const report::Items& splits = read.rows("splits");
  const report::Value* least = splits.empty() ? nullptr : splits.front().find("min_batch");
  const std::string split = fmt::format("FSDP {} x tensor {}", read.text("best.fsdp"), read.text("best.tensor"));
  const bool one_sequence = read.has("sequences");
  const Test tests[] = {
      {"weights and optimizer states fit on one chip", read.at("memory.replicated.bytes_per_chip"),
       read.at("memory.capacity"), true, "each chip may keep a copy of the model", "states have to be sharded"},
      {"a sequence for every chip", read.at("sequences"), read.at("chips"), false, "chips need not share sequences",
       "chips have to share sequences: split them, or use tensor or pipeline parallelism"},
      {"FSDP over all chips: tokens per chip", read.at("tokens_per_chip"), read.at("fsdp.min_tokens_per_chip"), false,
       one_sequence && read.truth("a_sequence_for_every_chip") ? "FSDP alone is enough"
                                                               : "FSDP alone would be compute-bound",
       "FSDP alone is limited by the network"},
      {"tensor parallelism over all chips: ways", read.at("chips"), read.at("tensor_parallel.max_ways"), true,
       "tensor parallelism alone is compute-bound", "tensor parallelism alone is limited by the network"},
      {"FSDP and tensor parallelism: tokens per chip", read.at("tokens_per_chip"), read.at("mixed.min_tokens_per_chip"),
       false, "both together are compute-bound on ideal axes", "no mix of both is compute-bound"},
      {"the best split on the real axes: batch", read.at("batch"), least, false, split + " is compute-bound",
       split + " is the best, and limited by the network"},
      {"across slices: tokens per slice", read.at("across_slices.tokens_per_slice"),
       read.at("across_slices.min_tokens_per_slice"), false, "slices may be joined by data parallelism",
       "the network between slices limits"},
      {"everything sharded fits", read.at("memory.sharded.bytes_per_chip"), read.at("memory.capacity"), true, "it fits",
       "more chips are needed"}};
  report::Items rows;
  for (const Test& test : tests) {
    if (!test.have || !test.limit) continue;
    const auto have = report::numeric(*test.have), limit = report::numeric(*test.limit);
    const bool holds = limit && (test.at_most ? *have <= *limit : *have >= *limit);  // no limit: nothing is enough
    rows.emplace_back(report::Members{{"test", test.name},
                                      {"have", *test.have},
                                      {"must_be", test.at_most ? "at most" : "at least"},
                                      {"limit", *test.limit},
                                      {"holds", holds},
                                      {"so", holds ? test.holds : test.fails}});
  }
  return rows;
}

}  // namespace assay::verbs::scaling
