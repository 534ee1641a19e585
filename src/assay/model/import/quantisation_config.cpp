#include "assay/model/import/quantisation_config.h"

#include <fmt/format.h>

#include <array>

#include "assay/base/text.h"
#include "assay/model/weights.h"

namespace assay::model {
namespace {

const Json* object_in(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value && value->kind == Json::Kind::object ? value : nullptr;
}

std::string text_in(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value && value->kind == Json::Kind::text ? value->text : std::string();
}

int whole_in(const Json& object, std::string_view key, int fallback) {
  constexpr std::int64_t most = 1 << 20;
  const Json* value = object.find(key);
  const bool believed = value && value->kind == Json::Kind::integer && value->integer >= -1 && value->integer <= most;
  return believed ? static_cast<int>(value->integer) : fallback;
}

bool flag_in(const Json& object, std::string_view key, bool fallback) {
  const Json* value = object.find(key);
  return value && value->kind == Json::Kind::boolean ? value->boolean : fallback;
}

/// Two sides of a block: [128, 128].
std::optional<std::array<int, 2>> sides_in(const Json& object, std::string_view key) {
  const Json* list = object.find(key);
  if (!list || list->kind != Json::Kind::list || list->items.size() != 2) return std::nullopt;
  std::array<int, 2> sides{};
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& side = list->items[i];
    if (side.kind != Json::Kind::integer || side.integer < 1 || side.integer > 4096) return std::nullopt;
    sides[i] = static_cast<int>(side.integer);
  }
  return sides;
}

std::optional<Dtype> elements_of(int bits, bool floating) {
  for (const DtypeFacts& entry : all_dtypes())
    if (entry.bits == bits && entry.bits <= 8 && entry.is_integer != floating) return entry.dtype;
  return std::nullopt;
}

/// Groups along a row, each with a 16-bit scale and maybe a zero point; no group: one scale per row, not counted.
NumberFormat grouped(Dtype dtype, int group, bool zero) {
  if (group < 1) return dtype;
  return {dtype, 16 + (zero ? facts(dtype).bits : 0), group};
}

std::optional<NumberFormat> named(std::string_view text) {
  const auto format = parse_number_format(text, "");
  return format ? std::optional(*format) : std::nullopt;
}

/// compressed-tensors: a scheme of weights, which may have blocks of several kinds.
std::optional<Quantisation> of_scheme(const Json& config) {
  const Json* groups = object_in(config, "config_groups");
  if (!groups || groups->members.empty()) return std::nullopt;
  const Json& group = groups->members.front().second;
  const Json* weights = object_in(group, "weights");
  if (!weights) return std::nullopt;
  const int bits = whole_in(*weights, "num_bits", 0), size = whole_in(*weights, "group_size", 0);
  const auto dtype = elements_of(bits, text_in(*weights, "type") == "float");
  if (!dtype) return std::nullopt;
  const Json* inputs = object_in(group, "input_activations");
  Quantisation found = linear_layers(*dtype);
  found.products = inputs && whole_in(*inputs, "num_bits", 0) == bits;
  const std::string strategy = text_in(*weights, "strategy"), packed = text_in(config, "format");
  const bool micro = *dtype == Dtype::fp4 && size > 0;  // scales of 8 bits
  if (const auto sides = sides_in(*weights, "block_structure"))
    found.format = {*dtype, 32, (*sides)[1], (*sides)[0]};
  else if (micro || packed.starts_with("mxfp"))
    found.format = {*dtype, 8, size > 0 ? size : 32};
  else if (strategy == "group" || size > 0)
    found.format = grouped(*dtype, size, !flag_in(*weights, "symmetric", true));
  return found;
}

/// AMD Quark: "fp8_e4m3" for a tensor, "fp4" or "int4" in groups.
std::optional<Quantisation> of_quark(const Json& config) {
  const Json* global = object_in(config, "global_quant_config");
  const Json* weights = global ? object_in(*global, "weight") : nullptr;
  if (!weights) return std::nullopt;
  const std::string type = text_in(*weights, "dtype");
  const bool eight = type.find('8') != std::string::npos, floating = type.starts_with("fp");
  const auto dtype = elements_of(eight ? 8 : type.find('4') != std::string::npos ? 4 : 0, floating);
  if (!dtype) return std::nullopt;
  const int size = text_in(*weights, "qscheme") == "per_group" ? whole_in(*weights, "group_size", 0) : 0;
  Quantisation found =
      linear_layers(*dtype == Dtype::fp4 && size > 0 ? NumberFormat{*dtype, 8, size} : grouped(*dtype, size, false));
  const Json* inputs = object_in(*global, "input_tensors");
  found.products = inputs && text_in(*inputs, "dtype") == type;
  return found;
}

/// MLX, which names no method: groups with a 16-bit scale and bias each, or a micro format; also tables and head.
std::optional<Quantisation> of_mlx(const Json& config) {
  const int bits = whole_in(config, "bits", 0), size = whole_in(config, "group_size", 64);
  const std::string mode = text_in(config, "mode");
  const auto dtype = elements_of(bits, false);
  if (size < 1 || (!dtype && mode.empty())) return std::nullopt;
  const auto micro = mode.empty() || mode == "affine" ? std::nullopt : named(mode);
  if (!micro && !dtype) return std::nullopt;
  Quantisation found = linear_layers(micro ? *micro : NumberFormat{*dtype, 32, size});
  found.add(Part::head);
  found.add(Part::embedding);
  return found;
}

std::optional<Quantisation> of_modelopt(const Json& outer) {
  const Json* inner = object_in(outer, "quantization");
  const Json& config = inner ? *inner : outer;
  const std::string algorithm = text_in(config, "quant_algo");
  const auto with = [](std::string_view format, bool products) {
    Quantisation found = linear_layers(*named(format));
    found.products = products;
    return found;
  };
  if (algorithm == "FP8") return with("fp8", true);
  if (algorithm == "FP8_PB_WO") return with("fp8-128x128", false);
  if (algorithm == "NVFP4") return with("nvfp4", true);
  if (algorithm == "MXFP4") return with("mxfp4", false);
  if (algorithm == "W4A16_AWQ" || algorithm == "W4A8_AWQ") return with("int4-g128", false);
  return of_scheme(config);
}

std::optional<Quantisation> of_bitsandbytes(const Json& config) {
  if (flag_in(config, "load_in_8bit", false)) return linear_layers(Dtype::int8);
  if (!flag_in(config, "load_in_4bit", false)) return std::nullopt;
  const bool twice = flag_in(config, "bnb_4bit_use_double_quant", false);  // its scales are quantised too
  return linear_layers({Dtype::fp4, twice ? 8 : 32, 64});
}

std::optional<Quantisation> of_method(const std::string& method, const Json& config) {
  if (method == "fp8" || method == "fbgemm_fp8") {
    Quantisation found = linear_layers(Dtype::fp8);
    if (const auto sides = sides_in(config, "weight_block_size"))
      found.format = {Dtype::fp8, 32, (*sides)[1], (*sides)[0]};
    found.products = true;
    return found;
  }
  if (method == "mxfp4") {  // only experts
    Quantisation found{*named("mxfp4"), 0, false};
    found.add(Part::experts);
    return found;
  }
  const bool awq = method == "awq";
  if (awq || method == "gptq" || method == "auto-round" || method == "intel/auto-round") {
    const auto dtype = elements_of(whole_in(config, "bits", 4), false);
    const bool zero = awq ? flag_in(config, "zero_point", true) : !flag_in(config, "sym", true);
    if (!dtype) return std::nullopt;
    Quantisation found = linear_layers(grouped(*dtype, whole_in(config, "group_size", 128), zero));
    if (flag_in(config, "lm_head", false)) found.add(Part::head);
    return found;
  }
  if (method.empty() && config.find("bits")) return of_mlx(config);
  // It was the only method before methods had names.
  if (method == "bitsandbytes" || method.empty()) return of_bitsandbytes(config);
  if (method == "quark") return of_quark(config);
  if (method == "compressed-tensors") return of_scheme(config);
  if (method.starts_with("modelopt")) return of_modelopt(config);
  return std::nullopt;
}

/// The part that a name or pattern of modules excludes as a whole; nothing if it names single matrices.
std::optional<Part> excluded_part(std::string_view pattern) {
  const auto says = [&](std::string_view word) { return pattern.find(word) != std::string_view::npos; };
  const bool single = says("_proj") && !says("|");
  if (says("shared_expert")) return says("gate") ? std::nullopt : std::optional(Part::shared_experts);
  if (says("experts")) return single ? std::nullopt : std::optional(Part::experts);
  if (single) return std::nullopt;
  if (says("linear_attn") || says("mamba") || says("mixer")) return Part::state_space;
  if (says("attn") || says("attention")) return Part::attention;
  if (says("mlp") && (says("up") || says("down") || !says("gate"))) return Part::mlp;
  return std::nullopt;
}

/// Whether a pattern names one layer by its number: "model.layers.3.mlp".
bool names_one_layer(std::string_view pattern) {
  for (const std::string& word : split(std::string(pattern), '.'))
    if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos) return true;
  return false;
}

