// assay models: the catalogue of models, and what one model, configuration or checkpoint amounts to.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/models/models.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/model/checkpoint/checkpoint.h"
#include "assay/model/mixers.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/kernel/kernel_models.h"
#include "assay/program/form/elementwise.h"
#include "assay/program/lower/lowering.h"

namespace assay::verbs::models {
namespace {

/// What the options ask for.
struct Query {
  std::optional<std::int64_t> sequence, batch;
  Dtype kv = Dtype::bf16, weights = Dtype::bf16;
  std::optional<model::Quantisation> quantised;  ///< weights stored in another format than the others
  model::MaskCount mask = model::MaskCount::exact;
  std::optional<Variation> lengths;
  bool picture = false;
};

// Bytes of a cache are a product of lengths and batches; larger values are implausible.
constexpr std::int64_t most = std::int64_t{1} << 30;

Result<Query> read_query(const Request& request, const model::ImportedModel& imported) {
  Query query;
  query.weights = imported.model.dtype;
  query.quantised = imported.quantisation;
  ASSAY_CHECK(read_count(request, "seq", query.sequence));
  if (const auto text = request.value("batch")) {
    if (!query.sequence)
      return fail("--batch", "a batch of sequences needs their length", "add --seq N", Error::Kind::usage);
    ASSAY_SET(query.batch, parse_count(*text, "--batch"));
  }
  for (const auto& [option, value] : {std::pair("--seq", query.sequence), std::pair("--batch", query.batch)})
    if (value && *value > most)
      return fail(
          option,
          fmt::format("implausibly large: at most {} is allowed, got {}", human_count(most), human_count(*value)), "");
  ASSAY_CHECK(read_dtype(request, "kv", query.kv));
  if (const auto text = request.value("weights")) {
    ASSAY_TRY(format, parse_number_format(*text, "--weights"));
    query.quantised.reset();
    if (format.is_plain())
      query.weights = format.dtype;
    else
      query.quantised = model::linear_layers(format);
  }
  const std::string mask = request.value("attention").value_or("exact");
  query.mask = mask == "full"   ? model::MaskCount::full
               : mask == "half" ? model::MaskCount::half
                                : model::MaskCount::exact;
  static constexpr VariedNumber axes[] = {{"seq",
                                           [](std::string_view text, std::string_view where) -> Result<double> {
                                             ASSAY_TRY(count, parse_count(text, where));
                                             return static_cast<double>(std::min(count, most));
                                           },
                                           "1k..128k"}};
  ASSAY_SET(query.lengths, read_variation(request, axes));
  query.picture = request.picture();
  return query;
}

report::Members parameters_of(const model::ParameterCounts& counts) {
  report::Members out{{"total", counts.total}, {"active", counts.active}};
  for (std::size_t i = 0; i < model::part_count; ++i) {
    const auto part = static_cast<model::Part>(i);
    const bool always = part == model::Part::attention || part == model::Part::mlp || part == model::Part::embedding;
    if (always || counts.by_part[i] != 0) out.emplace_back(model::name(part), counts.by_part[i]);
  }
  out.emplace_back("active_matrix", counts.active_matrix);
  return out;
}

/// A training step on one device that gives all experts equally many tokens: as many sequences as there are experts.
lower::TrainingPlan even_plan(const model::Transformer& model, std::int64_t sequence) {
  lower::TrainingPlan plan;
  plan.work.queries = plan.work.keys = plan.work.source = sequence;
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.feed_forward) plan.work.sequences = std::max(plan.work.sequences, layer.feed_forward->experts);
  return plan;
}

/// Bytes that one token leaves in memory from the forward to the backward pass, with flash attention. Where the model
/// has no program, only for the policies that its accounts know.
report::Members kept_by_policy(const model::Transformer& model, const Query& query) {
  report::Members out;
  if (!lower::check_lowers(model, "models")) {
    for (model::KeepPolicy policy :
         {model::KeepPolicy::none, model::KeepPolicy::selective, model::KeepPolicy::products, model::KeepPolicy::full})
      out.emplace_back(model::name(policy), model::kept_bytes_per_token(model, policy, Dtype::bf16));
    return out;
  }
  constexpr std::int64_t sample_tokens = 2048;  // their number matters only where an index picks from fewer keys
  lower::TrainingPlan plan = even_plan(model, query.sequence.value_or(sample_tokens));
  const auto [mesh, rules] = lower::training_stage({}, model);
  for (const lower::RecomputePolicy& policy : lower::recompute_policies) {
    plan.recompute = policy.parts;
    const program::Program program = lower::lower_training(model, mesh, rules, plan);
    Bytes kept, encoded;
    for (const program::Block& block : program.blocks) {
      if (block.kind < 0 || block.phase != program::Phase::forward) continue;
      kept += static_cast<double>(block.layers) * lower::kept_bytes(program, block);
      encoded = std::max(encoded, lower::kept_encoded_bytes(program, block));
    }
    out.emplace_back(policy.name, (kept + encoded) / plan.work.tokens());
  }
  return out;
}

/// Including all work of a training step other than products, except recomputation and the weight update. Nothing
/// without a sequence, or where the model has no program.
report::Members exact_flops(const model::TokenFlops<Plain>& flops, const model::Transformer& model,
                            const Query& query) {
  if (!query.sequence || !lower::check_lowers(model, "models")) return {};
  lower::TrainingPlan plan = even_plan(model, *query.sequence);
  plan.work.causal_flops = query.mask != model::MaskCount::full;
  const auto [mesh, rules] = lower::training_stage({}, model);
  const program::Program program = lower::lower_training(model, mesh, rules, plan);
  const double share = 1.0 / plan.work.tokens();
  const Flops forward = flops.forward + share * program::elementwise_flops(program, program::Phase::forward);
  const Flops backward = flops.backward + share * program::elementwise_flops(program, program::Phase::backward);
  return {{"forward", forward}, {"backward", backward}, {"train", forward + backward}};
}

report::Members flops_of(const model::TokenFlops<Plain>& flops, const model::Transformer& model, const Query& query) {
  report::Members out{
      {"forward", flops.forward}, {"backward", flops.backward}, {"train", flops.train}, {"matmul", flops.matmul}};
  if (query.sequence) {
    out.emplace_back("attention", flops.attention);
    out.emplace_back("sequence", *query.sequence);
    out.emplace_back("mask", model::name(query.mask));
  }
  if (model::state_values_per_sequence(model) > 0) out.emplace_back("state_space", flops.state_space);
  if (report::Members exact = exact_flops(flops, model, query); !exact.empty())
    out.emplace_back("exact", std::move(exact));
  return out;
}

/// The first attention of a model, whose sizes stand for all.
const model::Attention* main_attention(const model::Transformer& model) {
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.attention) return &*layer.attention;
  return nullptr;
}

