// A configuration read as a file of catalogue/architectures describes its family.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "assay/base/text.h"
#include "assay/model/import/architecture.h"

namespace assay::model {
namespace {

using Kind = KeyRule::Kind;

template <class T>
Value list_of(const std::vector<T>& items) {
  std::vector<Value> out;
  for (const T& item : items) out.push_back({item});
  return Value::of(std::move(out));
}

/// The values of one configuration's keys.
class ConfigValues : public Names {
 public:
  ConfigValues(const Architecture& how, ConfigReader& in) : how_(how), in_(in) {}

  void read() {
    for (const KeyRule& rule : how_.keys) {
      values_[rule.name] = value_of(rule);
      if (!rule.object.empty()) in_.take(inside(rule.object));
    }
    for (const std::string& key : how_.ignored) {
      const std::size_t dot = key.rfind('.');
      (dot == std::string::npos ? in_ : inside(key.substr(0, dot))).ignore(key.substr(dot + 1));
    }
    for (const NamedRule& rule : how_.named)
      if (!rule.varies) values_[rule.name] = rule.value.value(*this);
    for (const CheckRule& check : how_.checks)
      if (!check.that.value(*this).truth()) in_.fault(check.key, check.fault.text(*this), check.hint.text(*this));
    for (const NoteRule& note : how_.notes)
      if (note.when.value(*this).truth()) in_.note(note.text.text(*this));
    for (auto& [name, inner] : inner_) {
      inner.check_unread();
      in_.take(inner);
    }
  }

  Value value(std::string_view name) override {
    if (name == "i") return {layer};
    if (name == "used") return {used};
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    for (const NamedRule& rule : how_.named)
      if (rule.name == name) return rule.value.value(*this);
    return {};
  }
  const Json* given(std::string_view key) override {
    const std::size_t dot = key.rfind('.');
    return dot == std::string_view::npos ? in_.find(key)
                                         : inside(std::string(key.substr(0, dot))).find(key.substr(dot + 1));
  }

  /// The value of a field; what all layers have in common is found once.
  Value value(const FieldRule& rule) {
    if (rule.varies) return rule.value.value(*this);
    const auto [known, is_new] = common_.try_emplace(&rule);
    if (is_new) known->second = rule.value.value(*this);
    return known->second;
  }

  std::int64_t layer = 0;
  std::int64_t used = 0;  ///< layers before this one that use a shared block

 private:
  ConfigReader& inside(const std::string& object) {
    static const Json nothing;
    const auto known = inner_.find(object);
    if (known != inner_.end()) return known->second;
    const Json* found = in_.object(object);
    return inner_.try_emplace(object, found ? *found : nothing, in_.file(), object + ".").first->second;
  }

  Value value_of(const KeyRule& rule) {
    ConfigReader& in = rule.object.empty() ? in_ : inside(rule.object);
    const Value fallback = rule.fallback ? rule.fallback->value(*this) : Value{};
    const bool has =
        std::any_of(rule.keys.begin(), rule.keys.end(), [&](const std::string& key) { return in.has(key); });
    if ((rule.quiet && !has) || (rule.when && !rule.when->value(*this).truth())) return fallback;
    if (rule.absent && !has) in.note(*rule.absent);
    const std::string& key = rule.keys.front();
    switch (rule.kind) {
      case Kind::size:
        return {rule.fallback ? in.size(rule.keys, fallback.whole()) : in.size(rule.keys)};
      case Kind::count:
        return {in.count(rule.keys, fallback.whole())};
      case Kind::layers:
        return {read_layers(in, rule, fallback.whole())};
      case Kind::flag:
        return {std::int64_t{in.flag(key, fallback.truth())}};
      case Kind::factor:
        return {in.factor(key, fallback.number())};
      case Kind::text:
        return {in.text(key, fallback.text())};
      case Kind::derived:
        return {in.derived(key, std::max<std::int64_t>(fallback.whole(), 1), rule.how.text(*this))};
      case Kind::divided:
        return {read_divided(in, key, fallback.whole(), std::max<std::int64_t>(rule.divisor.value(*this).whole(), 1))};
      case Kind::same:
        return {in.same_size(key, fallback.whole())};
      case Kind::texts:
        return list_of(in.texts(key));
      case Kind::numbers:
        return list_of(in.sizes(key, fallback.whole()));
      case Kind::factors:
        return list_of(in.factors(key));
      case Kind::types:
        return list_of(read_layer_types(in, fallback.whole()));
    }
    return {};
  }

