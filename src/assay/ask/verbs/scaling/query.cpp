#include "assay/ask/verbs/scaling/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/model/model_catalogue.h"
#include "assay/program/lower/lowering.h"

namespace assay::verbs::scaling {
namespace {

Result<void> read_tokens(const Request& request, std::string_view option, std::optional<Tokens>& out) {
  std::optional<std::int64_t> count;
  ASSAY_CHECK(read_count(request, option, count));
  if (count) out = Tokens(static_cast<double>(*count));
  return {};
}

/// Tokens, or sequences of --seq tokens: "1024seq".
Result<void> read_batch(const Request& request, ScalingQuery& query) {
  const auto text = request.value("batch");
  if (!text || (query.sequence == 0 && !text->ends_with("seq"))) return read_tokens(request, "batch", query.batch);
  if (query.sequence == 0)
    return fail("--batch", "sequences need a length", "add --seq N, or give tokens", Error::Kind::usage);
  ASSAY_TRY(sequences, parse_batch(*text, query.sequence, query.notes));
  query.batch = Tokens(sequences * static_cast<double>(query.sequence));
  return {};
}

/// The share of the peak that a run reached which took so many hours of its chips.
Result<void> read_chip_hours(const std::string& text, ScalingQuery& query) {
  ASSAY_TRY(count, parse_count(text, "--chip-hours"));
  const auto hours = static_cast<double>(count);
  if (!query.tokens || !query.active)
    return fail("--chip-hours", "the work of the run is not known", "name a model, and --tokens of the run",
                Error::Kind::usage);
  query.mfu = roofline::training_time(Plain{}, *query.active, *query.tokens, 1.0, query.peak, 1.0) / (hours * 1_h);
  if (query.mfu > 1.0)
    return fail("--chip-hours",
                fmt::format("the run would take {} hours at the full peak", human_number(std::ceil(query.mfu * hours))),
                "a chip, a dtype or a number of tokens differs from the run's");
  return {};
}

/// The share of the peak that training reaches, given as such, as a rate, or by what a run took.
Result<void> read_mfu(const Request& request, ScalingQuery& query) {
  if (const auto hours = request.value("chip-hours")) return read_chip_hours(*hours, query);
  ASSAY_TRY(share, verbs::read_mfu(request));
  const auto rate = request.value("rate");
  if (share) {
    query.mfu = *share;
  } else if (rate) {
    ASSAY_TRY(reached, parse_as<FlopsPerSecond>(*rate, "--rate"));
    query.mfu = reached / query.peak.value;
    if (!(query.mfu > 0.0) || query.mfu > 1.0)
      return fail("--rate",
                  fmt::format("{} is not between 0 and the peak of {}", human(reached), human(query.peak.value)),
                  "give the rate that one chip reaches");
  } else if (query.tokens || query.batch) {
    query.notes.emplace_back("training time assumes the full peak; --mfu 0.4 is more realistic");
  }
  return {};
}

Bytes bytes_of(Dtype dtype) { return storage(dtype, 1.0); }

Result<void> read_format(const Request& request, std::string_view option, Bytes& out) {
  const auto text = request.value(option);
  if (!text) return {};
  if (*text == "none") {
    out = {};
    return {};
  }
  ASSAY_TRY(dtype, parse_dtype(*text, fmt::format("--{}", option)));
  out = bytes_of(dtype);
  return {};
}

/// "D=8192,F=28672,L=80,E=128,k=4"
Result<void> read_sizes(std::string_view text, ScalingQuery& query) {
  const std::vector<std::string> known{"D", "F", "L", "E", "k"};
  bool has_d = false, has_f = false;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string name(trim(std::string_view(part).substr(0, equals)));
    if (equals == std::string::npos || std::find(known.begin(), known.end(), name) == known.end())
      return fail("--sizes", fmt::format("{} is none of D=, F=, L=, E=, k=", in_quotes(part)),
                  "e.g. --sizes D=8192,F=28672: d_model and d_ff; L layers, E experts, k of them per token",
                  Error::Kind::usage);
    ASSAY_TRY(count, parse_count(part.substr(equals + 1), "--sizes " + name));
    const auto value = static_cast<double>(count);
    if (name == "D") {
      query.shape.d_model = value;
      has_d = true;
    }
    if (name == "F") {
      query.shape.d_ff = value;
      has_f = true;
    }
    if (name == "L") query.layers = value;
    if (name == "E") query.shape.experts = value;
    if (name == "k") query.shape.experts_per_token = value;
  }
  if (!has_d || !has_f)
    return fail("--sizes", fmt::format("{} is missing", has_d ? "F" : "D"), "e.g. --sizes D=8192,F=28672",
                Error::Kind::usage);
  if (query.shape.experts_per_token > query.shape.experts)
    return fail("--sizes",
                fmt::format("{} experts per token of {}", query.shape.experts_per_token, query.shape.experts),
                "k is at most E");
  return {};
}

/// The most frequent kind of layer stands for all of them.
Result<void> read_layer(const Request& request, const Context& context, ScalingQuery& query) {
  const auto sizes = request.value("sizes");
  const bool named = !request.arguments().empty();
  if (named == sizes.has_value())
    return fail("scaling", named ? "a model and --sizes contradict each other" : "a model is missing",
                "name a model, e.g. llama-3-70b, or give --sizes D=8192,F=28672", Error::Kind::usage);
  if (sizes) {
    ASSAY_CHECK(read_sizes(*sizes, query));
    query.shape.matrices = request.has("gated") ? 3.0 : 2.0;
    query.model = "an MLP of " + *sizes;
    // Assume the attention of the first transformers: as many key heads as query heads, d_model wide.
    query.attention_params = 4.0 * query.shape.d_model * query.shape.d_model;
    query.attention_per_key = Flops(4.0 * query.shape.d_model);
    return {};
  }
  if (request.has("gated"))
    return fail("--gated", "the model already says whether its MLP is gated", "leave it out", Error::Kind::usage);
  ASSAY_TRY(imported, model::load_model(request.arguments().front(), context.catalogue, "model",
                                        request.value("as").value_or("")));
  ASSAY_CHECK(lower::check_lowers(imported.model, "model"));
  const model::Transformer& model = imported.model;
  const model::LayerStack& stack = model.decoder;
  std::optional<std::size_t> most;
  for (std::size_t i = 0; i < stack.kinds.size(); ++i)
    if (stack.kinds[i].feed_forward && (!most || stack.count(i) > stack.count(*most))) most = i;
  if (!most) return fail("model", fmt::format("{} has no MLP", model.id), "give sizes of one: --sizes D=8192,F=28672");
  const model::FeedForward& block = *stack.kinds[*most].feed_forward;
  if (const auto& attention = stack.kinds[*most].attention;
      attention && attention->window == 0 && attention->index_heads == 0) {
    query.attention_per_key =
        2_FLOP * static_cast<double>(attention->heads * (attention->head_dim + attention->value_dim));
    query.attention_params =
        static_cast<double>(model::layer_parameter_counts(model, stack.kinds[*most]).of(model::Part::attention));
  }
  query.model = model.id;
  query.shape.d_model = static_cast<double>(model.d_model);
  query.shape.d_ff = static_cast<double>(block.width);
  query.shape.matrices = block.gated ? 3.0 : 2.0;
  if (block.experts > 0) {
    query.shape.experts = static_cast<double>(block.experts);
    query.shape.experts_per_token = static_cast<double>(block.experts_per_token);
    query.shape.shared = static_cast<double>(block.shared_width) / static_cast<double>(block.width);
  }
  query.layers = static_cast<double>(stack.layers());
  const model::ParameterCounts counts = model::parameter_counts(model);
  query.parameters = static_cast<double>(counts.total);
  query.active = static_cast<double>(counts.active);
  if (stack.kinds.size() > 1)
    query.notes.push_back(
        fmt::format("the layer is the most frequent kind, {} of {}", stack.count(*most), stack.layers()));
  return {};
}

/// "D+2F": elements kept per token and layer.
Result<void> read_kept(const Request& request, ScalingQuery& query) {
  query.kept_text = request.value("keep").value_or("D+2F");
  for (const std::string& part : split(query.kept_text, '+')) {
    const std::string_view term = trim(part);
    const char letter = term.empty() ? ' ' : term.back();
    double count = 1.0;
    if (term.size() > 1) {
      const auto number = parse_number(term.substr(0, term.size() - 1));
      count = number && *number > 0.0 ? *number : 0.0;
    }
    if ((letter != 'D' && letter != 'F') || count == 0.0)
      return fail("--keep", fmt::format("{} is not a sum of D and F", in_quotes(query.kept_text)),
                  "elements saved per token and layer: D+2F, 4D, D", Error::Kind::usage);
    query.kept += count * (letter == 'D' ? query.shape.d_model : query.shape.d_ff);
  }
  if (request.has("keep") && (!query.batch || query.layers == 0.0))
    query.notes.push_back(fmt::format("--keep is not used: saved activations also need {}",
                                      !query.batch ? "--batch" : "the number of layers, L in --sizes"));
  return {};
}

Result<void> read_sweep(const Request& request, ScalingQuery& query) {
  static constexpr VariedNumber axes[] = {{"batch", &parse_varied_count, "1M..16M"},
                                          {"tp", &parse_varied_count, "1,2,4"},
                                          {"chips", &parse_varied_count, "64..1024"}};
  ASSAY_SET(query.sweep, read_variation(request, axes));
  if (query.sweep && query.sweep->name != "batch" && !query.batch)
    return fail("--vary", "this sweep needs a batch", "add --batch TOKENS", Error::Kind::usage);
  return {};
}

/// Ways must be whole numbers of chips of a slice; the error names the nearest.
Result<void> check_ways(const ScalingQuery& query) {
  const std::int64_t chips = query.cluster.chips_per_slice;
  const std::pair<const char*, std::optional<std::int64_t>> all[] = {
      {"--tp", query.tensor}, {"--fsdp", query.fsdp}, {"--pp", query.pipeline}, {"--ep", query.expert}};
  for (const auto& [option, ways] : all) {
    if (!ways || (*ways <= chips && chips % *ways == 0)) continue;
    std::int64_t below = std::min(*ways, chips), above = *ways;
    while (chips % below != 0) --below;
    while (above <= chips && chips % above != 0) ++above;
    return fail(option, fmt::format("{} ways do not divide {} chips", *ways, human_count(chips)),
                above <= chips ? fmt::format("the nearest that do are {} and {}", below, above)
                               : fmt::format("the nearest that does is {}", below));
  }
  const std::int64_t model_ways = query.tensor.value_or(1) * query.pipeline.value_or(1);
  if (chips % model_ways != 0)
    return fail("--tp", fmt::format("{} tensor x pipeline ways do not divide {} chips", model_ways, human_count(chips)),
                "change --tp or --pp");
  if (query.fsdp && query.tensor && *query.fsdp * model_ways != chips)
    return fail("--fsdp",
                fmt::format("the split covers {} chips, a slice has {}", human_count(*query.fsdp * model_ways),
                            human_count(chips)),
                fmt::format("--fsdp {} goes with these --tp and --pp; it may be left out", chips / model_ways));
  return {};
}

Result<void> check_axes(const ScalingQuery& query) {
  const bool any = query.axes_fsdp || query.axes_tensor;
  if (!any) return {};
  if (!query.cluster.torus)
    return fail(query.axes_fsdp ? "--axes-fsdp" : "--axes-tp",
                fmt::format("{} is not a torus, so it has no axes", query.cluster.text), "leave it out",
                Error::Kind::usage);
  const auto& axes = query.cluster.torus->axes;
  const auto used = std::count_if(axes.begin(), axes.end(), [](const hardware::Axis& axis) { return axis.size > 1; });
  for (const auto& [option, count] :
       {std::pair{"--axes-fsdp", query.axes_fsdp}, std::pair{"--axes-tp", query.axes_tensor}})
    if (count && *count > used)
      return fail(option, fmt::format("{} has {} axes longer than one, not {}", query.cluster.text, used, *count),
                  fmt::format("give 1 to {}", used), Error::Kind::usage);
  if (query.axes_fsdp.value_or(1) + query.axes_tensor.value_or(1) > used + 1)
    return fail("--axes-fsdp",
                fmt::format("{} and {} of {} axes: at most one can be shared", query.axes_fsdp.value_or(1),
                            query.axes_tensor.value_or(1), used),
                "give fewer", Error::Kind::usage);
  return {};
}

}  // namespace