/// The widest dense block, and the experts.
const model::FeedForward* feed_forward_of(const model::Transformer& model, bool experts) {
  const model::FeedForward* found = nullptr;
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.feed_forward && (layer.feed_forward->experts > 0) == experts)
      if (!found || found->width < layer.feed_forward->width) found = &*layer.feed_forward;
  return found;
}

void add_sizes(report::Members& out, const model::Transformer& model) {
  out.emplace_back("layers", model.decoder.layers());
  if (model.encoder) out.emplace_back("encoder_layers", model.encoder->layers());
  out.emplace_back("d_model", model.d_model);
  if (const model::Attention* a = main_attention(model)) {
    out.emplace_back("heads", a->heads);
    out.emplace_back("kv_heads", a->kv_heads);
    out.emplace_back("head_dim", a->head_dim);
    if (a->value_dim != a->head_dim) out.emplace_back("value_dim", a->value_dim);
    if (a->q_rank > 0) out.emplace_back("q_rank", a->q_rank);
    if (a->kv_rank > 0) {
      out.emplace_back("kv_rank", a->kv_rank);
      out.emplace_back("rope_dim", a->rope_dim);
    }
  }
  const model::FeedForward *dense = feed_forward_of(model, false), *experts = feed_forward_of(model, true);
  if (dense || experts) out.emplace_back("d_ff", (dense ? dense : experts)->width);
  if (experts) {
    out.emplace_back("experts", experts->experts);
    out.emplace_back("experts_per_token", experts->experts_per_token);
    out.emplace_back("sparsity",
                     static_cast<double>(experts->experts) / static_cast<double>(experts->experts_per_token));
    out.emplace_back("expert_width", experts->width);
    if (experts->shared_width > 0) out.emplace_back("shared_width", experts->shared_width);
  }
  if (model.streams > 1) out.emplace_back("streams", model.streams);
  out.emplace_back("vocabulary", model.vocabulary);
  if (model.max_context > 0) out.emplace_back("context", model.max_context);
  out.emplace_back("tied", model.tied);
  out.emplace_back("dtype", name(model.dtype));
}