  static std::int64_t read_layers(ConfigReader& in, const KeyRule& rule, std::int64_t fallback) {
    const std::int64_t layers = rule.fallback ? in.size(rule.keys, fallback) : in.size(rule.keys);
    if (layers <= most_layers) return layers;
    in.fault(rule.keys.front(), fmt::format("must be at most {} layers, got {}", most_layers, layers),
             "larger numbers are implausible");
    return 1;
  }

  static std::int64_t read_divided(ConfigReader& in, const std::string& key, std::int64_t width, std::int64_t heads) {
    // An invalid width was already reported and read as 1: a message that heads do not divide it would mislead.
    const bool reported = width == 1 && in.failed();
    if (!in.has(key) && width % heads != 0 && !reported) {
      in.fault(key, fmt::format("{} heads do not divide a width of {}, and {} is not given", heads, width, key),
               fmt::format("give {}, or a number of heads that divides {}", key, width));
      return 1;
    }
    return in.derived(key, std::max<std::int64_t>(width / heads, 1), "width / heads");
  }

  const Architecture& how_;
  ConfigReader& in_;
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, ConfigReader, std::less<>> inner_;
  std::unordered_map<const FieldRule*, Value> common_;
};

template <class T>
void fill(T& to, const std::vector<FieldRule>& rules, std::span<const ModelField<T>> fields, ConfigValues& values) {
  for (const FieldRule& rule : rules)
    for (const ModelField<T>& field : fields)
      if (field.name == rule.name) field.set(to, values.value(rule));
}

/// The layers of one stack.
class StackReader {
 public:
  StackReader(const StackRule& how, ConfigValues& values) : how_(how), values_(values) {}

  /// The layer whose number the values have.
  Layer layer() {
    Layer out;
    fill(out.attention, "attention", attention_fields());
    fill(out.cross_attention, "cross_attention", attention_fields());
    fill(out.state_space, "state_space", state_space_fields());
    fill(out.feed_forward, wants("experts") ? "experts" : "mlp", feed_forward_fields());
    fill(out.shared, "shared", shared_fields());
    if (const auto* rules = part("layer")) model::fill(out, *rules, layer_fields(), values_);
    return out;
  }

  LayerStack layers() {
    const std::int64_t count = std::clamp<std::int64_t>(how_.layers.value(values_).whole(), 0, 2 * most_layers);
    std::vector<Layer> all;
    for (std::int64_t i = 0; i < count; ++i) {
      values_.layer = i;
      all.push_back(i == 0 || how_.varies ? layer() : all.front());
      values_.used += all.back().shared ? 1 : 0;
    }
    values_.layer = values_.used = 0;
    lend_keys(all);
    LayerStack out;
    for (const Layer& each : all) out.add(each);
    return out;
  }

  /// Whether heads share keys evenly, and experts suffice for a token.
  void check(ConfigReader& in, const LayerStack& stack) {
    std::vector<Layer> kinds = stack.kinds;
    Layer whole;  // parts that no layer has are checked, too
    if (const auto* rules = part("attention"))
      model::fill(whole.attention.emplace(), *rules, attention_fields(), values_);
    if (const auto* rules = part("experts"))
      model::fill(whole.feed_forward.emplace(), *rules, feed_forward_fields(), values_);
    kinds.insert(kinds.begin(), whole);
    for (const Layer& kind : kinds)
      if (kind.attention && kind.attention->heads % kind.attention->kv_heads != 0) {
        const std::int64_t heads = kind.attention->heads;
        in.fault("num_key_value_heads",
                 fmt::format("must divide the {} heads, got {}", heads, kind.attention->kv_heads),
                 fmt::format("a divisor of {}, so that each is shared by as many heads", heads));
        break;
      }
    for (const Layer& kind : kinds)
      if (const auto& f = kind.feed_forward;
          f && f->experts > 0 && (f->experts_per_token < 1 || f->experts_per_token > f->experts)) {
        in.fault(key_of("experts", "experts_per_token"),
                 fmt::format("must be between 1 and the {} experts, got {}", f->experts, f->experts_per_token),
                 "it is the number of experts per token");
        break;
      }
  }

