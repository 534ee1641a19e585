#include "assay/ask/verbs/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/experts.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/ranges.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/hardware/calibration.h"
#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/search/serving/speculation.h"
#include "assay/predict/serving/throughput.h"
#include "assay/program/lower/lowering.h"

namespace assay::verbs::serve {
namespace {

constexpr std::int64_t longest_draft = 16;

/// Rates and collectives with the chip's calibration, unless the request sets efficiencies of its own.
Result<void> set_rates(const Request& request, const Context& context, ServeQuery& query) {
  const hardware::Chip& chip = query.cluster.chip;
  serving::ServingSetup& setup = query.question.setup;
  const bool own_shares = sets_efficiency(request);
  ASSAY_TRY(calibration, hardware::calibration_of(chip, context.catalogue));
  const bool used = calibration && !own_shares;
  if (!used && request.has("attention-kernel"))
    return fail(
        "--attention-kernel",
        own_shares ? "--set efficiency replaces measured kernels" : fmt::format("{} has no calibration", chip.id),
        "leave it out: attention then uses the efficiencies in the chip's file");
  const auto read_rates = [&](hardware::AttentionKernel attention, bool pads_vocabulary) -> Result<void> {
    ASSAY_SET(setup.rates, kernel::kernel_rates(chip, query.compute, "--compute", used ? &calibration->values : nullptr,
                                                {attention, true, pads_vocabulary}));
    return {};
  };
  setup.collectives.reset(), setup.effects = {}, query.steps.reset();
  if (own_shares) {
    if (query.memory_margin == "interval") query.memory_margin = "none";
    return read_rates(hardware::AttentionKernel::automatic, false);
  }
  if (calibration) setup.collectives = calibration->values.collective;
  query.notes.push_back(
      calibration
          ? fmt::format("kernels and collectives as measured: {}", calibration->basis)
          : fmt::format("kernels and collectives use the efficiencies in chips/{}.toml, which has no calibration",
                        chip.id));
  ASSAY_TRY(software, read_serving_software(request, context, query));
  ASSAY_CHECK(read_rates(software.attention, software.pads_vocabulary));
  // Launch, host and waiting times come from other chips; effects on kernels inside a step apply only to the kernels
  // that they were fitted on.
  const numbers::Family* family = query.steps->family(chip);
  const auto fitted = [&](std::string_view number) {
    return family && family->serving && family->serving->contains(number);
  };
  if (!calibration && !fitted("attention.item") && !(fitted("attention.vector_item") && software.step.vector_decode))
    setup.effects.product = setup.effects.decode = {1.0, "1: fitted to other kernels"};
  return {};
}

/// The default format of products: the format of weights that are published with quantised activations if the chip
/// multiplies in it, else bf16 or, on older chips, fp16, or fp32 on processors that multiply in nothing narrower.
Dtype usual_compute(const hardware::Chip& chip, const lower::Formats& formats) {
  const auto has = [&](Dtype dtype) { return chip.peak[static_cast<std::size_t>(dtype)].has_value(); };
  if (formats.quantised && formats.quantised->products && has(formats.quantised->format.dtype))
    return formats.quantised->format.dtype;
  if (has(Dtype::bf16)) return Dtype::bf16;
  return has(Dtype::fp32) && !has(Dtype::fp16) ? Dtype::fp32 : Dtype::fp16;
}

/// If a chip has no narrower products, everything they read is kept in their format, unless told otherwise.
void widen_formats(const Request& request, Dtype usual, lower::Formats& formats) {
  if (facts(usual).bits <= 16) return;
  formats.activations = usual;
  if (!request.has("kv")) formats.kv_cache = usual;
  if (!request.has("weights") && !formats.quantised) formats.weights = usual;
}

std::string weights_text(const lower::Formats& formats, const model::Transformer& model) {
  const Dtype published = model.dtype;
  const bool narrowed = facts(published).bits > 16 && formats.weights == Dtype::bf16;
  if (!formats.quantised)
    return fmt::format("{}{}", name(formats.weights),
                       narrowed ? fmt::format(" (published in {})", name(published)) : "");
  return fmt::format("{} (others {})", model::text(*formats.quantised, model), name(formats.weights));
}

Result<void> read_formats(const Request& request, const Context& context, ServeQuery& query) {
  lower::Formats& formats = query.question.setup.formats;
  formats.weights = query.model().dtype;
  if (facts(formats.weights).bits > 16) formats.weights = Dtype::bf16;  // as every engine loads them
  formats.quantised = query.imported.quantisation;
  if (const auto text = request.value("weights")) {
    ASSAY_TRY(format, parse_number_format(*text, "--weights"));
    formats.set_weights(format);
  }
  query.compute = usual_compute(query.cluster.chip, formats);
  widen_formats(request, query.compute, formats);
  ASSAY_CHECK(read_dtype(request, "compute", query.compute));
  ASSAY_CHECK(read_dtype(request, "kv", formats.kv_cache));
  if (request.has("head-weights")) ASSAY_CHECK(read_dtype(request, "head-weights", formats.outer.emplace()));
  if (const auto peak = hardware::peak_rate(query.cluster.chip, query.compute, "--compute"); !peak) {
    query.impossible = fmt::format("{}; {}", peak.error().what, peak.error().hint);
    return {};
  }
  if (facts(query.compute).bits > facts(formats.activations).bits)
    return fail(
        "--compute",
        fmt::format("matrix products of {} activations gain nothing from {}", name(formats.activations),
                    name(query.compute)),
        fmt::format("use --compute {}, or a narrower format to which activations are cast", name(formats.activations)));
  formats.compute = query.compute;
  if (!request.has("compute") && !query.cluster.chip.peak[static_cast<std::size_t>(Dtype::bf16)])
    query.notes.push_back(
        fmt::format("{} has no bf16 arithmetic: using {} (--compute)", query.cluster.chip.id, name(query.compute)));
  ASSAY_CHECK(set_rates(request, context, query));
  query.notes.push_back(
      fmt::format("formats: weights {}, cache {}, products {}; change them with --weights --kv --compute",
                  weights_text(formats, query.model()), name(formats.kv_cache), name(query.compute)));
  if (!formats.quantised && facts(query.compute).bits < 16 && facts(formats.weights).bits >= 16)
    query.notes.push_back(fmt::format(
        "every step reads weights in {0} and casts them to {1}; --weights {1} stores them in the format of the "
        "products",
        name(formats.weights), name(query.compute)));
  return {};
}

/// Adds copies of experts to the model: as many as asked for, or where --ep does not divide the experts the fewest with
/// which it does. Nobody routes to them, but who copies the busiest experts: they are experts like the others.
Result<void> add_redundant_experts(const Request& request, ServeQuery& query) {
  std::optional<std::int64_t> copies, ways;
  ASSAY_CHECK(read_count(request, "redundant-experts", copies));
  ASSAY_CHECK(read_count(request, "ep", ways));
  model::Transformer& model = query.imported.model;
  std::int64_t experts = 0;
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.feed_forward) experts = std::max(experts, layer.feed_forward->experts);
  if (copies && experts == 0)
    return fail("--redundant-experts", fmt::format("{} has no routed experts", model.id), "leave it out");
  const std::int64_t lacking = ways && experts > 0 ? (*ways - experts % *ways) % *ways : 0;
  if (copies && ways && (*copies - lacking) % *ways != 0)
    return fail("--redundant-experts",
                fmt::format("{} experts and {} copies cannot be split {} ways", experts, *copies, *ways),
                fmt::format("use {}, or any multiple of {} more", lacking > 0 ? lacking : *ways, *ways));
  if (!copies && lacking > experts) return {};  // check_experts() says what would do
  query.redundant_experts = copies.value_or(lacking);
  if (query.redundant_experts == 0) return {};
  for (model::Layer& layer : model.decoder.kinds)
    if (layer.feed_forward && layer.feed_forward->experts > 0) layer.feed_forward->experts += query.redundant_experts;
  query.notes.push_back(fmt::format(
      "--redundant-experts{}: {} experts and {} copies of the busiest{}; --imbalance is the load that these leave",
      copies ? "" : " not given", experts, query.redundant_experts,
      ways ? fmt::format(", {} on each of {} devices", (experts + query.redundant_experts) / *ways, *ways) : ""));
  return {};
}

Result<void> read_model(const Request& request, const Context& context, ServeQuery& query) {
  ASSAY_TRY(imported, model::load_model(request.arguments().front(), context.catalogue, "MODEL",
                                        request.value("as").value_or("")));
  ASSAY_CHECK(lower::check_lowers(imported.model, "MODEL"));
  const auto& kinds = imported.model.decoder.kinds;
  query.is_encoder = std::any_of(kinds.begin(), kinds.end(),
                                 [](const model::Layer& layer) { return layer.attention && !layer.attention->causal; });
  query.choices.prompts_only = query.is_encoder;
  query.imported = imported;
  model::Transformer& model = query.imported.model;
  query.published = model;
  ASSAY_TRY(mix, read_cache_mix(request, query.notes));
  ASSAY_CHECK(model::apply_cache_mix(mix, model));
  ASSAY_CHECK(add_redundant_experts(request, query));
  ASSAY_CHECK(lower::check_lowers(model, "MODEL"));
  const model::ParameterCounts counts = model::parameter_counts(model);
  const auto total = static_cast<double>(counts.total);
  query.parameters = total;
  query.active = static_cast<double>(counts.active_matrix);
  for (std::size_t k = 0; model.encoder && k < model.encoder->kinds.size(); ++k)
    query.encoder_active += static_cast<double>(
        model.encoder->count(k) * model::layer_parameter_counts(model, model.encoder->kinds[k]).active_matrix);
  query.active -= query.encoder_active;
  std::optional<std::int64_t> parameters;
  ASSAY_CHECK(read_count(request, "parameters", parameters));
  if (parameters) {
    query.parameters = static_cast<double>(*parameters);
    query.parameters_given = true;
    query.active = query.parameters * (static_cast<double>(counts.active) - query.encoder_active) / total;
    query.encoder_active *= query.parameters / total;
    query.question.weight_scale = query.parameters / total;
    query.notes.push_back(fmt::format(
        "--parameters: memory and bounds count {} parameters instead of {}, and bounds read all of them; kernel times "
        "are unchanged",
        human_count(*parameters), human_count(counts.total)));
  }
  return {};
}

/// What was measured, in place of estimates.
Result<void> read_measured(const Request& request, ServeQuery& query) {
  ASSAY_CHECK(read_time(request, "prefill-time", query.prefill_time));
  ASSAY_CHECK(read_time(request, "step-time", query.step_time));
  ASSAY_SET(query.mfu, read_mfu(request));
  return {};
}

Result<void> read_strategy(const Request& request, ServeQuery& query) {
  search::ServingChoices& c = query.choices;
  ASSAY_CHECK(read_count(request, "tp", c.tensor));
  ASSAY_CHECK(read_count(request, "pp", c.pipeline));
  ASSAY_CHECK(read_count(request, "ep", c.expert));
  ASSAY_CHECK(read_expert_axes(request, c.expert_over));
  if (c.expert_over && c.expert_over->context)
    return fail("--ep-over", "a server's devices do not split contexts", "use dp or tp", Error::Kind::usage);
  ASSAY_CHECK(read_count(request, "dp", c.data));
  ASSAY_CHECK(read_count(request, "weights-2d", c.second));
  ASSAY_CHECK(read_time(request, "ttft", c.first_token));
  ASSAY_CHECK(read_time(request, "tpot", c.per_token));
  if (const auto text = request.value("cache")) {
    c.cache = *text == "heads"           ? lower::CacheScheme::heads
              : text->ends_with("batch") ? lower::CacheScheme::batch
                                         : lower::CacheScheme::sequence;
    c.cache_by_heads = text->starts_with("heads-");
    if (c.cache_by_heads && serving::key_copies(query.model(), c.tensor.value_or(query.cluster.chips())) == 1)
      return fail("--cache",
                  fmt::format("{} splits by heads alone or not at all among the devices of --tp", query.model().id),
                  "heads-batch and heads-sequence need more tensor-parallel devices than KV heads, and several heads");
  }
  if (request.has("gather-weights")) {
    if (c.second.value_or(1) == 1)
      return fail("--gather-weights",
                  "it needs weights that are sharded along two dimensions, and --weights-2d is not given",
                  "add --weights-2d 2", Error::Kind::usage);
    c.weights = lower::WeightScheme::gathered;
  }
  if (c.expert.value_or(1) > 1 && c.second.value_or(1) > 1) {
    std::int64_t experts = 0;
    for (const model::Layer& layer : query.model().decoder.kinds)
      if (layer.feed_forward) experts = std::max(experts, layer.feed_forward->experts);
    const std::int64_t ways = *c.expert * *c.second;
    const bool enough = ways <= experts && experts % ways == 0;
    return fail(
        "--weights-2d",
        "--ep already distributes experts: sharding along a second dimension would split the same weights again and "
        "add a gather and a reduction to every product; attention is split by --tp in either case",
        enough ? fmt::format("--ep {} splits them as many ways, with two all-to-alls per layer however many", ways)
               : fmt::format("{} experts fit on at most {} devices; beyond that, --tp {} splits each expert", experts,
                             experts, c.tensor.value_or(1) * *c.second),
        Error::Kind::usage);
  }
  lower::Parallelism given;
  given.tensor = c.tensor.value_or(1);
  given.pipeline = c.pipeline.value_or(1);
  ASSAY_CHECK(lower::check_parallelism(given, query.model()));
  if (c.expert) ASSAY_CHECK(check_experts(*c.expert, c.expert_over, given.tensor, 1, query.model()));
  return {};
}

/// Checks that a draft uses the tokens of the model and accepts the same context.
Result<void> check_draft(const model::Transformer& draft, const ServeQuery& query, bool stretch) {
  const model::Transformer& model = query.model();
  constexpr double padding = 0.01;  // tables are filled up to round sizes
  const auto own = static_cast<double>(model.vocabulary), drafted = static_cast<double>(draft.vocabulary);
  if (std::abs(drafted - own) > padding * own)
    return fail(
        "--draft",
        fmt::format(
            "{} has a vocabulary of {} tokens and {} one of {}: both must use the same tokenizer (sizes may differ "
            "by 1 % for padding)",
            draft.id, draft.vocabulary, model.id, model.vocabulary),
        "use a small model of the same family, or mtp");
  const auto& lengths = query.question.lengths;
  const std::int64_t longest =
      lengths ? lengths->prompt.largest() + lengths->output.largest() : query.question.prompt + query.question.output;
  if (draft.max_context > 0 && longest > draft.max_context && !stretch)
    return fail("--draft",
                fmt::format("{} tokens of prompt and output exceed the context of {} tokens of {}", longest,
                            draft.max_context, draft.id),
                "use a draft with a longer context, shorter requests, or --stretch to allow it");
  return {};
}

/// Models of the catalogue with layers that predict tokens beyond the next one.
std::vector<std::string> models_that_draft(const hardware::Catalogue& catalogue) {
  std::vector<std::string> out;
  for (std::string& id : model::model_ids(catalogue))
    if (const auto known = model::catalogue_model(id, catalogue, "--draft");
        known && known->imported.model.prediction_layers > 0)
      out.push_back(std::move(id));
  return out;
}

Result<void> read_draft(const Request& request, const Context& context, ServeQuery& query) {
  for (const char* option : {"acceptance", "draft-length"})
    if (request.has(option) && !request.has("draft"))
      return fail(fmt::format("--{}", option), "it needs a draft model, and none is given",
                  "add --draft MODEL, or --draft mtp", Error::Kind::usage);
  const auto text = request.value("draft");
  if (!text) return {};
  if (*text == "mtp" && query.model().prediction_layers == 0)
    return fail("--draft",
                fmt::format("{} has no layers that draft: its configuration has no num_nextn_predict_layers, nor the "
                            "like, above 0",
                            query.model().id),
                fmt::format("use a small model of the same family (--draft MODEL); models with such layers: {}",
                            join(models_that_draft(context.catalogue), ", ")));
  if (*text == "mtp") {
    query.draft = search::prediction_module(query.model());
  } else {
    ASSAY_TRY(draft, model::load_model(*text, context.catalogue, "--draft"));
    ASSAY_CHECK(lower::check_lowers(draft.model, "--draft"));
    ASSAY_CHECK(check_draft(draft.model, query, request.has("stretch")));
    query.draft = search::Draft{draft.model, false};
  }
  if (!request.has("acceptance"))
    query.notes.emplace_back("--acceptance not given: 80 % of drafted tokens are assumed to be accepted");
  ASSAY_CHECK(read_share(request, "acceptance", query.acceptance, true));
  std::optional<std::int64_t> length;
  ASSAY_CHECK(read_count(request, "draft-length", length));
  if (length && *length > 1024) return fail("--draft-length", "more than 1024 tokens", "drafts are a few tokens long");
  if (length) query.draft_lengths = {*length};
  for (std::int64_t k = 1; !length && k <= longest_draft; ++k) query.draft_lengths.push_back(k);
  return {};
}

Result<void> read_sweep(const Request& request, ServeQuery& query) {
  static constexpr VariedNumber axes[] = {{"batch", &parse_varied_count, "1..512"}};
  ASSAY_TRY(sweep, read_variation(request, axes));
  if (sweep) query.batches.assign(sweep->values.begin(), sweep->values.end());
  return {};
}

/// --memory-share, or --memory-margin as a share or none; the software says what the default is.
Result<void> read_memory(const Request& request, ServeQuery& query) {
  if (request.has("memory-share")) {
    if (request.has("memory-margin"))
      return fail("--memory-margin", "--memory-share already says what the server may use", "leave one of them out",
                  Error::Kind::usage);
    ASSAY_SET(query.memory, kernel::parse_memory_share(*request.value("memory-share"), "--memory-share"));
    query.memory_margin = "none";
  }
  if (const auto text = request.value("memory-margin")) {
    query.memory_margin = *text;
    ASSAY_TRY(share, read_margin(request, "interval"));
    if (share) query.memory = {1.0 - *share, false};
  }
  query.set_memory(query.memory);
  if (request.has("memory-share")) query.question.chip_memory = query.question.capacity;
  return {};
}

}  // namespace

