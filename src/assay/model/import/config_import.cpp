#include "assay/model/import/config_import.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/model/import/composition.h"
#include "assay/model/import/families.h"
#include "assay/model/import/quantisation_config.h"
#include "assay/model/weights.h"

namespace assay::model {
namespace {

constexpr std::int64_t most_layers = 10'000;

std::vector<std::span<const Family>> all_families() {
  return {llama_families(),       expert_families(),  latent_families(),     classic_families(),
          state_space_families(), hybrid_families(),  gemma4_families(),     encoder_decoder_families(),
          generic_families(),     renamed_families(), compressed_families(), dense_families(),
          recurrent_families(),   encoder_families(), rwkv_families(),       shared_families()};
}

const Family* family_of(std::string_view model_type) {
  for (std::span<const Family> group : all_families())
    for (const Family& family : group)
      if (family.model_type == model_type) return &family;
  return nullptr;
}

const Family* family_by_architecture(std::string_view architecture) {
  for (std::span<const Family> group : all_families())
    for (const Family& family : group)
      if (!family.architecture.empty() && family.architecture == architecture) return &family;
  return nullptr;
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  for (std::span<const Family> group : all_families())
    for (const Family& family : group)
      if (!family.architecture.empty()) names.emplace_back(family.architecture);
  return names;
}

/// Architectures that are known and cannot be described yet, and why.
constexpr std::pair<std::string_view, std::string_view> beyond[] = {{"whisper", "its encoder reads audio"}};

/// The model type of --as.
Result<const Family*> family_as(std::string_view as) {
  if (const Family* family = family_of(as)) return family;
  const auto known = known_model_types();
  return fail("--as", fmt::format("unknown model type {}", in_quotes(as)),
              nearest(as, known).empty() ? "docs/models.md lists supported models; llama is the most common"
                                         : suggestion(as, known),
              Error::Kind::missing);
}

/// What to do about an architecture that is not known.
std::string remedy(const Json& config, std::string_view name, const std::vector<std::string>& known) {
  std::string text = nearest(name, known).empty() ? "docs/models.md lists supported models" : suggestion(name, known);
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"})
    if (!config.find(key)) return text;
  return text + "; its fields are those of Llama: --as llama reads it so";
}

/// By the first of `architectures` where that is known, else by model_type.
Result<const Family*> choose_family(const Json& config, std::string_view file) {
  const Json* type = config.find("model_type");
  const Json* list = config.find("architectures");
  std::string architecture;
  if (list && list->kind == Json::Kind::list && !list->items.empty() && list->items[0].kind == Json::Kind::text)
    architecture = list->items[0].text;
  if (type && type->kind != Json::Kind::text && type->kind != Json::Kind::null)
    return fail(fmt::format("{}: model_type", file), fmt::format("must be text, got {}", describe(type->kind)),
                "e.g. \"llama\"");
  if (type && type->kind == Json::Kind::text) {
    const Family* named = family_of(type->text);
    const Family* built = family_by_architecture(architecture);
    // A checkpoint with its own code may use any name for its type, even another family's.
    if (built && (!named || named->fill != built->fill)) return built;
    if (named) return named;
    for (const auto& [name, why] : beyond)
      if (type->text == name)
        return fail(fmt::format("{}: model_type", file), fmt::format("{} is not supported: {}", in_quotes(name), why),
                    "docs/models.md lists supported models");
    const auto known = known_model_types();
    return fail(fmt::format("{}: model_type", file), fmt::format("unknown model type {}", in_quotes(type->text)),
                remedy(config, type->text, known));
  }
  if (const Family* family = family_by_architecture(architecture)) return family;
  if (architecture.empty() && config.find("ssm_cfg")) return family_of("mamba_ssm");
  if (architecture.empty())
    return fail(fmt::format("{}: model_type", file), "is missing, and so is architectures",
                "is this the config.json of a model?");
  const auto known = known_architectures();
  return fail(fmt::format("{}: architectures", file), fmt::format("unknown architecture {}", in_quotes(architecture)),
              remedy(config, architecture, known));
}

/// The name of the published weights' number format, if we support it.
Result<std::optional<Dtype>> read_dtype(const Json& config, std::string_view file, std::vector<std::string>& notes) {
  for (const char* key : {"dtype", "torch_dtype"})
    if (const Json* value = config.find(key); value && value->kind != Json::Kind::null) {
      if (value->kind != Json::Kind::text)
        return fail(fmt::format("{}: {}", file, key), fmt::format("must be text, got {}", describe(value->kind)),
                    "e.g. \"bfloat16\"");
      if (const auto dtype = parse_dtype(value->text, key)) return *dtype;
      if (value->text != "auto")
        notes.push_back(fmt::format("{} {} is not a known format: bf16 is assumed", key, in_quotes(value->text)));
    }
  return std::nullopt;
}

/// Duplicate keys in an object, at any depth: the last one counts.
void note_repeated(const Json& value, const std::string& prefix, std::vector<std::string>& notes) {
  constexpr std::size_t enough = 10;
  std::vector<std::string_view> keys;
  for (const auto& [key, member] : value.members) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 1; i < keys.size(); ++i)
    if (keys[i] == keys[i - 1] && (i < 2 || keys[i] != keys[i - 2]) && notes.size() < enough)
      notes.push_back(
          fmt::format("{} is given more than once: the last one counts", in_quotes(prefix + std::string(keys[i]))));
  for (const auto& [key, member] : value.members) note_repeated(member, prefix + key + ".", notes);
  for (const Json& item : value.items) note_repeated(item, prefix, notes);
}

/// A family whose layers are all of one kind may still list them.
void check_layer_types(ConfigReader& in, std::int64_t layers) {
  if (in.was_read("layer_types") || !in.has("layer_types")) return;
  for (const std::string& type : read_layer_types(in, layers))
    if (type != "full_attention" && type != "attention") {
      in.fault("layer_types", fmt::format("has {}, but all layers of this architecture are alike", in_quotes(type)));
      return;
    }
}

/// Sizes that are each in range may still make a model too large to count.
Result<void> check_total(const Transformer& model, std::string_view file) {
  constexpr double most_parameters = 1e15;
  double total = 0;
  const auto add = [&](const std::vector<Weight>& weights, std::int64_t times) {
    for (const Weight& weight : weights) {
      auto elements = static_cast<double>(weight.copies(times));
      for (std::size_t i = 0; i < weight.rank; ++i) elements *= static_cast<double>(weight.dims[i].size);
      total += elements;
    }
  };
  add(outer_weights(model), 1);
  for (const LayerStack* stack : {&model.decoder, model.encoder ? &*model.encoder : nullptr})
    for (std::size_t i = 0; stack && i < stack->kinds.size(); ++i)
      add(layer_weights(model, stack->kinds[i]), stack->count(i));
  if (total > most_parameters)
    return fail(std::string(file),
                fmt::format("the sizes add up to {} parameters, more than the limit of 1e15", human_number(total)),
                "is one of the sizes too large?");
  return {};
}

}  // namespace

