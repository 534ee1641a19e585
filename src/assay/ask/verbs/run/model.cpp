#include "assay/ask/verbs/run/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/option_values.h"
#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"
#include "assay/program/lower/lowering.h"

namespace assay::verbs::run {
namespace {

/// Beyond this a step takes minutes.
constexpr std::int64_t most_parameters = 20'000'000;
constexpr std::string_view standard_text = "texts/guide.txt";

struct Sizes {
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, ff, experts;
};

std::int64_t rounded(double size, std::int64_t multiple) {
  const auto count = static_cast<std::int64_t>(size / static_cast<double>(multiple) + 0.5);
  return std::max<std::int64_t>(1, count) * multiple;
}

/// Attention of another width: heads of 16 unless their number is given, as many key heads per query head as before.
Result<void> resize(model::Attention& a, std::int64_t d_model, const Sizes& sizes) {
  constexpr std::int64_t usual_head = 16;
  const std::int64_t shared_by = std::max<std::int64_t>(1, a.heads / std::max<std::int64_t>(1, a.kv_heads));
  if (sizes.hidden || sizes.heads) {
    a.heads = sizes.heads.value_or(std::max<std::int64_t>(1, d_model / usual_head));
    if (d_model % a.heads != 0)
      return fail(sizes.heads ? "--heads" : "--hidden",
                  fmt::format("a width of {} does not divide into {} heads", d_model, a.heads),
                  sizes.heads ? fmt::format("give heads that divide {}, or another --hidden", d_model)
                              : fmt::format("give --hidden {}, a multiple of {} for heads of {}, or --heads",
                                            rounded(static_cast<double>(d_model), usual_head), usual_head, usual_head));
    const std::int64_t head = d_model / a.heads;
    a.kv_heads = std::max<std::int64_t>(1, a.heads / std::min(shared_by, a.heads));
    a.head_dim = a.value_dim = head;
    if (a.kv_rank > 0) {
      a.kv_rank = d_model / 4;
      a.q_rank = a.q_rank > 0 ? d_model / 2 : 0;
      a.rope_dim = std::max<std::int64_t>(2, head / 2 / 2 * 2);
      a.head_dim = head + a.rope_dim;
      a.kv_heads = a.heads;
    }
  }
  if (sizes.kv_heads) a.kv_heads = *sizes.kv_heads;
  if (a.heads % a.kv_heads != 0)
    return fail("--kv-heads", fmt::format("{} heads do not divide among {} key heads", a.heads, a.kv_heads),
                fmt::format("give a number that divides {}", a.heads));
  return {};
}

Result<void> resize(model::Layer& layer, double scale, std::int64_t d_model, const Sizes& sizes) {
  if (layer.state_space && sizes.hidden)
    return fail("--hidden", "layers with a state are not made smaller by options",
                "write the small model as a config.json");
  for (std::optional<model::Attention>* a : {&layer.attention, &layer.cross_attention})
    if (*a) ASSAY_CHECK(resize(**a, d_model, sizes));
  if (!layer.feed_forward) return {};
  model::FeedForward& f = *layer.feed_forward;
  constexpr std::int64_t multiple = 16;
  if (sizes.ff)
    f.width = *sizes.ff;
  else if (sizes.hidden)
    f.width = rounded(scale * static_cast<double>(f.width), multiple);
  if (sizes.hidden && f.shared_width > 0)
    f.shared_width = rounded(scale * static_cast<double>(f.shared_width), multiple);
  if (sizes.hidden && f.latent > 0) f.latent = rounded(scale * static_cast<double>(f.latent), multiple);
  if (sizes.experts) {
    if (f.experts == 0) return {};
    f.experts = *sizes.experts;
    f.experts_per_token = std::min(f.experts_per_token, f.experts);
    f.expert_groups = f.groups_per_token = 1;
  }
  return {};
}

void keep_layers(model::LayerStack& stack, std::int64_t count) {
  model::LayerStack kept;
  for (std::int64_t i = 0; i < std::min(count, stack.layers()); ++i)
    kept.add(stack.kinds[stack.order[static_cast<std::size_t>(i)]]);
  stack = std::move(kept);
}

Result<void> resize(model::Transformer& model, const Sizes& sizes) {
  if (sizes.layers) keep_layers(model.decoder, *sizes.layers);
  if (sizes.layers && model.encoder) keep_layers(*model.encoder, *sizes.layers);
  const double scale = static_cast<double>(sizes.hidden.value_or(model.d_model)) / static_cast<double>(model.d_model);
  if (sizes.hidden) {
    model.d_model = *sizes.hidden;
    model.embedding_width = 0;
  }
  for (model::LayerStack* stack : {&model.decoder, model.encoder ? &*model.encoder : nullptr})
    for (std::size_t i = 0; stack && i < stack->kinds.size(); ++i)
      ASSAY_CHECK(resize(stack->kinds[i], scale, model.d_model, sizes));
  if (sizes.experts && !model.has_experts())
    return fail("--experts", fmt::format("{} has no experts", model.id), "leave it out");
  return {};
}

}  // namespace

Result<void> check_devices(const lower::Parallelism& p) {
  constexpr std::int64_t most = 1024;
  std::int64_t devices = 1;
  for (const std::int64_t ways : {p.data, p.fsdp, p.tensor, p.context, p.pipeline}) {
    if (ways > most || devices > most / ways)
      return fail("run", fmt::format("a run has at most {} devices", most),
                  "use smaller --dp, --fsdp, --tp, --cp, --pp");
    devices *= ways;
  }
  return {};
}

Result<RunText> read_text(const Request& request, const Context& context) {
  RunText out;
  if (const auto file = request.value("text")) {
    ASSAY_TRY(text, hardware::read_file(*file, "--text"));
    out.name = *file;
    out.text = std::move(text);
  } else {
    for (const auto& [path, text] : context.catalogue.files(standard_text)) {
      out.name = path;
      out.text = text;
    }
  }
  std::int64_t vocabulary = engine::Tokenizer::bytes;
  if (const auto text = request.value("vocabulary")) {
    ASSAY_TRY(count, parse_count(*text, "--vocabulary"));
    constexpr std::int64_t most = 4096;
    if (count < engine::Tokenizer::bytes || count > most)
      return fail("--vocabulary", fmt::format("{} is not from {} to {}", count, engine::Tokenizer::bytes, most),
                  "256 are the bytes; 512 is a good number of byte pairs for a small text");
    vocabulary = count;
  }
  if (vocabulary > engine::Tokenizer::bytes) out.tokenizer = engine::Tokenizer::learned(out.text, vocabulary);
  out.tokens = out.tokenizer.encode(out.text);
  return out;
}

Result<model::ImportedModel> read_model(const Request& request, const Context& context, std::int64_t vocabulary,
                                        std::vector<std::string>& notes) {
  if (request.arguments().size() != 2)
    return fail("run", "give one model", "e.g. assay run train llama-3-8b --layers 4 --hidden 64", Error::Kind::usage);
  ASSAY_TRY(imported,
            model::load_model(request.arguments()[1], context.catalogue, "MODEL", request.value("as").value_or("")));
  ASSAY_CHECK(lower::check_lowers(imported.model, "MODEL"));
  Sizes sizes;
  ASSAY_CHECK(read_count(request, "layers", sizes.layers));
  ASSAY_CHECK(read_count(request, "hidden", sizes.hidden));
  ASSAY_CHECK(read_count(request, "heads", sizes.heads));
  ASSAY_CHECK(read_count(request, "kv-heads", sizes.kv_heads));
  ASSAY_CHECK(read_count(request, "ff", sizes.ff));
  ASSAY_CHECK(read_count(request, "experts", sizes.experts));
  ASSAY_CHECK(resize(imported.model, sizes));
  // A GPU runs real sizes: tokens are then some of the model's own vocabulary.
  const bool on_gpu = is_on_gpu(request);
  if (!on_gpu || request.has("vocabulary") || imported.model.vocabulary < vocabulary) {
    imported.model.vocabulary = vocabulary;
    imported.model.extra_embeddings = 0;
    if (imported.model.token_input_vocabulary > 0) imported.model.token_input_vocabulary = vocabulary;
  }
  const std::int64_t parameters = model::parameter_counts(imported.model).total;
  if (parameters > most_parameters && (!on_gpu || request.has("check")))
    return fail("MODEL",
                fmt::format("{} has {} parameters, and a run in fp64 on this machine takes at most {}",
                            imported.model.id, human_count(parameters), human_count(most_parameters)),
                "make it small: --layers 4 --hidden 64");
  notes.push_back(fmt::format("the model as it runs: {}", size_text(imported.model)));
  return imported;
}

std::string size_text(const model::Transformer& model) {
  return fmt::format("{} layers, d_model {}, {} parameters", model.decoder.layers(), model.d_model,
                     human_count(model::parameter_counts(model).total));
}

}  // namespace assay::verbs::run