void ServeQuery::set_memory(kernel::MemoryShare used) {
  memory = used;
  question.chip_memory = cluster.chip.hbm().capacity.value;
  question.capacity = used.of_free ? question.chip_memory : used.share * question.chip_memory;
  question.cache_share = used.of_free ? used.share : 1.0;
}

void bind(ServeQuery& query) { query.question.setup.model = &query.imported.model; }

Result<ServeQuery> read_serve_query(const Request& request, const Context& context, std::size_t size) {
  ServeQuery query;
  ASSAY_CHECK(read_model(request, context, query));
  ASSAY_TRY(range, parse_cluster_range(request.value("on").value_or(""), "--on", context.catalogue));
  if (range.clusters.size() > 1) query.sizes = range.clusters;
  ASSAY_TRY(overrides, overrides_of(request));
  ASSAY_TRY(cluster, query.sizes.empty()
                         ? cluster_of(request, context)
                         : hardware::parse_cluster(query.sizes[size], context.catalogue, "--on", overrides));
  query.cluster = cluster;
  query.notes.insert(query.notes.end(), cluster.notes.begin(), cluster.notes.end());
  ASSAY_CHECK(read_memory(request, query));
  ASSAY_CHECK(read_requests(request, context, query));
  ASSAY_CHECK(read_serve_load(request, query));
  ASSAY_CHECK(read_measured(request, query));
  ASSAY_CHECK(read_strategy(request, query));
  ASSAY_CHECK(read_draft(request, context, query));
  ASSAY_CHECK(read_sweep(request, query));
  for (std::size_t i = 0; i < query.sizes.size(); ++i) {
    if (i == size) continue;
    // Sizes of a range that a chip does not come in are left out.
    const auto other = hardware::parse_cluster(query.sizes[i], context.catalogue, "--on", overrides);
    if (!other && (!range.counted[i] || other.error().kind == Error::Kind::missing))
      return tl::unexpected<Error>(other.error());
    if (other)
      query.compared.push_back(query.sizes[i]);
    else
      query.notes.push_back(fmt::format("{} left out: {}", query.sizes[i], other.error().what));
  }
  for (std::string& text : request.values("compare")) query.compared.push_back(std::move(text));
  if (const auto text = request.value("formats"))
    for (const std::string& part : split(*text, ',')) {
      ASSAY_TRY(format, parse_dtype(trim(part), "--formats"));
      query.compared_formats.push_back(format);
    }
  ASSAY_CHECK(read_formats(request, context, query));
  ASSAY_CHECK(replay_requests(request, query));
  ASSAY_CHECK(keep_to_software(request, context, query));
  return query;
}

