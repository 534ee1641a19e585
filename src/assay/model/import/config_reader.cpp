#include "assay/model/import/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"

namespace assay::model {
namespace {

// Parts of a key, between underscores, that suggest a shape.
constexpr std::string_view shape_words[] = {
    "size",   "sizes", "dim",    "dims",     "num",    "n",      "head",  "heads",        "layer",
    "layers", "block", "expert", "experts",  "rank",   "width",  "inner", "intermediate", "hidden",
    "depth",  "ffn",   "mlp",    "channels", "groups", "expand", "state", "kernel",       "latent",
    "embd",   "embed", "vocab",  "ff",       "kv",     "d",      "moe",   "window"};

// Keys of the library with such a part that change no shape, each between two bars.
constexpr std::string_view harmless =
    "|hidden_act|hidden_activation|hidden_dropout|hidden_dropout_prob|hidden_dim_dropout|num_labels|num_beams|"
    "num_beam_groups|num_return_sequences|num_logits_to_keep|no_repeat_ngram_size|encoder_no_repeat_ngram_size|"
    "output_hidden_states|output_router_logits|chunk_size_feed_forward|pruned_heads|problem_type|n_group|"
    "topk_group|ep_size|n_ctx|layer_norm_eps|layer_norm_epsilon|original_max_position_embeddings|"
    "rope_head_dim_factor|pretraining_tp|max_length|min_length|chunk_size|mamba_chunk_size|time_step_floor|"
    "head_dim_scale|query_pre_attn_scalar|router_jitter_noise|use_mamba_kernels|hidden_states_dtype|"
    "apply_residual_connection_post_layernorm|attention_softmax_in_fp32|slow_but_exact|moe_router_dtype|"
    "layer_norm_rms_epsilon|num_hidden_layers_per_stage|moe_shared_expert_overlap|router_z_loss_coef|rotary_dim|"
    "norm_topk_prob|mamba_ssm_cache_dtype|mamba_ssm_dtype|use_cache|activation_dropout|"
    "cross_attention_hidden_size|initial_context_length|layernorm_epsilon|embd_pdrop|n_special|num_image_tokens|"
    "scale_attn_by_inverse_layer_idx|pre_allocate_kv_cache|lm_head|rm_head|";

bool speaks_of_shape(std::string_view key) {
  if (harmless.find(fmt::format("|{}|", key)) != std::string_view::npos) return false;
  if (key.ends_with("_token_id") || key.ends_with("_token_index") || key.ends_with("_dropout") ||
      key.ends_with("_eps") || key.ends_with("_coef") || key.ends_with("_pdrop") || key.starts_with("mm_") ||
      key.starts_with("_"))
    return false;
  for (const std::string& part : split(key, '_'))
    if (std::find(std::begin(shape_words), std::end(shape_words), part) != std::end(shape_words)) return true;
  return false;
}

/// Whether a value can be a size, or enable something: texts, fractions, nulls and disabled flags cannot.
bool can_be_size(const Json& value) {
  switch (value.kind) {
    case Json::Kind::boolean:
      return value.boolean;
    case Json::Kind::integer:
      return value.integer != 0;
    case Json::Kind::list:
      return !value.items.empty() && value.items.front().kind == Json::Kind::integer;
    default:
      return false;
  }
}

std::string shown(const Json& value) {
  switch (value.kind) {
    case Json::Kind::integer:
      return fmt::format("{}", value.integer);
    case Json::Kind::number:
      if (std::isnan(value.number)) return "NaN";
      if (std::isinf(value.number)) return value.number > 0 ? "Infinity" : "-Infinity";
      return exact_number(value.number);
    case Json::Kind::text:
      return in_quotes(value.text);
    case Json::Kind::boolean:
      return value.boolean ? "true" : "false";
    default:
      return std::string(describe(value.kind));
  }
}

// Switches of some families that others lack: there the library ignores them, and so do we.
constexpr std::string_view switches[] = {
    "bias",    "use_bias",       "qkv_bias",         "attn_bias",         "lm_head_bias",         "use_qk_norm",
    "qk_norm", "tie_embeddings", "share_embeddings", "parallel_residual", "use_parallel_residual"};

/// Fields that change no shape, and their allowed values.
struct PlainField {
  std::string_view key;
  Json::Kind kind;
  std::string_view words = {};  ///< of text, or of the type of an object, with | between them
};
constexpr std::string_view activations =
    "gelu|gelu_10|gelu_accurate|gelu_fast|gelu_new|gelu_python|gelu_python_tanh|gelu_pytorch_tanh|gegelu|geglu|laplace|"
    "leaky_relu|linear|mish|prelu|quick_gelu|relu|relu2|relu6|relu_squared|sigmoid|silu|swiglu|swigluoai|swish|tanh|"
    "xielu";
constexpr std::string_view ropes =
    "default|linear|dynamic|yarn|deepseek_yarn|longrope|llama3|llama4|mrope|su|ntk|proportional|xdrope|none";
constexpr PlainField plain_fields[] = {{"hidden_act", Json::Kind::text, activations},
                                       {"hidden_activation", Json::Kind::text, activations},
                                       {"activation_function", Json::Kind::text, activations},
                                       {"mlp_hidden_act", Json::Kind::text, activations},
                                       {"mamba_hidden_act", Json::Kind::text, activations},
                                       {"rope_scaling", Json::Kind::object, ropes},
                                       {"rope_parameters", Json::Kind::object, ropes},
                                       {"rope_theta", Json::Kind::number},
                                       {"rms_norm_eps", Json::Kind::number},
                                       {"layer_norm_eps", Json::Kind::number},
                                       {"layer_norm_epsilon", Json::Kind::number},
                                       {"initializer_range", Json::Kind::number},
                                       {"attention_dropout", Json::Kind::number},
                                       {"hidden_dropout", Json::Kind::number},
                                       {"use_cache", Json::Kind::boolean}};

/// What is odd about such a field; empty if nothing is.
std::string oddity(const PlainField& field, const Json& value) {
  const bool whole = field.kind == Json::Kind::number && value.kind == Json::Kind::integer;
  if (value.kind != field.kind && !whole)
    return fmt::format("is {}, but the library expects {}", shown(value), describe(field.kind));
  if (value.kind == Json::Kind::number && !std::isfinite(value.number))
    return fmt::format("is {}, but the library expects a finite number", shown(value));
  const Json* word = &value;
  if (value.kind == Json::Kind::object) {
    word = value.find("rope_type");
    if (!word) word = value.find("type");
  }
  if (field.words.empty() || !word || word->kind != Json::Kind::text) return {};
  const auto known = split(field.words, '|');
  if (std::find(known.begin(), known.end(), word->text) != known.end()) return {};
  return fmt::format("{} is unknown to the library", in_quotes(word->text));
}

}  // namespace

ConfigReader::ConfigReader(const Json& object, std::string file, std::string prefix)
    : object_(&object), file_(std::move(file)), prefix_(std::move(prefix)) {}

bool ConfigReader::was_read(std::string_view key) const {
  return std::find(read_.begin(), read_.end(), key) != read_.end();
}

bool ConfigReader::has(std::string_view key) const {
  const Json* value = object_->find(key);
  return value && value->kind != Json::Kind::null;
}

const Json* ConfigReader::read(Keys keys, std::string_view& found) {
  const Json* value = nullptr;
  found = keys.front();
  for (const std::string& key : keys) {
    read_.push_back(key);
    const Json* here = object_->find(key);
    if (!here || here->kind == Json::Kind::null) continue;
    if (!value || (value->inherited && !here->inherited)) {
      value = here;
      found = key;
    } else if (value->inherited == here->inherited && shown(*here) != shown(*value))
      fault(key,
            fmt::format("is {}, but {}{} is {}, and both name the same field", shown(*here), prefix_, found,
                        shown(*value)),
            "keep the correct one");
  }
  return value;
}

const Json* ConfigReader::read(std::string_view key) {
  read_.emplace_back(key);
  return has(key) ? object_->find(key) : nullptr;
}

std::int64_t ConfigReader::whole(const Json& value, std::string_view key, std::int64_t lowest) {
  // 4e3 is also a whole number to its author.
  const bool is_whole =
      value.kind == Json::Kind::integer ||
      (value.kind == Json::Kind::number && std::isfinite(value.number) && value.number == std::floor(value.number));
  const double got = value.kind == Json::Kind::integer ? static_cast<double>(value.integer) : value.number;
  const auto least = static_cast<double>(lowest), most = static_cast<double>(most_size);
  if (is_whole && got >= least && got <= most) return static_cast<std::int64_t>(got);
  if (!is_whole)
    fault(key, fmt::format("must be a whole number, got {}", shown(value)),
          value.kind == Json::Kind::text ? "write it without quotes" : "write a number without a fraction, e.g. 4096");
  else
    fault(key, fmt::format("must be between {} and {}, got {}", lowest, most_size, shown(value)),
          got < least ? fmt::format("write {} or more", lowest) : "larger sizes are implausible");
  return std::max<std::int64_t>(lowest, 1);
}

std::int64_t ConfigReader::size(Keys keys) {
  std::string_view found;
  if (const Json* value = read(keys, found)) return whole(*value, found, 1);
  fault(found, "is missing", "this architecture has no default for it");
  return 1;
}

std::int64_t ConfigReader::size(Keys keys, std::int64_t fallback) {
  std::string_view found;
  if (const Json* value = read(keys, found)) return whole(*value, found, 1);
  notes_.push_back(fmt::format("{}{} not given: {}", prefix_, found, fallback));
  return fallback;
}

std::int64_t ConfigReader::same_size(const std::string& key, std::int64_t fallback) {
  if (const Json* value = object_->find(key); !value || value->kind != Json::Kind::list) return size(key, fallback);
  const auto listed = sizes(key, 1);
  if (!listed.empty() && std::count(listed.begin(), listed.end(), listed.front()) == std::ssize(listed))
    return listed.front();
  fault(key, "must be the same for all layers");
  return fallback;
}

std::int64_t ConfigReader::derived(std::string_view key, std::int64_t fallback, std::string_view how) {
  if (const Json* value = read(key)) return whole(*value, key, 1);
  notes_.push_back(fmt::format("{}{} not given: {} = {}", prefix_, key, how, fallback));
  return fallback;
}

std::int64_t ConfigReader::count(Keys keys, std::int64_t fallback) {
  std::string_view found;
  if (const Json* value = read(keys, found)) return whole(*value, found, 0);
  for (const std::string& key : keys)
    if (object_->find(key)) return 0;
  if (fallback != 0) notes_.push_back(fmt::format("{}{} not given: {}", prefix_, found, fallback));
  return fallback;
}

bool ConfigReader::flag(std::string_view key, bool fallback) {
  const Json* value = read(key);
  if (!value) {
    if (!object_->find(key)) notes_.push_back(fmt::format("{}{} not given: {}", prefix_, key, fallback));
    return fallback;
  }
  if (value->kind == Json::Kind::integer && (value->integer == 0 || value->integer == 1)) return value->integer == 1;
  if (value->kind != Json::Kind::boolean)
    fault(key, fmt::format("must be true or false, got {}", shown(*value)), "write true or false without quotes");
  return value->boolean;
}

std::string ConfigReader::text(std::string_view key, std::string_view fallback) {
  const Json* value = read(key);
  if (!value) return std::string(fallback);
  if (value->kind != Json::Kind::text) {
    fault(key, fmt::format("must be text, got {}", shown(*value)), "write it in quotes");
    return std::string(fallback);
  }
  return value->text;
}

std::vector<std::string> ConfigReader::texts(std::string_view key) {
  std::vector<std::string> out;
  const Json* value = read(key);
  if (!value) return out;
  if (value->kind != Json::Kind::list) {
    fault(key, fmt::format("must be a list of texts, got {}", shown(*value)), "write [\"...\", \"...\"]");
    return out;
  }
  for (const Json& item : value->items) {
    if (item.kind != Json::Kind::text) {
      fault(key, fmt::format("must be a list of texts, got {} in it", shown(item)), "write each in quotes");
      break;
    }
    out.push_back(item.text);
  }
  return out;
}

std::vector<std::int64_t> ConfigReader::sizes(std::string_view key, std::int64_t lowest) {
  std::vector<std::int64_t> out;
  const Json* value = read(key);
  if (!value) return out;
  if (value->kind != Json::Kind::list) {
    fault(key, fmt::format("must be a list of whole numbers, got {}", shown(*value)), "write [1, 2, ...]");
    return out;
  }
  for (const Json& item : value->items) {
    out.push_back(whole(item, key, lowest));
    if (failed()) break;
  }
  return out;
}

double ConfigReader::positive(const Json& value, std::string_view key) {
  const bool number = value.kind == Json::Kind::integer || value.kind == Json::Kind::number;
  if (number && value.number > 0 && value.number <= 1e6) return value.number;
  fault(key, fmt::format("must be a positive number, got {}", shown(value)), "write a number above 0 and up to 1e6");
  return 1;
}

double ConfigReader::factor(std::string_view key, double fallback) {
  if (const Json* value = read(key)) return positive(*value, key);
  notes_.push_back(fmt::format("{}{} not given: {}", prefix_, key, exact_number(fallback)));
  return fallback;
}

std::vector<double> ConfigReader::factors(std::string_view key) {
  std::vector<double> out;
  const Json* value = read(key);
  if (!value) return out;
  if (value->kind != Json::Kind::list)
    fault(key, fmt::format("must be a list of numbers, got {}", shown(*value)), "write one number for each layer");
  for (const Json& item : value->items) {
    out.push_back(positive(item, key));
    if (failed()) break;
  }
  return out;
}

const Json* ConfigReader::object(std::string_view key) {
  const Json* value = read(key);
  if (value && value->kind != Json::Kind::object) {
    fault(key, fmt::format("must be an object, got {}", shown(*value)), "write {...}");
    return nullptr;
  }
  return value;
}

std::vector<const Json*> ConfigReader::objects(std::string_view key) {
  std::vector<const Json*> out;
  const Json* value = read(key);
  if (!value) return out;
  for (const Json& item : value->items) {
    if (item.kind != Json::Kind::object) break;
    out.push_back(&item);
  }
  if (value->kind != Json::Kind::list || out.size() != value->items.size())
    fault(key, fmt::format("must be a list of objects, got {}", describe(value->kind)), "write [{...}, {...}]");
  return out;
}

void ConfigReader::fault(std::string_view key, std::string what, std::string hint) {
  constexpr std::size_t enough = 20;
  if (faults_.size() < enough)
    faults_.push_back(
        {Error::Kind::input, fmt::format("{}: {}{}", file_, prefix_, key), std::move(what), std::move(hint), {}});
}

void ConfigReader::check_unread(bool lenient) {
  for (const PlainField& field : plain_fields)
    if (const Json* value = object_->find(field.key); value && value->kind != Json::Kind::null)
      if (const std::string odd = oddity(field, *value); !odd.empty())
        notes_.push_back(fmt::format("{}{} {}; ignored, as it changes no shape", prefix_, field.key, odd));
  for (std::string_view key : switches)
    if (const Json* value = object_->find(key); value && value->boolean && !was_read(key))
      notes_.push_back(fmt::format("{}{} is true but ignored: this architecture has no such field", prefix_, key));
  for (const auto& [key, value] : object_->members) {
    if (!speaks_of_shape(key) || !can_be_size(value)) continue;
    if (was_read(key)) continue;
    const std::string quoted = in_quotes(key);
    if (lenient) {
      notes_.push_back(fmt::format("{} is left out, although it may change the shape of the model", quoted));
      continue;
    }
    faults_.push_back({Error::Kind::input,
                       fmt::format("{}: {}{}", file_, prefix_, quoted.substr(1, quoted.size() - 2)),
                       "this architecture has no such field, and it may change the shape of the model",
                       "remove it if it is only for training or generation",
                       {}});
    if (faults_.size() > 20) break;
  }
}

void ConfigReader::take(ConfigReader& inner) {
  faults_.insert(faults_.end(), inner.faults_.begin(), inner.faults_.end());
  notes_.insert(notes_.end(), inner.notes_.begin(), inner.notes_.end());
  inner.faults_.clear();
  inner.notes_.clear();
}

Result<void> ConfigReader::finish() { return joined(std::move(faults_)); }

}  // namespace assay::model
