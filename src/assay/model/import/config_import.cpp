#include "assay/model/import/config_import.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/model/import/architecture.h"
#include "assay/model/import/composition.h"
#include "assay/model/import/quantisation_config.h"
#include "assay/model/weights.h"

namespace assay::model {
namespace {

/// The names of the catalogue's families, and what they lead to.
class Families {
 public:
  explicit Families(const std::vector<FamilyName>& names) : names_(names) {}

  const FamilyName* of_type(std::string_view model_type) const { return find(&FamilyName::model_type, model_type); }
  const FamilyName* of_architecture(std::string_view name) const {
    return name.empty() ? nullptr : find(&FamilyName::architecture, name);
  }
  /// The family of a configuration that says neither type nor architecture.
  const FamilyName* of_keys(const Json& config) const {
    const auto found = std::find_if(names_.begin(), names_.end(), [&](const FamilyName& family) {
      return !family.key.empty() && config.find(family.key);
    });
    return found == names_.end() ? nullptr : &*found;
  }
  std::vector<std::string> known(std::string FamilyName::*name) const {
    std::vector<std::string> out;
    for (const FamilyName& family : names_)
      if (!(family.*name).empty()) out.push_back(family.*name);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

 private:
  const FamilyName* find(std::string FamilyName::*name, std::string_view wanted) const {
    const auto found =
        std::find_if(names_.begin(), names_.end(), [&](const FamilyName& family) { return family.*name == wanted; });
    return found == names_.end() ? nullptr : &*found;
  }

  const std::vector<FamilyName>& names_;
};

/// The model type of --as.
Result<const FamilyName*> family_as(const Families& families, std::string_view as) {
  if (const FamilyName* family = families.of_type(as)) return family;
  const auto known = families.known(&FamilyName::model_type);
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
Result<const FamilyName*> choose_family(const Families& families, const Json& config, std::string_view file,
                                        const hardware::Catalogue& catalogue) {
  const Json* type = config.find("model_type");
  const Json* list = config.find("architectures");
  std::string built_as;
  if (list && list->kind == Json::Kind::list && !list->items.empty() && list->items[0].kind == Json::Kind::text)
    built_as = list->items[0].text;
  if (type && type->kind != Json::Kind::text && type->kind != Json::Kind::null)
    return fail(fmt::format("{}: model_type", file), fmt::format("must be text, got {}", describe(type->kind)),
                "e.g. \"llama\"");
  if (type && type->kind == Json::Kind::text) {
    const FamilyName* named = families.of_type(type->text);
    const FamilyName* built = families.of_architecture(built_as);
    // A checkpoint with its own code may use any name for its type, even another family's.
    if (built && (!named || named->id != built->id)) return built;
    if (named) return named;
    if (const auto known = architecture(type->text, catalogue); known && (*known)->unsupported)
      return fail(fmt::format("{}: model_type", file),
                  fmt::format("{} is not supported: {}", in_quotes(type->text), *(*known)->unsupported),
                  "docs/models.md lists supported models");
    const auto known = families.known(&FamilyName::model_type);
    return fail(fmt::format("{}: model_type", file), fmt::format("unknown model type {}", in_quotes(type->text)),
                remedy(config, type->text, known));
  }
  if (const FamilyName* family = families.of_architecture(built_as)) return family;
  if (built_as.empty()) {
    if (const FamilyName* family = families.of_keys(config)) return family;
    return fail(fmt::format("{}: model_type", file), "is missing, and so is architectures",
                "is this the config.json of a model?");
  }
  const auto known = families.known(&FamilyName::architecture);
  return fail(fmt::format("{}: architectures", file), fmt::format("unknown architecture {}", in_quotes(built_as)),
              remedy(config, built_as, known));
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
  model.for_each_kind([&](const Layer& layer, std::int64_t times) { add(layer_weights(model, layer), times); });
  if (total > most_parameters)
    return fail(std::string(file),
                fmt::format("the sizes add up to {} parameters, more than the limit of 1e15", human_number(total)),
                "is one of the sizes too large?");
  return {};
}

}  // namespace

Result<std::vector<std::string>> known_model_types(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(names, family_names(catalogue));
  return Families(*names).known(&FamilyName::model_type);
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
  ASSAY_TRY(names, family_names(catalogue));
  const Families families(*names);
  auto family = as.empty() ? choose_family(families, *config, file, catalogue) : family_as(families, as);
  // The inner part may name no type of its own.
  if (!family && config != &document)
    if (auto outer = choose_family(families, document, file, catalogue)) family = outer;
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
  for (const char* key : {"model_type", "architectures", "dtype", "torch_dtype"}) in.ignore(key);
  ASSAY_TRY(how, architecture((*family)->id, catalogue));
  ASSAY_CHECK(read_as(*how, in, catalogue, imported.model));
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

}  // namespace assay::model
