#include "assay/model/import/composition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/model/import/config_import.h"

namespace assay::model {
namespace {

/// One of some names, which are those of an enumeration in its order; absent: its first one.
template <class E>
void read_name(RecordReader& reader, std::string_view key, std::span<const std::string_view> names, E& out) {
  std::optional<std::string> said;
  reader.text(key, said);
  if (!said) return;
  const auto at = std::find(names.begin(), names.end(), *said);
  if (at == names.end())
    return reader.fault(key, fmt::format("unknown name {}", in_quotes(*said)),
                        fmt::format("one of {}", fmt::join(names.begin() + 1, names.end(), ", ")));
  out = static_cast<E>(at - names.begin());
}

void read_family(RecordReader& reader, FamilyCode& code) {
  read_name(reader, "projections", projection_names, code.projections);
  reader.flag("joined_gate", code.joined_gate);
  read_name(reader, "function", activation_names, code.function);
  if (reader.has("turning")) reader.number("turning", code.turning);
  if (code.turning > 1.0) reader.fault("turning", "is the share of a head that turns", "above 0, and at most 1");
  read_name(reader, "rotation", rotation_names, code.rotation);
  static constexpr std::string_view norms[] = {"one kernel", "composed"};
  read_name(reader, "norm", norms, code.composed_norm);
  read_name(reader, "logits", logits_names, code.logits);
}

Activation named_function(std::string_view name, const FamilyCodes& codes) {
  if (const auto other = codes.other_names.find(name); other != codes.other_names.end()) return other->second;
  const auto* const at = std::find(std::begin(activation_names), std::end(activation_names), name);
  return at == std::end(activation_names) ? Activation::simple
                                          : static_cast<Activation>(at - std::begin(activation_names));
}

const Json* text_of(const Json& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const Json* value = config.find(key); value && value->kind == Json::Kind::text) return value;
  return nullptr;
}

/// The first positive number that the configuration has under one of these keys, itself or for its rotary positions.
double rotary_number(const Json& config, std::initializer_list<std::string_view> keys, double fallback) {
  const auto number = [&](const Json& in) {
    for (const std::string_view key : keys)
      if (const Json* value = in.find(key); value && value->number > 0.0) return value->number;
    return 0.0;
  };
  if (const double own = number(config); own > 0.0) return own;
  for (const std::string_view key : {"rope_parameters", "rope_scaling"})
    if (const Json* inner = config.find(key); inner && inner->kind == Json::Kind::object)
      if (const double found = number(*inner); found > 0.0) return found;
  return fallback;
}

void compose_attention(const FamilyCode& code, double turned, Attention& attention) {
  if (code.projections != JoinedProjection::none) attention.joined = code.projections;
  if (code.rotation != Rotation::halves) attention.rotation = code.rotation;
  if (turned > 0.0 && attention.rotary)
    attention.turned = std::max<std::int64_t>(1, std::llround(turned * static_cast<double>(attention.head_dim)));
}

}  // namespace

Result<FamilyCodes> read_family_codes(std::string_view document, std::string_view file,
                                      const hardware::Catalogue& catalogue) {
  FamilyCodes codes;
  RecordFile shared{.name = std::string(file), .keys_hint = "catalogue/steps/code.toml lists the keys"};
  ASSAY_TRY(known, known_model_types(catalogue));
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources();
    reader.each_key("names", [&](const std::string& name, RecordReader& names) {
      read_name(names, name, activation_names, codes.other_names[name]);
    });
    reader.each_table("family", [&](const std::string& name, RecordReader& inner) {
      if (!std::binary_search(known.begin(), known.end(), name))
        inner.fault("", fmt::format("unknown model type {}", in_quotes(name)), suggestion(name, known));
      read_family(inner, codes.families[name]);
    });
  }));
  return codes;
}

Result<const FamilyCodes*> family_codes(const hardware::Catalogue& catalogue) {
  return catalogue.kept<FamilyCodes>("steps/code.toml", [&]() -> Result<FamilyCodes> {
    for (const auto& [path, text] : catalogue.files("steps/code.toml")) return read_family_codes(text, path, catalogue);
    return FamilyCodes{};
  });
}

void read_composition(const Json& config, std::string_view model_type, const FamilyCodes& codes, Transformer& model) {
  const auto known = codes.families.find(model_type);
  const FamilyCode code = known == codes.families.end() ? FamilyCode{} : known->second;
  const Json* named =
      text_of(config, {"hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act", "afn"});
  const Activation function = named ? named_function(named->text, codes) : code.function;
  const double given = rotary_number(config, {"partial_rotary_factor", "rotary_pct", "rope_pct"}, code.turning);
  const double share = given <= 1.0 ? given : code.turning;
  model.rotary_base = rotary_number(config, {"rope_theta", "rotary_emb_base", "rope_base"}, 0.0);
  const bool joins_heads = share > 0.0 && (share < 1.0 || code.turning > 0.0);
  if (code.composed_norm) model.norm.composed = true;
  if (code.logits != Logits::plain) model.logits = code.logits;
  if (const Json* cap = config.find("final_logit_softcapping"))  // a number; null, or 0, is none
    model.logits = cap->kind == Json::Kind::number && cap->number > 0.0 ? Logits::capped : Logits::plain;
  for (LayerStack* stack : {&model.decoder, model.encoder ? &*model.encoder : nullptr})
    for (std::size_t i = 0; stack && i < stack->kinds.size(); ++i) {
      Layer& layer = stack->kinds[i];
      if (layer.attention && layer.attention->kv_rank == 0)
        compose_attention(code, joins_heads ? share : 0.0, *layer.attention);
      if (layer.feed_forward) {
        layer.feed_forward->function = function;
        if (code.joined_gate)
          layer.feed_forward->joined = layer.feed_forward->gated && layer.feed_forward->experts == 0;
      }
    }
}

}  // namespace assay::model