 private:
  const std::vector<FieldRule>* part(std::string_view name) const {
    const auto found = how_.parts.find(name);
    return found == how_.parts.end() ? nullptr : &found->second;
  }
  /// The key that a field is read from: the first name in its expression.
  std::string key_of(std::string_view name, std::string_view field) const {
    if (const auto* rules = part(name))
      for (const FieldRule& rule : *rules)
        if (const auto names = rule.value.names(); rule.name == field && !names.empty())
          return std::string(names.front());
    return std::string(field);
  }
  /// Whether this layer has a part that the file describes: always, unless [layer] has a condition.
  bool wants(std::string_view name) {
    if (!part(name)) return false;
    if (const auto* rules = part("layer"))
      for (const FieldRule& rule : *rules)
        if (rule.name == name) return values_.value(rule).truth();
    return true;
  }
  template <class T>
  void fill(std::optional<T>& to, std::string_view name, std::span<const ModelField<T>> fields) {
    if (wants(name)) model::fill(to.emplace(), *part(name), fields, values_);
  }
  /// Layers that share keys use those of the last layer before them with the same window.
  static void lend_keys(std::vector<Layer>& layers) {
    const auto shares = [](const Layer& layer) { return layer.attention && layer.attention->shares_kv; };
    const auto first = std::find_if(layers.begin(), layers.end(), shares);
    if (first == layers.end()) return;
    std::set<std::int64_t> lent;
    for (auto layer = first; layer != layers.begin();) {
      --layer;
      if (layer->attention) layer->attention->shares_kv_with_later = lent.insert(layer->attention->window).second;
    }
  }

  const StackRule& how_;
  ConfigValues& values_;
};

/// The effect of one entry of block_configs on a layer: a search chose its key heads and its width, or left out a
/// block.
Layer searched_layer(ConfigReader& in, const Json& entry, std::size_t index, Attention attention, std::int64_t width) {
  const Json nothing;
  const std::string place = fmt::format("block_configs[{}].", index);
  ConfigReader block(entry, in.file(), place);
  const Json *mixer = block.object("attention"), *dense = block.object("ffn");
  ConfigReader a(mixer ? *mixer : nothing, in.file(), place + "attention.");
  ConfigReader f(dense ? *dense : nothing, in.file(), place + "ffn.");
  const auto is = [](ConfigReader& part, std::string_view key) { return part.has(key) && part.flag(key, false); };
  Layer layer;
  layer.norms = 0;
  for (ConfigReader* part : {&a, &f})
    if (is(*part, "replace_with_linear"))
      part->fault("replace_with_linear", "a linear layer in place of a block is not supported");
  if (!is(a, "no_op")) {
    const std::int64_t shared = a.size("n_heads_in_group", 8);
    if (attention.heads % shared != 0)
      a.fault("n_heads_in_group", fmt::format("must divide the {} heads, got {}", attention.heads, shared));
    attention.kv_heads = std::max<std::int64_t>(attention.heads / shared, 1);
    attention.window = a.count("window_length");
    layer.attention = attention;
    ++layer.norms;
  }
  if (!is(f, "no_op")) {
    // Two thirds of the multiple, in whole 256: the rule of llama's own code.
    const double wanted = std::floor(2.0 * f.factor("ffn_mult", 1) * static_cast<double>(width) / 3.0);
    layer.feed_forward = FeedForward{.width = static_cast<std::int64_t>(std::ceil(wanted / 256.0)) * 256};
    ++layer.norms;
  }
  in.take(block);
  in.take(a);
  in.take(f);
  return layer;
}

LayerStack searched_layers(ConfigReader& in, std::int64_t layers, const Attention& attention, std::int64_t width) {
  LayerStack out;
  const std::vector<const Json*> blocks = in.objects("block_configs");
  if (static_cast<std::int64_t>(blocks.size()) != layers)
    in.fault("block_configs", fmt::format("lists {} layers, num_hidden_layers is {}", blocks.size(), layers));
  for (std::size_t i = 0; i < blocks.size() && !in.failed(); ++i)
    out.add(searched_layer(in, *blocks[i], i, attention, width));
  return out;
}

}  // namespace

Result<void> read_as(const Architecture& how, ConfigReader& in, const hardware::Catalogue& catalogue,
                     Transformer& model) {
  ConfigValues values(how, in);
  for (const auto& [id, when] : how.instead)
    if (when.value(values).truth()) {
      ASSAY_TRY(other, architecture(id, catalogue));
      return read_as(*other, in, catalogue, model);
    }
  values.read();
  fill(model, how.model, transformer_fields(), values);
  StackReader decoder(how.decoder, values);
  if (how.lists_blocks && in.has("block_configs")) {
    model.decoder =
        searched_layers(in, how.decoder.layers.value(values).whole(), *decoder.layer().attention, model.d_model);
    return {};
  }
  model.decoder = decoder.layers();
  decoder.check(in, model.decoder);
  if (how.encoder) model.encoder = StackReader(*how.encoder, values).layers();
  return {};
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

}  // namespace assay::model