std::string mixer_text(const model::Layer& layer) {
  std::string text;
  if (layer.state_space) {
    text = model::facts(layer.state_space->kind).name;
    if (layer.state_space->kind == model::StateSpace::Kind::rwkv5 && layer.state_space->decay_rank > 0) text = "rwkv 6";
  }
  if (layer.attention) {
    const model::Attention& a = *layer.attention;
    if (!text.empty()) text += " and ";
    text += a.kv_rank > 0 ? "latent attention" : a.causal ? "attention" : "bidirectional attention";
    if (a.window > 0) text += fmt::format(", window {}", a.window);
    if (a.chunk > 0) text += fmt::format(", chunks of {}", a.chunk);
    if (a.shares_kv) text += ", keys shared with an earlier layer";
    if (a.compression > 0) text += fmt::format(", a key per {} tokens", a.compression);
    if (a.index_heads > 0) text += fmt::format(", top {}", a.index_picks);
  }
  if (layer.cross_attention) text += text.empty() ? "cross attention" : ", cross attention";
  if (layer.needs_image) text += " to images";
  return text.empty() ? "none" : text;
}

std::string feed_forward_text(const model::Layer& layer) {
  if (!layer.feed_forward) return "none";
  const model::FeedForward& f = *layer.feed_forward;
  const std::string_view gated = f.shifted ? "shifted" : f.gated ? "gated" : "plain";
  if (f.experts == 0) return fmt::format("{} {}", gated, f.width);
  std::string text = fmt::format("{} of {} experts, {} {}", f.experts_per_token, f.experts, gated, f.width);
  if (f.shared_width > 0) text += fmt::format(", shared {}", f.shared_width);
  return text;
}

report::Items layer_kinds(const model::Transformer& model, const Query& query, bool list) {
  report::Items out;
  const auto add = [&](const model::LayerStack& stack, std::string_view which) {
    for (std::size_t i = 0; i < stack.kinds.size(); ++i) {
      const model::Layer& layer = stack.kinds[i];
      const model::ParameterCounts counts = model::layer_parameter_counts(model, layer);
      report::Members row;
      if (model.encoder) row.emplace_back("stack", which);
      row.emplace_back("layers", stack.count(i));
      row.emplace_back("mixer", mixer_text(layer));
      row.emplace_back("feed_forward", feed_forward_text(layer));
      row.emplace_back("parameters", counts.total);
      row.emplace_back("active", counts.active);
      row.emplace_back("matrix", counts.active_matrix);
      if (layer.shared) {
        std::int64_t shared = 0;
        for (const model::Weight& weight : model::layer_weights(model, layer))
          shared += weight.shared ? weight.elements() : 0;
        row.emplace_back("shared", shared);
      }
      if (query.sequence && layer.attention) {
        const model::Attention& a = *layer.attention;
        const double keys = model::mean_keys(a, static_cast<double>(*query.sequence), query.mask);
        row.emplace_back("keys_per_query", keys);
        row.emplace_back("attention_flops_per_token",
                         model::attention_flops(a, static_cast<double>(*query.sequence), query.mask));
      }
      if (list) {
        report::Items weights;
        for (const model::Weight& weight : model::layer_weights(model, layer))
          weights.emplace_back(fmt::format("{}{}", weight.name, model::shape_text(weight)));
        row.emplace_back("weights", std::move(weights));
      }
      out.emplace_back(std::move(row));
    }
  };
  if (model.encoder) add(*model.encoder, "encoder");
  add(model.decoder, "decoder");
  return out;
}

/// Which weights are stored in which format, and their bytes.
report::Members weight_formats(const Query& query, const model::Transformer& model, Bytes weights,
                               const model::ParameterCounts& counts) {
  report::Members out;
  if (query.quantised) out.emplace_back("quantised", model::text(*query.quantised, model));
  out.emplace_back(query.quantised ? "others" : "all", name(query.weights));
  out.emplace_back("bits_per_parameter", 8.0 * weights.value() / static_cast<double>(counts.total));
  return out;
}

