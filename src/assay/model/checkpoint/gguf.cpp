// Headers of GGUF files (versions 2 and 3): metadata keys and tensor descriptions, little-endian.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "assay/base/text.h"
#include "assay/model/checkpoint/checkpoint.h"

namespace assay::model {
namespace {

/// How a kind of tensor packs its elements: `bytes` for each block of `elements`.
struct BlockType {
  std::uint32_t id;
  std::string_view name;
  std::int64_t elements, bytes;
};
constexpr BlockType block_types[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17}};

/// A metadata value we may need: a number, a text, or the length of a list and its first numbers.
struct Meta {
  enum class Kind { number, text, list } kind = Kind::number;
  std::int64_t number = 0;
  std::string text;
  std::uint64_t length = 0;
  std::vector<std::int64_t> numbers;  ///< of a list of whole numbers, up to a limit
};

/// Reads little-endian values; after the end everything is zero and `ended` is set.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  bool ended() const { return ended_; }
  std::size_t left() const { return bytes_.size() - at_; }

  template <class T>
  T number() {
    T value{};
    if (left() < sizeof(T)) {
      ended_ = true;
      return value;
    }
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string_view text() {
    const auto length = number<std::uint64_t>();
    return take(length);
  }
  std::string_view take(std::uint64_t length) {
    if (ended_ || length > left()) {
      ended_ = true;
      return {};
    }
    const std::string_view part = bytes_.substr(at_, static_cast<std::size_t>(length));
    at_ += static_cast<std::size_t>(length);
    return part;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

constexpr std::uint32_t type_text = 8, type_list = 9;

/// Bytes of a number of that type; nothing for texts, lists and unknown types.
std::optional<std::size_t> width_of(std::uint32_t type) {
  constexpr std::size_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (type >= std::size(widths) || widths[type] == 0) return std::nullopt;
  return widths[type];
}

std::int64_t read_number(Cursor& in, std::uint32_t type) {
  switch (type) {
    case 0:
    case 7:
      return in.number<std::uint8_t>();
    case 1:
      return in.number<std::int8_t>();
    case 2:
      return in.number<std::uint16_t>();
    case 3:
      return in.number<std::int16_t>();
    case 4:
      return in.number<std::uint32_t>();
    case 5:
      return in.number<std::int32_t>();
    case 10:
      return static_cast<std::int64_t>(std::min<std::uint64_t>(in.number<std::uint64_t>(), INT64_MAX));
    case 11:
      return in.number<std::int64_t>();
    case 6: {
      in.take(4);
      return 0;
    }
    default:
      in.take(8);
      return 0;
  }
}

/// A value of the metadata; false if its type is unknown.
bool read_meta(Cursor& in, std::uint32_t type, Meta& meta) {
  if (type == type_text) {
    meta.kind = Meta::Kind::text;
    meta.text = std::string(in.text().substr(0, 256));
    return true;
  }
  if (type != type_list) {
    if (!width_of(type)) return false;
    meta.number = read_number(in, type);
    return true;
  }
  meta.kind = Meta::Kind::list;
  const auto item = in.number<std::uint32_t>();
  meta.length = in.number<std::uint64_t>();
  if (item == type_text) {
    for (std::uint64_t i = 0; i < meta.length && !in.ended(); ++i) in.text();
    return true;
  }
  const auto width = width_of(item);
  if (!width) return false;  // no known file has lists of lists
  constexpr std::uint64_t most_numbers = 10'000;
  const std::uint64_t kept = std::min(meta.length, most_numbers);
  for (std::uint64_t i = 0; i < kept && !in.ended(); ++i) meta.numbers.push_back(read_number(in, item));
  if (meta.length > kept) {
    if (meta.length - kept > in.left() / *width) {
      in.take(in.left() + 1);
      return true;
    }
    in.take((meta.length - kept) * *width);
  }
  return true;
}

using Metadata = std::map<std::string, Meta, std::less<>>;

/// Rebuilds the configuration that the converter read when it wrote the file.
class ConfigWriter {
 public:
  ConfigWriter(const Metadata& metadata, std::string_view architecture, std::string_view file)
      : metadata_(metadata), prefix_(architecture), file_(file) {
    config_.kind = Json::Kind::object;
  }
  const Meta* find(std::string_view key) const {
    const auto found = metadata_.find(fmt::format("{}.{}", prefix_, key));
    return found == metadata_.end() ? nullptr : &found->second;
  }
  void set(std::string_view key, std::int64_t value) {
    Json node;
    node.kind = Json::Kind::integer;
    node.integer = value;
    node.number = static_cast<double>(value);
    config_.members.emplace_back(key, std::move(node));
  }
  void set(std::string_view key, const std::vector<std::int64_t>& values) {
    Json node;
    node.kind = Json::Kind::list;
    for (const std::int64_t value : values) {
      Json& item = node.items.emplace_back();
      item.kind = Json::Kind::integer;
      item.integer = value;
      item.number = static_cast<double>(value);
    }
    config_.members.emplace_back(key, std::move(node));
  }
  void set(std::string_view key, bool value) {
    Json node;
    node.kind = Json::Kind::boolean;
    node.boolean = value;
    config_.members.emplace_back(key, std::move(node));
  }
  void set(std::string_view key, std::string_view value) {
    Json node;
    node.kind = Json::Kind::text;
    node.text = value;
    config_.members.emplace_back(key, std::move(node));
  }
  /// A list whose numbers differ: each layer has its own.
  bool differs(std::string_view key) const {
    const Meta* meta = find(key);
    return meta && meta->kind == Meta::Kind::list && !is_even(*meta);
  }
  /// Copies a number, if there is one; the first number of a list that is the same for all layers.
  bool copy(std::string_view from, std::string_view to) {
    const Meta* meta = find(from);
    if (!meta) return false;
    if (meta->kind == Meta::Kind::number)
      set(to, meta->number);
    else if (meta->kind == Meta::Kind::list && is_even(*meta))
      set(to, meta->numbers.front());
    else
      fault(from, meta->kind == Meta::Kind::list
                      ? "differs between layers, which is not supported for this architecture"
                      : "must be a number");
    return true;
  }
  void copy(std::string_view from, std::string_view to, std::int64_t fallback) {
    if (!copy(from, to)) set(to, fallback);
  }
  /// Sets the difference of two numbers of the file, clamped so that absurd ones give an invalid size, no overflow.
  void set_difference(std::string_view to, const Meta* whole, const Meta* part) {
    constexpr std::int64_t most = std::int64_t{1} << 31;
    if (!whole || !part) return;
    set(to, std::clamp(whole->number, -most, most) - std::clamp(part->number, -most, most));
  }
  /// Required of every model: without it, the library's default, which belongs to another model, would be used.
  void require(std::string_view key, std::string_view or_else = {}) {
    if (!find(key) && (or_else.empty() || !find(or_else))) fault(key, "is missing");
  }
  void fault(std::string_view key, std::string what) {
    faults_.push_back({Error::Kind::input,
                       fmt::format("{}: {}.{}", file_, prefix_, key),
                       std::move(what),
                       "is it the file of a whole model?",
                       {}});
  }
  Result<Json> take() {
    ASSAY_CHECK(joined(std::move(faults_)));
    return std::move(config_);
  }

 private:
  static bool is_even(const Meta& list) {
    if (list.numbers.empty() || list.numbers.size() != list.length) return false;
    return std::all_of(list.numbers.begin(), list.numbers.end(),
                       [&](std::int64_t number) { return number == list.numbers.front(); });
  }

  const Metadata& metadata_;
  std::string_view prefix_, file_;
  Json config_;
  std::vector<Error> faults_;
};

/// The model types for the architectures of GGUF; mixtures of experts have their own.
std::string_view model_type_of(std::string_view architecture, bool experts) {
  constexpr std::pair<std::string_view, std::string_view> known[] = {{"llama", "llama"},
                                                                     {"llama4", "llama4_text"},
                                                                     {"qwen2", "qwen2"},
                                                                     {"qwen3", "qwen3"},
                                                                     {"qwen2moe", "qwen2_moe"},
                                                                     {"qwen3moe", "qwen3_moe"},
                                                                     {"gemma", "gemma"},
                                                                     {"gemma2", "gemma2"},
                                                                     {"gemma3", "gemma3_text"},
                                                                     {"gemma3n", "gemma3n_text"},
                                                                     {"phi3", "phi3"},
                                                                     {"olmo2", "olmo2"},
                                                                     {"gpt-oss", "gpt_oss"},
                                                                     {"starcoder2", "starcoder2"},
                                                                     {"command-r", "cohere"},
                                                                     {"cohere2", "cohere2"},
                                                                     {"deepseek2", "deepseek_v2"},
                                                                     {"glm4", "glm4"},
                                                                     {"glm4moe", "glm4_moe"},
                                                                     {"lfm2", "lfm2"},
                                                                     {"smollm3", "smollm3"},
                                                                     {"seed_oss", "seed_oss"},
                                                                     {"apertus", "apertus"}};
  if (architecture == "llama" && experts) return "mixtral";
  for (const auto& [from, to] : known)
    if (from == architecture) return to;
  return {};
}

/// Latent attention: the size of a head without its positional part. Newer files state head sizes separately from
/// cache sizes.
void add_latent_sizes(ConfigWriter& out) {
  out.copy("attention.q_lora_rank", "q_lora_rank", 0);
  out.copy("attention.kv_lora_rank", "kv_lora_rank");
  out.copy("rope.dimension_count", "qk_rope_head_dim");
  const Meta *key = out.find("attention.key_length_mla"), *place = out.find("rope.dimension_count");
  if (!key) key = out.find("attention.key_length");
  out.set_difference("qk_nope_head_dim", key, place);
  out.copy(out.find("attention.value_length_mla") ? "attention.value_length_mla" : "attention.value_length",
           "v_head_dim");
}

/// Layers with attention have key heads, the others none.
void add_attending_layers(ConfigWriter& out) {
  const Meta* heads = out.find("attention.head_count_kv");
  if (!heads || heads->kind != Meta::Kind::list) return;
  std::vector<std::int64_t> attending;
  std::int64_t most = 1;
  for (std::size_t i = 0; i < heads->numbers.size(); ++i) {
    if (heads->numbers[i] > 0) attending.push_back(static_cast<std::int64_t>(i));
    most = std::max(most, heads->numbers[i]);
  }
  out.set("num_key_value_heads", most);
  out.set("full_attn_idxs", attending);
}

void add_experts(ConfigWriter& out, std::string_view type) {
  const bool many = type == "deepseek_v2" || type == "deepseek_v3" || type == "glm4_moe";
  const bool qwen = type == "qwen2_moe" || type == "qwen3_moe";
  out.copy("expert_count", many ? "n_routed_experts" : qwen ? "num_experts" : "num_local_experts");
  out.copy("expert_used_count", "num_experts_per_tok");
  if (qwen || many) out.copy("expert_feed_forward_length", "moe_intermediate_size");
  if (type == "qwen2_moe") out.copy("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
  if (many) {
    out.copy("expert_shared_count", "n_shared_experts");
    out.copy("leading_dense_block_count", "first_k_dense_replace");
  }
  if (type == "deepseek_v2" || type == "deepseek_v3") {
    out.copy("expert_group_count", "n_group", 1);
    out.copy("expert_group_used_count", "topk_group", 1);
  }
  if (type == "llama4_text") {
    out.copy("interleave_moe_layer_step", "interleave_moe_layer_step");
    out.copy("expert_feed_forward_length", "intermediate_size");
  }
}

/// Key heads: as many as query heads if the file has none; per layer if it lists them.
void add_key_heads(ConfigWriter& out, std::string_view type) {
  constexpr std::string_view key = "attention.head_count_kv";
  if (type == "deci")
    out.set("num_key_value_heads_per_layer", out.find(key)->numbers);
  else if (!out.find(key))
    out.copy("attention.head_count", "num_key_value_heads");
  else if (type != "lfm2" || out.find(key)->kind != Meta::Kind::list)
    out.copy(key, "num_key_value_heads");
}

/// Rows of the embedding, if no key states them.
void add_vocabulary(ConfigWriter& out, const Metadata& metadata, const std::vector<CheckpointTensor>& tensors) {
  if (out.copy("vocab_size", "vocab_size")) return;
  for (const CheckpointTensor& tensor : tensors)
    if (tensor.name == "token_embd.weight" && tensor.shape.size() == 2) return out.set("vocab_size", tensor.shape[1]);
  if (const auto tokens = metadata.find("tokenizer.ggml.tokens"); tokens != metadata.end())
    return out.set("vocab_size", static_cast<std::int64_t>(std::min<std::uint64_t>(tokens->second.length, 1U << 30)));
  out.require("vocab_size");
}

/// Null where the architecture is not understood.
Result<Json> config_of(const Metadata& metadata, std::string_view architecture,
                       const std::vector<CheckpointTensor>& tensors, std::string_view file) {
  ConfigWriter out(metadata, architecture, file);
  const Meta* experts = out.find("expert_count");
  const bool has_experts = experts && experts->number > 0;
  std::string_view type = model_type_of(architecture, has_experts);
  if (type.empty()) return Json{};
  out.require("block_count");
  out.require("embedding_length");
  out.require("attention.head_count");
  out.require("feed_forward_length", has_experts ? "expert_feed_forward_length" : "");
  const auto has_tensor = [&](std::string_view name) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  };
  const bool corrected = std::any_of(tensors.begin(), tensors.end(), [](const CheckpointTensor& tensor) {
    return tensor.name.ends_with(".exp_probs_b.bias");
  });
  if (type == "deepseek_v2" && corrected) type = "deepseek_v3";
  const bool biased = has_tensor("blk.0.attn_q.bias");
  // A llama whose layers differ in key heads is a DeciLM.
  if (type == "llama" && !biased && out.differs("attention.head_count_kv")) type = "deci";
  out.set("model_type", type);
  // The layer count includes layers that predict further tokens.
  const Meta *blocks = out.find("block_count"), *further = out.find("nextn_predict_layers");
  if (blocks && further && further->number > 0) {
    out.set_difference("num_hidden_layers", blocks, further);
    out.copy("nextn_predict_layers", "num_nextn_predict_layers");
  } else {
    out.copy("block_count", "num_hidden_layers");
  }
  out.copy("embedding_length", "hidden_size");
  out.copy("feed_forward_length", type == "llama4_text" ? "intermediate_size_mlp" : "intermediate_size");
  out.copy("attention.head_count", "num_attention_heads");
  const bool latent = type == "deepseek_v2" || type == "deepseek_v3";
  if (latent)
    out.copy("attention.head_count_kv", "num_key_value_heads");
  else
    add_key_heads(out, type);
  out.copy("context_length", "max_position_embeddings");
  if (latent)
    add_latent_sizes(out);
  else
    out.copy("attention.key_length", "head_dim");
  for (std::string_view windowed : {"gemma2", "gemma3_text", "gemma3n_text", "phi3", "gpt_oss", "cohere2"})
    if (type == windowed) out.copy("attention.sliding_window", "sliding_window");
  if (has_experts) add_experts(out, type);
  if (type == "gemma3n_text") {
    out.copy("embedding_length_per_layer_input", "hidden_size_per_layer_input");
    out.copy("attention.shared_kv_layers", "num_kv_shared_layers");
    out.copy("altup.num_inputs", "altup_num_inputs");
  }
  if (type == "lfm2") {
    add_attending_layers(out);
    out.copy("shortconv.l_cache", "conv_L_cache");
    out.set("block_auto_adjust_ff_dim", false);
  }
  add_vocabulary(out, metadata, tensors);
  out.set("tie_word_embeddings", !has_tensor("output.weight"));
  if (type == "llama" || type == "glm4" || type == "glm4_moe" || type == "seed_oss") out.set("attention_bias", biased);
  if (type == "glm4_moe") out.set("use_qk_norm", has_tensor("blk.0.attn_q_norm.weight"));
  return out.take();
}

}  // namespace

Result<GgufHeader> parse_gguf(std::string_view bytes, std::string_view file) {
  const std::string place(file);
  Cursor in(bytes);
  if (in.take(4) != "GGUF") return fail(place, "the file does not begin with GGUF", "is it a GGUF file?");
  const auto version = in.number<std::uint32_t>();
  if (version != 2 && version != 3)
    return fail(place, fmt::format("GGUF version {} is not supported, only 2 and 3", version),
                "convert it with a current tool");
  const auto tensor_count = in.number<std::uint64_t>(), key_count = in.number<std::uint64_t>();
  const auto ended = [&] { return fail(place, "the header is truncated", "is the file complete?"); };
  if (in.ended()) return ended();
  Metadata metadata;
  for (std::uint64_t i = 0; i < key_count; ++i) {
    const std::string_view key = in.text();
    const auto type = in.number<std::uint32_t>();
    if (in.ended()) return ended();
    Meta meta;
    if (!read_meta(in, type, meta)) return fail(place, fmt::format("unknown type {} of {}", type, in_quotes(key)), "");
    if (in.ended()) return ended();
    metadata[std::string(key)] = std::move(meta);
  }
  GgufHeader header;
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    CheckpointTensor tensor;
    tensor.name = std::string(in.text());
    const auto dims = in.number<std::uint32_t>();
    if (in.ended()) return ended();
    const auto fault = [&](std::string what) {
      return fail(fmt::format("{}: {}", file, in_quotes(tensor.name)), std::move(what), "");
    };
    if (dims > 8) return fault(fmt::format("{} dimensions", dims));
    tensor.elements = 1;
    for (std::uint32_t d = 0; d < dims; ++d) {
      const auto size = in.number<std::uint64_t>();
      if (size > (std::uint64_t{1} << 40) ||
          __builtin_mul_overflow(tensor.elements, static_cast<std::int64_t>(size), &tensor.elements) ||
          tensor.elements > (std::int64_t{1} << 50))
        return fault("the shape has more elements than can be counted");
      tensor.shape.push_back(static_cast<std::int64_t>(size));
    }
    const auto type = in.number<std::uint32_t>();
    in.number<std::uint64_t>();  // offset of its data
    if (in.ended()) return ended();
    const auto* block = std::find_if(std::begin(block_types), std::end(block_types),
                                     [&](const BlockType& known) { return known.id == type; });
    if (block == std::end(block_types)) return fault(fmt::format("unknown quantisation type {}", type));
    if (!tensor.shape.empty() && tensor.shape.front() % block->elements != 0)
      return fault(
          fmt::format("rows of {} elements are not a multiple of blocks of {}", tensor.shape.front(), block->elements));
    tensor.dtype = block->name;
    tensor.bytes = static_cast<double>(tensor.elements) / static_cast<double>(block->elements) *
                   Bytes(static_cast<double>(block->bytes));
    header.tensors.push_back(std::move(tensor));
  }
  if (const auto name = metadata.find("general.architecture"); name != metadata.end())
    header.architecture = name->second.text;
  if (const auto type = metadata.find("general.type"); type != metadata.end() && type->second.text == "adapter")
    return fail(place, "is an adapter: it holds only the changes to a model", "give the file of the base model");
  ASSAY_TRY(config, config_of(metadata, header.architecture, header.tensors, file));
  header.config = std::move(config);
  return header;
}

}  // namespace assay::model
