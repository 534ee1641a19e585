// assay scaling: how far data, tensor, expert and pipeline parallelism go before the network limits them.
#include "assay/predict/roofline/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/scaling/scaling.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/predict/collective/placement.h"

namespace assay::verbs::scaling {
namespace {

using Query = ScalingQuery;

report::Members layer_section(const Query& query) {
  report::Members out{{"d_model", whole(query.shape.d_model)},
                      {"d_ff", whole(query.shape.d_ff)},
                      {"matrices", whole(query.shape.matrices)}};
  out.emplace_back("width_over_model", query.shape.d_ff / query.shape.d_model);
  if (query.shape.experts > 1.0) {
    out.emplace_back("experts", whole(query.shape.experts));
    out.emplace_back("experts_per_token", whole(query.shape.experts_per_token));
    if (query.shape.shared > 0.0) out.emplace_back("shared_experts", query.shape.shared);
    out.emplace_back("sparsity", query.shape.experts / query.shape.experts_per_token);
  }
  out.emplace_back("flops_per_token", roofline::layer_flops_per_token(Plain{}, query.shape) * Tokens(1));
  out.emplace_back("weight_bytes", roofline::layer_weight_bytes(Plain{}, query.shape));
  if (query.parameters && query.layers > 0.0)
    out.emplace_back(
        "share_of_parameters",
        query.layers * (roofline::layer_weight_bytes(Plain{}, query.shape) / query.shape.element) / *query.parameters);
  if (query.attention_per_key > Flops())
    out.emplace_back("attention_dominates_from",
                     roofline::attention_crossover(query.shape, query.attention_params, query.attention_per_key));
  return out;
}

roofline::TrainingMemory memory_need(const Query& query) {
  return roofline::training_memory({query.parameters.value_or(0.0), query.state, query.layers,
                                    query.batch.value_or(Tokens(0)), query.kept, query.shape.element});
}

report::Members memory_section(const Query& query) {
  const Bytes each = roofline::bytes_per_parameter(Plain{}, query.state),
              capacity = query.cluster.chip.hbm().capacity.value;
  report::Members out{{"bytes_per_parameter", each},
                      {"capacity", capacity},
                      {"capacity_of_all", query.chips() * capacity},
                      {"largest_replicated_model", static_cast<std::int64_t>(capacity / each)}};
  const auto add_kept = [&](Bytes saved) {
    if (!(saved > Bytes(0))) return;
    out.emplace_back("kept_per_layer", query.kept_text);
    out.emplace_back("kept_activations", saved);
  };
  const roofline::TrainingMemory need = memory_need(query);
  if (!query.parameters) {
    add_kept(need.saved);
    return out;
  }
  const double model_ways = static_cast<double>(query.tensor.value_or(1) * query.pipeline.value_or(1));
  const double least = need.min_chips(capacity);
  const Bytes replicated = need.state / model_ways;
  out.emplace_back("parameter_bytes", *query.parameters * query.state.parameters);
  out.emplace_back("optimizer_bytes", *query.parameters * (each - query.state.parameters));
  out.emplace_back("state", need.state);
  add_kept(need.saved);
  out.emplace_back("total", need.total());
  out.emplace_back("replicated", report::Members{{"bytes_per_chip", replicated}, {"fits", replicated <= capacity}});
  out.emplace_back("sharded", report::Members{{"bytes_per_chip", need.total() / query.chips()},
                                              {"fits", need.total() / query.chips() <= capacity}});
  out.emplace_back("min_chips", whole(least));
  out.emplace_back("min_nodes", whole(std::ceil(least / static_cast<double>(query.cluster.chips_per_node))));
  return out;
}

report::Members training_section(const Query& query) {
  const double active = *query.active;
  const auto time = [&](Tokens tokens, double chips, double mfu) {
    return roofline::training_time(Plain{}, active, tokens, chips, query.peak, mfu);
  };
  report::Members out{{"parameters", whole(*query.parameters)}};
  if (active != *query.parameters) out.emplace_back("active_parameters", whole(active));
  out.emplace_back("flops_per_token", roofline::training_flops(Plain{}, active, Tokens(1)));
  out.emplace_back("token_time_on_one_chip", time(Tokens(1), 1.0, query.mfu));
  out.emplace_back("mfu", query.mfu);
  out.emplace_back("flops_per_second", query.chips() * query.mfu * query.peak.value);
  if (query.batch) out.emplace_back("step_time", time(*query.batch, query.chips(), query.mfu));
  if (!query.tokens) return out;
  const Seconds run = time(*query.tokens, query.chips(), query.mfu);
  out.emplace_back("tokens", *query.tokens);
  out.emplace_back("flops", roofline::training_flops(Plain{}, active, *query.tokens));
  out.emplace_back("time", run);
  out.emplace_back("time_on_one_chip", time(*query.tokens, 1.0, query.mfu));
  const double least = memory_need(query).min_chips(query.cluster.chip.hbm().capacity.value);
  out.emplace_back("time_on_min_chips", time(*query.tokens, least, query.mfu));
  return out;
}

/// The same query on another number of chips.
Result<Query> with_chips(const Query& query, double chips, const Request& request, const Context& context) {
  Query other = query;
  ASSAY_TRY(overrides, overrides_of(request));
  const std::string text = fmt::format("{}:{}", query.cluster.chip.id, static_cast<std::int64_t>(chips));
  ASSAY_TRY(cluster, hardware::parse_cluster(text, context.catalogue, "--vary", overrides));
  other.cluster = other.slice = cluster;
  return other;
}

/// Weak scaling: tokens per chip stay as on the first cluster of the sweep, so the batch grows with the chips.
Result<void> add_weak_scaling(const Query& query, const Query& at, double pipeline, report::Members& row) {
  Query grown = at;
  grown.batch = *query.batch * (at.chips() / query.sweep->values.front());
  const auto fastest = roofline::fastest_split(grown.slice, grown.shape, grown.peak, pipeline, slice_batch(grown));
  if (!fastest) return fail("--vary", fmt::format("no split can be placed on {}", at.cluster.text), "");
  row.emplace_back("weak_batch", *grown.batch);
  row.emplace_back("weak_fsdp", whole(fastest->split.split.fsdp));
  row.emplace_back("weak_tensor", whole(fastest->split.split.tensor));
  row.emplace_back("weak_time", fastest->times.lower);
  row.emplace_back("weak_efficiency", roofline::efficiency_of(fastest->times));
  row.emplace_back("weak_limiter", roofline::limiter_of(fastest->times));
  return {};
}

Result<report::Items> sweep_rows(const Query& query, const SchemeLinks& links, const Request& request,
                                 const Context& context) {
  report::Items rows;
  const double pipeline = static_cast<double>(query.pipeline.value_or(1));
  const bool over_batch = query.sweep->name == "batch";
  const roofline::LayerRates<Plain> pure = rates_of(query, links.weights, links.activations);
  for (double value : query.sweep->values) {
    Query at = query;
    std::optional<roofline::FastestSplit> fastest;
    report::Members row;
    if (over_batch) {
      at.batch = Tokens(value);
      row.emplace_back("batch", *at.batch);
    } else if (query.sweep->name == "chips") {
      ASSAY_SET(at, with_chips(query, value, request, context));
      row.emplace_back("cluster", at.cluster.text);
      row.emplace_back("chips", at.cluster.chips());
    } else {
      const double rest = query.slice_chips() / pipeline;
      if (std::fmod(rest, value) != 0.0)
        return fail("--vary", fmt::format("{} ways do not divide {} chips", value, rest), "vary by divisors");
      ASSAY_TRY(placed, roofline::place_split(query.slice, query.shape, query.peak, {rest / value, value, pipeline},
                                              roofline::Counting::exact, "--vary"));
      fastest = roofline::FastestSplit{placed, roofline::forward_times(placed, slice_batch(at))};
    }
    if (!fastest) fastest = roofline::fastest_split(at.slice, at.shape, at.peak, pipeline, slice_batch(at));
    if (!fastest) return fail("--vary", fmt::format("no split can be placed on {}", at.cluster.text), "");
    const roofline::LayerTimes<Plain>& times = fastest->times;
    row.emplace_back("tokens_per_chip", *at.batch / at.chips());
    if (over_batch) {
      const double chips = query.slice_chips();
      const roofline::LayerTimes<Plain> fsdp = roofline::layer_times(
          Plain{}, pure, {chips, 1, 1}, slice_batch(at), roofline::WeightsAre::sharded, roofline::Pass::forward);
      row.emplace_back("fsdp_ratio", fsdp.compute / fsdp.communication);
      if (links.mixed)
        row.emplace_back("mixed_ratio",
                         roofline::mixed_ratio(rates_of(query, links.mixed->weights, links.mixed->activations,
                                                        roofline::Counting::approximate),
                                               slice_batch(at) / chips));
    }
    row.emplace_back("fsdp", whole(fastest->split.split.fsdp));
    row.emplace_back("tensor", whole(fastest->split.split.tensor));
    row.emplace_back("compute_time", times.compute);
    row.emplace_back("communication_time", times.communication);
    row.emplace_back("time", times.lower);
    row.emplace_back("efficiency", roofline::efficiency_of(times));
    row.emplace_back("limiter", roofline::limiter_of(times));
    if (query.sweep->name == "chips") ASSAY_CHECK(add_weak_scaling(query, at, pipeline, row));
    if (query.active && query.tokens)
      row.emplace_back("training_time",
                       roofline::training_time(Plain{}, *query.active, *query.tokens,
                                               at.chips() * roofline::efficiency_of(times), at.peak, at.mfu));
    rows.emplace_back(std::move(row));
  }
  return rows;
}

void explain(const Query& query, const SchemeLinks& links, const std::optional<roofline::PlacedSplit>& given,
             const std::optional<collective::CollectiveGroup>& experts, report::Response& response) {
  const Traced num{&response.ledger};
  const collective::CollectiveLabels labels = collective::collective_labels(query.slice);
  auto& roots = response.derived;
  if (query.slice_chips() > 1) {
    const auto pure = roofline::layer_rates(num, query.shape, query.peak, {links.weights, links.activations},
                                            roofline::Counting::exact, &labels);
    roots.push_back(roofline::min_tokens_data_parallel(num, pure, roofline::WeightsAre::sharded).id);
    roots.push_back(roofline::min_tokens_data_parallel(num, pure, roofline::WeightsAre::replicated).id);
    const auto rule = roofline::layer_rates(num, query.shape, query.peak, {links.weights, links.activations},
                                            roofline::Counting::approximate, &labels);
    roots.push_back(roofline::max_tensor_ways(num, rule).id);
  }
  if (links.mixed) {
    const auto mixed =
        roofline::layer_rates(num, query.shape, query.peak, {links.mixed->weights, links.mixed->activations},
                              roofline::Counting::approximate, &labels);
    roots.push_back(roofline::min_tokens_mixed(num, mixed).id);
    if (query.batch)
      roots.push_back(roofline::best_fsdp_squared(num, mixed, slice_batch(query), query.slice_chips()).id);
  }
  if (given && query.batch) {
    const auto rates = roofline::layer_rates(num, query.shape, query.peak, {given->weights, given->activations},
                                             roofline::Counting::exact, &labels);
    roots.push_back(roofline::layer_times(num, rates, given->split, slice_batch(query), roofline::WeightsAre::sharded,
                                          roofline::Pass::forward)
                        .lower.id);
  }
  if (experts)
    roots.push_back(
        roofline::expert_times(num, query.shape, query.peak, *experts, static_cast<double>(*query.expert), &labels)
            .min_width.id);
  if (query.pipeline && query.micro_batches)
    roots.push_back(roofline::pipeline_bubble(num, static_cast<double>(*query.pipeline),
                                              static_cast<double>(*query.micro_batches),
                                              static_cast<double>(query.chunks))
                        .id);
  roots.push_back(roofline::bytes_per_parameter(num, query.state).id);
  if (query.parameters && query.batch && query.layers > 0.0)
    roots.push_back(roofline::checkpoint_bytes(num, query.layers, *query.batch, query.kept, query.shape.element).id);
  if (query.active && query.tokens)
    roots.push_back(
        roofline::training_time(num, *query.active, *query.tokens, query.chips(), query.peak, query.mfu).id);
}

std::string headline(const Query& query, const SchemeLinks& links, const std::vector<roofline::PlacedSplit>& splits) {
  if (query.slice_chips() <= 1) return fmt::format("{} is one chip: there is nothing to share", query.cluster.text);
  const roofline::LayerRates<Plain> pure = rates_of(query, links.weights, links.activations);
  const roofline::LayerRates<Plain> rule =
      rates_of(query, links.weights, links.activations, roofline::Counting::approximate);
  std::string text = fmt::format(
      "FSDP is compute-bound from {} tokens per chip, tensor parallelism up to {} ways",
      human_number(
          std::round(roofline::min_tokens_data_parallel(Plain{}, pure, roofline::WeightsAre::sharded).value())),
      human_number(std::floor(roofline::max_tensor_ways(Plain{}, rule) * 10.0) / 10.0));
  if (const double group = links.activations.devices;
      !query.slice.torus && group < roofline::max_tensor_ways(Plain{}, rule))
    text += fmt::format(" (its links join {})", human_number(group));
  if (links.mixed) {
    const auto both = rates_of(query, links.mixed->weights, links.mixed->activations, roofline::Counting::approximate);
    text += fmt::format(", both together from {} tokens per chip",
                        human_number(std::round(roofline::min_tokens_mixed(Plain{}, both).value())));
  }
  if (query.batch && !splits.empty()) {
    const roofline::PlacedSplit& best = splits.front();
    const auto least = best.min_batch();
    text += fmt::format("; {} tokens per chip are {} at best, with FSDP {} x TP {}",
                        human_number(std::round(query.batch->value() / query.chips())),
                        least && slice_batch(query) >= *least ? "compute-bound" : "network-bound",
                        human_number(best.split.fsdp), human_number(best.split.tensor));
  }
  return text;
}

/// What the answer keeps of the schemes for its picture, derivation and headline.
struct Schemes {
  SchemeLinks links;
  std::optional<roofline::PlacedSplit> given;          ///< by --fsdp, --tp and --pp
  std::vector<roofline::PlacedSplit> splits;           ///< of the batch on the real axes, the best first
  std::optional<collective::CollectiveGroup> experts;  ///< links of expert parallelism
};

void add_question(const Query& query, report::Members& out) {
  out.emplace_back("cluster", query.cluster.text);
  out.emplace_back("chips", query.cluster.chips());
  out.emplace_back("model", query.model);
  out.emplace_back("dtype", name(query.dtype));
  out.emplace_back("peak", report::Value(query.peak));
  out.emplace_back("layer", layer_section(query));
  if (!query.batch) return;
  out.emplace_back("batch", *query.batch);
  out.emplace_back("tokens_per_chip", *query.batch / query.chips());
  if (query.sequence > 0) {
    const double sequences = *query.batch / Tokens(static_cast<double>(query.sequence));
    out.emplace_back("sequences", sequences);
    out.emplace_back("a_sequence_for_every_chip", sequences >= query.chips());
  }
}

/// The splits of the batch on the real axes, and what limits the one that is taken.
void add_splits(const Query& query, const Schemes& schemes, report::Response& response) {
  report::Members& out = response.results;
  const auto& splits = schemes.splits;
  if (!splits.empty()) {
    report::Members best{{"fsdp", whole(splits.front().split.fsdp)}, {"tensor", whole(splits.front().split.tensor)}};
    if (!splits.front().placed.empty()) best.emplace_back("placed", splits.front().placed);
    best.emplace_back("layer_time", roofline::layer_lower(splits.front(), slice_batch(query)));
    out.emplace_back("best", std::move(best));
  }
  out.emplace_back("splits", split_rows(query, splits));
  response.table_key = "splits";
  if (!schemes.given && splits.empty()) return;
  const roofline::PlacedSplit& chosen = schemes.given ? *schemes.given : splits.front();
  out.emplace_back("limiter", roofline::limiter_of(roofline::forward_times(chosen, slice_batch(query))));
}

/// Everything that several chips share: thresholds, splits, levels, experts.
Result<Schemes> add_schemes(const Query& query, report::Response& response) {
  Schemes schemes;
  report::Members& out = response.results;
  ASSAY_SET(schemes.links, scheme_links(query));
  ASSAY_SET(schemes.given, given_split(query, schemes.links));
  out.emplace_back("data_parallel", data_parallel_section(query, schemes.links, roofline::WeightsAre::replicated));
  out.emplace_back("fsdp", data_parallel_section(query, schemes.links, roofline::WeightsAre::sharded));
  out.emplace_back("tensor_parallel", tensor_parallel_section(query, schemes.links));
  if (schemes.links.mixed) out.emplace_back("mixed", mixed_section(query, *schemes.links.mixed, schemes.links));
  if (schemes.given) out.emplace_back("split", split_section(query, *schemes.given));
  if (query.batch) {
    schemes.splits = roofline::placed_splits(query.slice, query.shape, query.peak,
                                             static_cast<double>(query.pipeline.value_or(1)), slice_batch(query));
    add_splits(query, schemes, response);
  }
  if (!query.slice.torus) {
    const roofline::Split pure_fsdp{query.slice_chips(), 1, 1};
    ASSAY_TRY(outer, roofline::place_split(query.slice, query.shape, query.peak,
                                           schemes.given ? schemes.given->split : pure_fsdp, roofline::Counting::exact,
                                           "--on"));
    out.emplace_back("levels", level_rows(query, outer));
    if (response.table_key.empty()) response.table_key = "levels";
  }
  if (query.expert) {
    const program::Mesh mesh{{{"data", query.cluster.chips_per_slice / *query.expert}, {"expert", *query.expert}}};
    ASSAY_TRY(placement, collective::Placement::make(mesh, query.slice, "--ep"));
    schemes.experts = placement.group(program::axis_bit(1));
    out.emplace_back("expert_parallel", expert_section(query, *schemes.experts));
  }
  return schemes;
}

report::Members pipeline_section(const Query& query) {
  const double bubble =
      roofline::pipeline_bubble(Plain{}, static_cast<double>(*query.pipeline),
                                static_cast<double>(*query.micro_batches), static_cast<double>(query.chunks));
  return {{"stages", *query.pipeline},
          {"microbatches", *query.micro_batches},
          {"bubble", bubble},
          {"bubble_over_work", bubble / (1.0 - bubble)}};
}

draw::Scene picture_of(const Query& query, const Schemes& schemes, const report::Items& sweep) {
  if (query.sweep && query.sweep->name == "chips") return draw::draw(chips_chart(query, sweep));
  return draw::draw(query.times_in_picture ? time_chart(query, schemes.links, schemes.given)
                                           : ratio_chart(query, schemes.links, schemes.given));
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_scaling_query(request, context));
  const bool several = query.slice_chips() > 1;
  Schemes schemes;
  report::Response response;
  report::Members& out = response.results;
  add_question(query, out);
  if (several) ASSAY_SET(schemes, add_schemes(query, response));
  if (query.cluster.torus && query.cluster.slices > 1) {
    ASSAY_TRY(between, collective::make_group(query.cluster, {"slices"}, query.slice_chips(), "--on"));
    out.emplace_back("across_slices", slices_section(query, between));
  }
  if (query.micro_batches) {
    if (!query.pipeline) return fail("--micro-batches", "there is no pipeline", "add --pp STAGES", Error::Kind::usage);
    out.emplace_back("pipeline", pipeline_section(query));
  }
  out.emplace_back("memory", memory_section(query));
  if (query.active) out.emplace_back("training", training_section(query));
  report::Items sweep;
  if (query.sweep) {
    if (!several) return fail("--vary", "one chip has nothing to share", "name more chips");
    ASSAY_TRY(rows, sweep_rows(query, schemes.links, request, context));
    sweep = rows;
    out.emplace_back("sweep", std::move(rows));
    response.table_key = "sweep";
  }
  if (request.has("walk")) {
    if (!several || !query.batch)
      return fail("--walk", "the tests compare a batch with what several chips need",
                  "add --batch, and name more chips", Error::Kind::usage);
    out.emplace_back("walk", walk_rows(out));
    response.table_key = "walk";
  }
  if (request.explain()) explain(query, schemes.links, schemes.given, schemes.experts, response);
  if (request.picture()) {
    if (!several) return fail("--format", "one chip has nothing to draw", "name more chips");
    response.picture = picture_of(query, schemes, sweep);
  }
  response.headline = headline(query, schemes.links, schemes.splits);
  response.notes = query.notes;
  response.notes.emplace_back(
      "one MLP layer stands for the model: attention adds arithmetic and weights in similar proportion");
  response.notes.insert(response.notes.end(), query.cluster.notes.begin(), query.cluster.notes.end());
  return response;
}

}  // namespace assay::verbs::scaling