void add_model(report::Response& response, const model::ImportedModel& imported, const Query& query, bool list,
               bool explain) {
  const model::Transformer& model = imported.model;
  const model::ParameterCounts counts = model::parameter_counts(model);
  const std::int64_t sequence = query.sequence.value_or(0);
  const model::TokenFlops<Plain> flops = model::token_flops(Plain{}, model, sequence, query.mask);
  report::Members& out = response.results;
  out.emplace_back("parameters", parameters_of(counts));
  const Bytes weights = model::weight_bytes(model, [&](const model::Weight& w) {
    return query.quantised && query.quantised->covers(w) ? query.quantised->format : NumberFormat(query.weights);
  });
  out.emplace_back("weight_bytes", weights);
  out.emplace_back("weight_formats", weight_formats(query, model, weights, counts));
  out.emplace_back("flops_per_token", flops_of(flops, model, query));
  out.emplace_back("kv_bytes_per_token", model::kv_bytes_per_token(Plain{}, model, query.kv));
  if (query.sequence) {
    const Bytes cache = storage(query.kv, static_cast<double>(model::kv_values_per_sequence(model, sequence)));
    out.emplace_back("kv_bytes_per_sequence", cache);
    if (query.batch) out.emplace_back("kv_cache", static_cast<double>(*query.batch) * cache);
  }
  if (const std::int64_t state = model::state_values_per_sequence(model); state > 0)
    out.emplace_back("state_bytes_per_sequence", storage(query.kv, static_cast<double>(state)));
  out.emplace_back("activation_bytes_per_token", kept_by_policy(model, query));
  add_sizes(out, model);
  out.emplace_back("layer_kinds", layer_kinds(model, query, list));
  if (list) {
    out.emplace_back("outer_weights", report::rows_of(model::outer_weights(model), [&](const model::Weight& weight) {
                       return fmt::format("{}{}", weight.name, model::shape_text(weight));
                     }));
  }
  if (!imported.defaults.empty()) {
    report::Items defaults;
    for (const std::string& text : imported.defaults) defaults.emplace_back(text);
    out.emplace_back("defaults", std::move(defaults));
  }
  response.notes.insert(response.notes.end(), imported.notes.begin(), imported.notes.end());
  if (query.sequence && model.max_context > 0 && *query.sequence > model.max_context)
    response.notes.push_back(model.learned_positions > 0
                                 ? fmt::format("{} has {} learned positions, fewer than --seq {}", model.id,
                                               model.max_context, *query.sequence)
                                 : fmt::format("--seq {} exceeds the context of {} tokens that {} was trained for",
                                               *query.sequence, model.max_context, model.id));
  const auto vocabulary = static_cast<double>(model.vocabulary);
  if (kernel::row_alignment(Dtype::bf16, vocabulary) < kernel::bulk_copy) {
    const auto padded = static_cast<std::int64_t>(kernel::padded_row(vocabulary, storage(Dtype::bf16, 1.0)));
    const auto more = static_cast<double>((padded - model.vocabulary) * model.d_model * (model.tied ? 1 : 2));
    response.notes.push_back(fmt::format(
        "the vocabulary of {} is not a multiple of 8: unless the software pads it, products with logits run on slow "
        "kernels on GPUs; {} avoids this for {:.2g} % more parameters",
        model.vocabulary, padded, 100.0 * more / static_cast<double>(counts.total)));
  }
  if (!query.sequence)
    response.notes.emplace_back("FLOP counts cover matrix products only; --seq N adds attention over N tokens");
  std::string active;
  if (counts.active != counts.total) active = fmt::format(", {} active", human_count(counts.active));
  response.headline = fmt::format("{}: {} parameters{}, {} per token forward, {} of cache per token", model.name,
                                  human_count(counts.total), active, human(flops.forward),
                                  human(model::kv_bytes_per_token(Plain{}, model, query.kv)));
  if (query.lengths) {
    report::Items rows = length_rows(model, query.mask, query.kv, *query.lengths);
    if (query.picture) response.picture = length_picture(model, rows);
    out.emplace_back("sweep", std::move(rows));
    response.table_key = "sweep";
  }
  if (explain) {
    const Traced num{&response.ledger};
    response.derived = {model::parameter_total(num, model).id,
                        model::token_flops(num, model, sequence, query.mask).train.id,
                        model::kv_bytes_per_token(num, model, query.kv).id};
  }
}

