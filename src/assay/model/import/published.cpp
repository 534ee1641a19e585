// Files of catalogue/checkpoints.
#include "assay/model/import/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/hardware/inheritance.h"
#include "assay/model/import/expression.h"

namespace assay::model {
namespace {

constexpr std::string_view checkpoint_folder = "checkpoints/";
constexpr const char* other_model = "docs/run-models.md has what is computed; `assay serve` predicts any model";

/// The keys of a configuration in expressions.
class GivenKeys : public Names {
 public:
  explicit GivenKeys(const Json& config) : config_(config) {}

  Value value(std::string_view name) override {
    const Json* found = given(name);
    return found ? value_of(*found) : Value{};
  }
  const Json* given(std::string_view key) override { return config_.find(key); }

 private:
  static Value value_of(const Json& json) {
    switch (json.kind) {
      case Json::Kind::boolean:
        return {std::int64_t{json.boolean}};
      case Json::Kind::integer:
        return {json.integer};
      case Json::Kind::number:
        return {json.number};
      case Json::Kind::text:
        return {json.text};
      case Json::Kind::list: {
        std::vector<Value> items;
        for (const Json& item : json.items) items.push_back(value_of(item));
        return Value::of(std::move(items));
      }
      default:
        return {};
    }
  }

  const Json& config_;
};

struct NamedFunction {
  std::string_view name;
  Nonlinearity function;
};
constexpr NamedFunction named_functions[] = {
    {"silu", Nonlinearity::silu},           {"swish", Nonlinearity::silu},
    {"gelu", Nonlinearity::gelu},           {"gelu_python", Nonlinearity::gelu},
    {"gelu_new", Nonlinearity::gelu_tanh},  {"gelu_pytorch_tanh", Nonlinearity::gelu_tanh},
    {"gelu_fast", Nonlinearity::gelu_tanh}, {"relu", Nonlinearity::relu},
    {"relu2", Nonlinearity::relu2},         {"quick_gelu", Nonlinearity::quick_gelu}};

/// "NAME", "NAME [W_q, W_k, W_v]" or, where parts take turns, "NAME {W_q, W_k, W_v}".
StoredWeight stored(const std::string& text) {
  StoredWeight out;
  const std::size_t open = text.find_first_of("[{", text.find(' '));
  out.tensor = std::string(trim(std::string_view(text).substr(0, text.find(' '))));
  if (open == std::string::npos) return out;
  out.woven = text[open] == '{';
  for (const std::string& part : split(text.substr(open + 1, text.size() - open - 2), ','))
    out.parts.emplace_back(trim(part));
  return out;
}

class PublishedReader {
 public:
  PublishedReader(const Json& config, const std::string& file, Transformer& model)
      : config_(config), file_(file), keys_(config), model_(model) {}

  Published out;

  void read(RecordReader& root) {
    for (const std::string_view known : {"id", "base"}) root.find(known);
    root.text("prefix", out.prefix);
    root.flag("transposed", out.transposed);
    names(root, "outer", out.outer);
    names(root, "layer", out.layer);
    names(root, "experts", out.experts);
    root.each_key("numbers", [&](const std::string& key, RecordReader& inner) {
      const Toml* node = inner.find(key);
      if (node->kind == Toml::Kind::integer || node->kind == Toml::Kind::number)
        return void(numbers_[key] =
                        Value{node->kind == Toml::Kind::number ? node->number : static_cast<double>(node->integer)});
      auto value = Expression::parse(node->text);
      if (value)
        numbers_[key] = value->value(keys_);
      else
        inner.fault(key, value.error().what, value.error().hint);
    });
    std::vector<std::pair<std::string, std::string>> faults;
    root.pairs("refused", faults);
    for (const auto& [why, when] : faults)
      if (const auto holds = Expression::parse(when); !holds || holds->value(keys_).truth()) refused_.push_back(why);
  }