std::vector<std::string> known_model_types() {
  std::vector<std::string> names;
  for (std::span<const Family> group : all_families())
    for (const Family& family : group) names.emplace_back(family.model_type);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<ImportedModel> import_config(const Json& document, std::string_view file, const hardware::Catalogue& catalogue,
                                    std::string_view as) {
  // A model that also speaks nests its language model in thinker_config.
  if (const Json* inner = document.find("thinker_config"); inner && inner->kind == Json::Kind::object)
    return import_config(*inner, file, catalogue, as);
  if (document.kind != Json::Kind::object)
    return fail(std::string(file), fmt::format("a configuration is an object, got {}", describe(document.kind)),
                "is this the config.json of a model?");
  ImportedModel imported;
  const Json* config = &document;
  std::string prefix;
  // A multimodal wrapper holds the language model's configuration inside.
  for (const char* key : {"text_config", "llm_config", "language_config"})
    if (const Json* inner = document.find(key); inner && inner->kind != Json::Kind::null) {
      if (inner->kind != Json::Kind::object)
        return fail(fmt::format("{}: {}", file, key), fmt::format("must be an object, got {}", describe(inner->kind)),
                    "it holds the configuration of the language model");
      if (inner->members.empty()) continue;
      config = inner;
      prefix = fmt::format("{}.", key);
      std::string towers;
      int left_out = 0;
      for (const char* tower : {"vision_config", "audio_config"})
        if (const Json* there = document.find(tower); there && there->kind == Json::Kind::object)
          towers += fmt::format("{}{}", left_out++ == 0 ? "; " : " and ", tower);
      imported.notes.push_back(fmt::format("only the language model ({}) is read{}{}", key, towers,
                                           left_out == 0   ? ""
                                           : left_out == 1 ? " is left out"
                                                           : " are left out"));
      break;
    }
  auto family = as.empty() ? choose_family(*config, file) : family_as(as);
  // The inner part may name no type of its own.
  if (!family && config != &document)
    if (auto outer = choose_family(document, file)) family = outer;
  if (!family) return tl::unexpected<Error>(family.error());
  imported.family = (*family)->model_type;
  if (!as.empty()) imported.notes.push_back(fmt::format("the configuration is read as {} (--as)", as));

  // Often only the wrapper says whether the head is tied.
  Json completed;
  if (const Json* tied = document.find("tie_word_embeddings");
      config != &document && tied && !config->find("tie_word_embeddings")) {
    completed = *config;
    completed.members.emplace_back("tie_word_embeddings", *tied);
    config = &completed;
  }
  if (prefix.empty())  // a wrapper that nests nothing
    if (const Json* tower = document.find("vision_config"); tower && tower->kind == Json::Kind::object)
      imported.notes.push_back("only the language model is read; vision_config is left out");
  ConfigReader in(*config, std::string(file), prefix);
  in.ignore({"model_type", "architectures", "dtype", "torch_dtype"});
  (*family)->fill(in, imported.model);
  ASSAY_TRY(codes, family_codes(catalogue));
  read_composition(*config, imported.family, *codes, imported.model);
  check_layer_types(in, imported.model.decoder.layers());
  imported.defaults = std::move(in.notes());
  in.notes().clear();
  in.check_unread(!as.empty());
  imported.notes.insert(imported.notes.end(), in.notes().begin(), in.notes().end());
  ASSAY_CHECK(in.finish());
  ASSAY_CHECK(check_total(imported.model, file));
  if (imported.model.prediction_layers > 0)
    imported.notes.push_back(fmt::format("{} multi-token prediction layer{} not counted",
                                         imported.model.prediction_layers,
                                         imported.model.prediction_layers == 1 ? " is" : "s are"));
  for (const Json* where : {config, &document}) {
    ASSAY_TRY(dtype, read_dtype(*where, file, imported.notes));
    if (dtype) imported.model.dtype = *dtype;
    if (dtype || config == &document) break;
  }
  const Json* quantised = nullptr;
  for (const char* key : {"quantization_config", "quantization"})
    for (const Json* where : {config, &document})
      if (const Json* entry = where->find(key); !quantised && entry && entry->kind != Json::Kind::null)
        quantised = entry;
  if (quantised) imported.quantisation = read_quantisation(*quantised, imported.model, imported.notes);
  return imported;
}

Result<ImportedModel> import_config(std::string_view document, std::string_view file,
                                    const hardware::Catalogue& catalogue, std::string_view as) {
  ASSAY_TRY(json, parse_json(document, file));
  ASSAY_TRY(imported, import_config(json, file, catalogue, as));
  note_repeated(json, "", imported.notes);
  return std::move(imported);
}

std::int64_t read_layers(ConfigReader& in, ConfigReader::Keys keys, std::int64_t fallback) {
  const std::int64_t layers = fallback > 0 ? in.size(keys, fallback) : in.size(keys);
  if (layers <= most_layers) return layers;
  in.fault(*keys.begin(), fmt::format("must be at most {} layers, got {}", most_layers, layers),
           "larger numbers are implausible");
  return 1;
}

std::int64_t read_head_dim(ConfigReader& in, std::string_view key, std::int64_t hidden, std::int64_t heads) {
  // An invalid width was already reported and read as 1: a message that heads do not divide it would mislead.
  const bool reported = hidden == 1 && in.failed();
  if (!in.has(key) && hidden % heads != 0 && !reported) {
    in.fault(key, fmt::format("{} heads do not divide a width of {}, and {} is not given", heads, hidden, key),
             fmt::format("give {}, or a number of heads that divides {}", key, hidden));
    return 1;
  }
  return in.derived(key, std::max<std::int64_t>(hidden / heads, 1), "width / heads");
}

void check_groups(ConfigReader& in, std::int64_t heads, std::int64_t kv_heads) {
  if (kv_heads > heads || heads % kv_heads != 0)
    in.fault("num_key_value_heads", fmt::format("must divide the {} heads, got {}", heads, kv_heads),
             fmt::format("a divisor of {}, so that each is shared by as many heads", heads));
}

void check_experts(ConfigReader& in, const FeedForward& feed_forward, std::string_view k_key) {
  if (feed_forward.experts > 0 &&
      (feed_forward.experts_per_token < 1 || feed_forward.experts_per_token > feed_forward.experts))
    in.fault(k_key,
             fmt::format("must be between 1 and the {} experts, got {}", feed_forward.experts,
                         feed_forward.experts_per_token),
             "it is the number of experts per token");
}

Common read_common(ConfigReader& in, Transformer& model, const CommonDefaults& defaults) {
  Common common;
  model.d_model = in.size("hidden_size", defaults.hidden);
  model.vocabulary = in.size("vocab_size", defaults.vocabulary);
  model.max_context = in.count("max_position_embeddings", defaults.context);
  model.tied = in.flag("tie_word_embeddings", defaults.tied);
  common.layers = read_layers(in, {"num_hidden_layers"}, defaults.layers);
  Attention attention;
  attention.heads = in.size("num_attention_heads", defaults.heads);
  attention.kv_heads = defaults.kv_heads > 0
                           ? in.size("num_key_value_heads", defaults.kv_heads)
                           : in.derived("num_key_value_heads", attention.heads, "the number of heads");
  check_groups(in, attention.heads, attention.kv_heads);
  attention.head_dim = defaults.head_dim > 0 ? in.size("head_dim", defaults.head_dim)
                                             : read_head_dim(in, "head_dim", model.d_model, attention.heads);
  attention.value_dim = attention.head_dim;
  FeedForward feed_forward;
  if (defaults.intermediate >= 0) feed_forward.width = in.size("intermediate_size", defaults.intermediate);
  common.layer.attention = attention;
  common.layer.feed_forward = feed_forward;
  return common;
}

std::vector<std::string> read_layer_types(ConfigReader& in, std::int64_t layers) {
  auto types = in.texts("layer_types");
  if (!types.empty() && static_cast<std::int64_t>(types.size()) != layers) {
    in.fault("layer_types", fmt::format("lists {} layers, num_hidden_layers is {}", types.size(), layers),
             "one entry for each layer");
    types.clear();
  }
  for (const std::string& type : types)
    if (type != "full_attention" && type != "sliding_attention" && type != "chunked_attention" &&
        type != "linear_attention" && type != "attention" && type != "mamba") {
      in.fault("layer_types", fmt::format("unknown layer type {}", in_quotes(type)));
      break;
    }
  return types;
}

void add_windowed(ConfigReader& in, Transformer& model, const Common& common, std::int64_t window,
                  bool (*is_sliding)(std::int64_t, std::int64_t), std::int64_t period) {
  const auto types = read_layer_types(in, common.layers);
  Layer sliding = common.layer, full = common.layer;
  sliding.attention->window = window;
  full.attention->window = 0;
  for (std::int64_t i = 0; i < common.layers; ++i) {
    const bool slides =
        types.empty() ? is_sliding(i, period) : types[static_cast<std::size_t>(i)] == "sliding_attention";
    model.decoder.add(slides ? sliding : full);
  }
}

void turn_windows_only(Transformer& model) {
  const auto& kinds = model.decoder.kinds;
  if (std::none_of(kinds.begin(), kinds.end(), [](const Layer& layer) { return layer.attention->window > 0; })) return;
  for (Layer& layer : model.decoder.kinds) layer.attention->rotary = layer.attention->window > 0;
}

std::vector<bool> read_turning(ConfigReader& in, std::int64_t layers) {
  const auto listed = in.sizes("no_rope_layers");
  const std::int64_t interval = in.size("no_rope_layer_interval", 4);
  if (!listed.empty() && std::ssize(listed) != layers)
    in.fault("no_rope_layers", fmt::format("lists {} layers of {}", listed.size(), layers));
  std::vector<bool> out(static_cast<std::size_t>(layers));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = i < listed.size() ? listed[i] != 0 : (static_cast<std::int64_t>(i) + 1) % interval != 0;
  return out;
}

void read_attention_bias(ConfigReader& in, Attention& attention) {
  const bool bias = in.flag("attention_bias", false);
  set_bias(attention, bias, bias);
}

void add_all(Transformer& model, const Common& common) {
  for (std::int64_t i = 0; i < common.layers; ++i) model.decoder.add(common.layer);
}

void set_bias(Attention& attention, bool qkv, bool output) {
  attention.q_bias = attention.k_bias = attention.v_bias = qkv;
  attention.o_bias = output;
}

}  // namespace assay::model