Result<report::Response> list_models(const hardware::Catalogue& catalogue) {
  report::Response response;
  report::Items rows;
  for (const std::string& id : model::model_ids(catalogue)) {
    ASSAY_TRY(entry, model::catalogue_model(id, catalogue, "models"));
    const model::Transformer& model = entry.imported.model;
    const model::ParameterCounts counts = model::parameter_counts(model);
    const model::Attention* a = main_attention(model);
    rows.emplace_back(report::Members{{"id", id},
                                      {"layers", model.decoder.layers()},
                                      {"d_model", model.d_model},
                                      {"heads", a ? report::Value(a->heads) : report::Value()},
                                      {"kv_heads", a ? report::Value(a->kv_heads) : report::Value()},
                                      {"parameters", counts.total},
                                      {"active", counts.active},
                                      {"kv_bytes_per_token", model::kv_bytes_per_token(Plain{}, model, Dtype::bf16)}});
  }
  response.headline =
      fmt::format("{} models; `assay models ID` shows one, `assay models DIR` counts your own", rows.size());
  response.results.emplace_back("models", std::move(rows));
  response.table_key = "models";
  response.notes.emplace_back("cache in bf16; of an encoder-decoder, layers are those of the decoder");
  return response;
}

/// A published total and whether ours is the same.
report::Members published_members(const model::PublishedTotal& total, const model::ParameterCounts& counts) {
  report::Members published{{"parameters", total.text}};
  if (total.half_unit > 0.0) published.emplace_back("stated_within", total.half_unit / total.value);
  if (total.outside > 0.0) {
    published.emplace_back("of_these_not_counted", static_cast<std::int64_t>(total.outside));
    published.emplace_back("not_counted", total.outside_what);
  }
  published.emplace_back("source", total.source);
  published.emplace_back("agrees", model::agrees(total, counts));
  return published;
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  if (request.arguments().empty()) {
    if (request.picture())
      return fail("--format svg", "a picture shows one model", "name it: assay models llama-3-8b --format svg",
                  Error::Kind::usage);
    for (const char* option : {"seq", "batch", "kv", "weights", "attention", "list", "as", "vary"})
      if (request.has(option))
        return fail(fmt::format("--{}", option), "this applies to one model", "name it: assay models llama-3-8b",
                    Error::Kind::usage);
    return list_models(context.catalogue);
  }
  const std::string& argument = request.arguments().front();
  const std::string as = request.value("as").value_or("");
  report::Response response;
  if (model::names_path(argument, context.catalogue)) {
    ASSAY_TRY(checkpoint, model::read_checkpoint(argument, "models", context.catalogue, as));
    response.notes = checkpoint.notes;
    if (checkpoint.imported) {
      const model::Transformer& model = checkpoint.imported->model;
      ASSAY_TRY(query, read_query(request, *checkpoint.imported));
      response.results.emplace_back("id", model.id);
      response.results.emplace_back("family", checkpoint.imported->family);
      add_model(response, *checkpoint.imported, query, request.has("list"), request.explain());
      if (request.picture() && !query.lengths) ASSAY_CHECK(draw_layer(model, response));
      const model::ParameterCounts counts = model::parameter_counts(model);
      if (!checkpoint.tensors.empty()) add_checkpoint(response, checkpoint, &counts, &model);
      return response;
    }
    add_checkpoint(response, checkpoint, nullptr, nullptr);
    response.notes.emplace_back("there is no configuration next to the tensors, so only the tensors are counted");
    response.headline = fmt::format("{} tensors without a configuration", checkpoint.tensors.size());
    return response;
  }
  ASSAY_CHECK(model::check_as(as));
  ASSAY_TRY(entry, model::named_model(argument, context.catalogue, "models"));
  const model::Transformer& model = entry.imported.model;
  ASSAY_TRY(query, read_query(request, entry.imported));
  response.results = {{"id", model.id}, {"name", model.name}};
  if (!entry.maker.empty()) response.results.emplace_back("maker", entry.maker);
  response.results.emplace_back("family", entry.imported.family);
  add_model(response, entry.imported, query, request.has("list"), request.explain());
  if (request.picture() && !query.lengths) ASSAY_CHECK(draw_layer(model, response));
  const model::ParameterCounts counts = model::parameter_counts(model);
  const model::PublishedTotal& total = entry.published;
  if (!total.text.empty()) response.results.emplace_back("published", published_members(total, counts));
  report::Items sources;
  for (const hardware::SourceEntry& source : entry.sources)
    sources.emplace_back(report::Members{{"key", source.key},
                                         {"title", source.title},
                                         {"accessed", source.accessed.empty() ? "not opened" : source.accessed},
                                         {"url", source.url}});
  response.results.emplace_back("sources", std::move(sources));
  return response;
}

}  // namespace assay::verbs::models