  Result<void> define() {
    if (!refused_.empty()) return fail(file_, fmt::format("{} is not computed", refused_.front()), other_model);
    Definition& definition = model_.definition;
    const Attention* attends = nullptr;
    for (Layer& layer : model_.decoder.kinds) {
      if (layer.attention) attends = &*layer.attention;
      layer.norms_after = number("norms_after", 0) != 0;
    }
    if (!attends || attends->kv_rank > 0 || model_.encoder)
      return fail(file_, "such layers are not computed", other_model);
    definition.norm_epsilon = number("norm_epsilon", definition.norm_epsilon);
    definition.attention_cap = number("attention_cap", 0);
    definition.logit_cap = number("logit_cap", 0);
    definition.shares_of_all = number("shares_of_all", 0) != 0;
    const std::string wanted = numbers_["activation"].is_text() ? numbers_["activation"].text() : "";
    const auto* function = std::find_if(std::begin(named_functions), std::end(named_functions),
                                        [&](const NamedFunction& f) { return f.name == wanted; });
    if (function == std::end(named_functions))
      return fail(file_, fmt::format("the activation {} is not computed", in_quotes(wanted)), other_model);
    definition.nonlinearity = function->function;
    out.pairs = number("rotary_pairs", 0) != 0;
    out.norm_offset = number("norm_offset", 0);
    out.residual_scale = number("residual_scale", 1);
    out.embedding_scale = number("embedding_scale", 1);
    definition.logit_scale = number("logit_scale", 1) / (model_.tied ? out.embedding_scale : 1.0);
    const double usual = std::pow(static_cast<double>(attends->head_dim), -0.5);
    out.query_scale = number("attention_scale", usual) / usual;
    if (model_.learned_positions > 0) return {};
    const RotaryDefaults defaults{number("rotary_base", 1e4), number("rotary_share", 1),
                                  number("windowed_rotary_base", 0), static_cast<double>(model_.max_context)};
    return read_rotary(config_, file_, attends->head_dim, defaults, definition);
  }

 private:
  double number(const std::string& key, double usual) {
    const auto found = numbers_.find(key);
    return found == numbers_.end() ? usual : found->second.number();
  }
  static void names(RecordReader& root, std::string_view table, std::map<std::string, StoredWeight>& to) {
    std::vector<std::pair<std::string, std::string>> texts;
    root.pairs(table, texts);
    for (const auto& [name, text] : texts) to[name] = stored(text);
  }

  const Json& config_;
  const std::string& file_;
  GivenKeys keys_;
  Transformer& model_;
  std::map<std::string, Value> numbers_;
  std::vector<std::string> refused_;
};

}  // namespace

Result<Published> read_published(const Json& config, const std::string& family, const std::string& file,
                                 const hardware::Catalogue& catalogue, Transformer& model) {
  const std::string path = fmt::format("{}{}.toml", checkpoint_folder, family);
  std::vector<std::string> known;
  for (const auto& [name, text] : catalogue.files(checkpoint_folder)) {
    known.push_back(hardware::file_stem(name));
    if (name != path) continue;
    ASSAY_TRY(parsed, parse_toml(text, path));
    ASSAY_TRY(root, hardware::with_bases(std::move(parsed), path, checkpoint_folder, catalogue, {}));
    RecordFile shared{.name = path, .keys_hint = "docs/catalogue.md lists the keys", .sourced_tables = false};
    RecordReader reader(shared, root);
    PublishedReader published(config, file, model);
    published.read(reader);
    reader.finish();
    ASSAY_CHECK(joined(std::move(shared.faults)));
    ASSAY_CHECK(published.define());
    return std::move(published.out);
  }
  return fail(
      file,
      fmt::format("published weights of {} are not run: its functions are not all computed here", in_quotes(family)),
      fmt::format("families that are: {}", fmt::join(known, ", ")), Error::Kind::missing);
}

}  // namespace assay::model