void leave_out(const Json& config, const Transformer& model, Quantisation& found, std::vector<std::string>& notes) {
  std::array<std::int64_t, part_count> layers{};
  for (const char* key :
       {"modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude", "llm_int8_skip_modules"}) {
    const Json* list = config.find(key);
    if (!list || list->kind != Json::Kind::list) continue;
    for (const Json& entry : list->items) {
      if (entry.kind != Json::Kind::text) continue;
      const auto part = excluded_part(entry.text);
      if (!part || !found.has(*part)) continue;
      if (names_one_layer(entry.text))
        ++layers[static_cast<std::size_t>(*part)];
      else
        found.remove(*part);
    }
  }
  for (std::size_t i = 0; i < part_count; ++i) {
    const auto part = static_cast<Part>(i);
    if (layers[i] == 0 || !found.has(part)) continue;
    if (layers[i] >= model.decoder.layers())
      found.remove(part);
    else
      notes.push_back(fmt::format("{} of {} layers keep their {} unquantised; all are counted as quantised", layers[i],
                                  model.decoder.layers(), name(part)));
  }
}

}  // namespace

std::optional<Quantisation> read_quantisation(const Json& entry, const Transformer& model,
                                              std::vector<std::string>& notes) {
  const std::string method = text_in(entry, "quant_method");
  auto found = of_method(method, entry);
  if (!found) {
    notes.push_back(fmt::format("quantization_config of {} is not supported: weights are counted as {}",
                                method.empty() ? "no quant_method" : in_quotes(method), name(model.dtype)));
    return std::nullopt;
  }
  leave_out(entry, model, *found, notes);
  if (const Json* groups = object_in(entry, "config_groups"); groups && groups->members.size() > 1)
    notes.push_back(fmt::format("quantization_config has {} groups of weights: all are counted as {}",
                                groups->members.size(), in_quotes(groups->members.front().first)));
  return found;
}

}  // namespace assay::model