Result<ServeQuery> on_other_cluster(const ServeQuery& query, const hardware::Cluster& cluster, const Request& request,
                                    const Context& context, std::optional<Dtype> format) {
  ServeQuery other = query;
  other.cluster = cluster;
  ASSAY_CHECK(read_memory(request, other));
  lower::Formats& formats = other.question.setup.formats;
  if (format) {
    formats.set_weights(*format);
    formats.kv_cache = facts(*format).bits >= 8 ? *format : facts(*format).is_integer ? Dtype::int8 : Dtype::fp8;
  }
  if (!request.has("compute")) {
    other.compute = usual_compute(cluster.chip, formats);
    if (!format) widen_formats(request, other.compute, formats);
    const bool multiplies = format && cluster.chip.peak[static_cast<std::size_t>(*format)] &&
                            facts(*format).bits <= facts(formats.activations).bits;
    if (multiplies) other.compute = *format;
    formats.compute = other.compute;
  }
  ASSAY_CHECK(set_rates(request, context, other));
  return other;
}

std::string strategy_text(const serving::ServingStrategy& s) {
  std::string text;
  const auto part = [&](std::string_view word, std::int64_t n) {
    if (n > 1) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word, n);
  };
  part("dp", s.data);
  part("tp", s.tensor);
  part("weights-2d", s.second);
  part("ep", s.expert);
  if (s.parallelism().expert_others() > 1) text += fmt::format(" over {}", lower::expert_axes_text(s.parallelism()));
  part("pp", s.pipeline);
  if (text.empty()) text = "one chip";
  if (s.second > 1 && s.scheme.weights == lower::WeightScheme::gathered) text += ", weights gathered";
  if (s.tensor * s.second > 1 && s.scheme.cache != lower::CacheScheme::heads)
    text += fmt::format(", cache by {}{}", s.cache_ways > 1 ? "heads and " : "",
                        s.scheme.cache == lower::CacheScheme::batch ? "batch" : "sequence");
  return text;
}

std::optional<Dollars> cost_of_million(const ServeQuery& query, double chips, TokensPerSecond rate) {
  const hardware::Price* price = hardware::newest_price(query.cluster.chip);
  if (!price) return std::nullopt;
  return serving::cost_of_million_tokens(Plain{}, price->value.value, chips, rate);
}

std::optional<Dollars> cost_of_million(const ServeQuery& query, const serving::ServingPoint& point,
                                       TokensPerSecond rate) {
  return cost_of_million(query, query.all_chips(point.strategy), rate);
}

}  // namespace assay::verbs::serve