Result<ScalingQuery> read_scaling_query(const Request& request, const Context& context) {
  ScalingQuery query;
  ASSAY_TRY(cluster, cluster_of(request, context));
  query.cluster = cluster;
  query.slice = cluster;
  if (cluster.torus) {
    query.slice.slices = 1;
    query.slice.levels.clear();
  }
  ASSAY_CHECK(read_layer(request, context, query));
  if (const auto text = request.value("dtype")) ASSAY_SET(query.dtype, parse_dtype(*text, "--dtype"));
  ASSAY_SET(query.peak, hardware::peak_rate(cluster.chip, query.dtype, "--dtype"));
  query.shape.element = bytes_of(query.dtype);
  if (query.shape.element < bytes_of(Dtype::bf16))
    query.notes.push_back(
        fmt::format("--dtype {0} counts activations in {0}, too; `assay serve --compute {0}` keeps "
                    "them in bf16, so its limits of tensor parallelism are lower",
                    name(query.dtype)));
  ASSAY_CHECK(read_format(request, "params", query.state.parameters));
  ASSAY_CHECK(read_format(request, "grads", query.state.gradients));
  ASSAY_CHECK(read_format(request, "master", query.state.master));
  ASSAY_CHECK(read_format(request, "moments", query.state.moment));
  std::optional<std::int64_t> sequence, chunks;
  ASSAY_CHECK(read_count(request, "seq", sequence));
  query.sequence = sequence.value_or(0);
  ASSAY_CHECK(read_batch(request, query));
  ASSAY_CHECK(read_tokens(request, "tokens", query.tokens));
  if (const auto text = request.value("parameters")) {
    ASSAY_TRY(count, parse_count(*text, "--parameters"));
    query.parameters = query.active = static_cast<double>(count);
  }
  ASSAY_CHECK(read_kept(request, query));
  ASSAY_CHECK(read_count(request, "fsdp", query.fsdp));
  ASSAY_CHECK(read_count(request, "tp", query.tensor));
  ASSAY_CHECK(read_count(request, "pp", query.pipeline));
  ASSAY_CHECK(read_count(request, "ep", query.expert));
  ASSAY_CHECK(read_count(request, "micro-batches", query.micro_batches));
  ASSAY_CHECK(read_count(request, "interleave", chunks));
  ASSAY_CHECK(read_count(request, "axes-fsdp", query.axes_fsdp));
  ASSAY_CHECK(read_count(request, "axes-tp", query.axes_tensor));
  query.chunks = chunks.value_or(1);
  ASSAY_CHECK(read_mfu(request, query));
  if (query.expert && query.shape.experts < static_cast<double>(*query.expert))
    return fail("--ep", fmt::format("{} ways for {} experts", *query.expert, query.shape.experts),
                query.shape.experts > 1 ? "at most one way per expert" : "the layer has no experts; give E and k");
  ASSAY_CHECK(check_ways(query));
  ASSAY_CHECK(check_axes(query));
  ASSAY_CHECK(read_sweep(request, query));
  query.list = request.has("list");
  if (const auto text = request.value("picture")) query.times_in_picture = *text == "time";
  return query;
}

}  // namespace assay::verbs::scaling
