// Attributes of MLIR's operations as HLO writes them, from either of its forms: `dims = [0, 1]` of the short one,
// `permutation = array<i64: 0, 1>` of the generic one.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/text.h"
#include "assay/profile/hlo/module.h"
#include "assay/profile/hlo/stablehlo_types.h"

namespace assay::hlo {
namespace {

using Attributes = std::vector<std::pair<std::string_view, std::string>>;

/// What stands behind a whole key and its equals sign.
std::optional<std::string_view> value_of(std::string_view text, std::string_view key) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at > 0 && is_letter(text[at - 1])) continue;
    std::string_view rest = text.substr(at + key.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (rest.empty() || rest.front() != '=') continue;
    rest.remove_prefix(1);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
  }
  return std::nullopt;
}

/// What stands between the bracket that a text starts with and its end.
std::string_view inside_of(std::string_view text) {
  Cursor in(text, "");
  const auto inside = in.bracketed();
  return inside ? *inside : std::string_view();
}

/// The numbers of [0, 1], array<i64: 0, 1>, dense<[[0, 1]]>, dense<0> : tensor<2x2xi64> or 3 : i64.
std::vector<std::int64_t> numbers_in(std::string_view text) {
  if (text.starts_with("[")) return number_list(inside_of(text));
  if (text.starts_with("array<")) {
    const std::string_view list = text.substr(0, text.find('>'));
    return number_list(list.substr(std::min(list.find(':'), list.size())));
  }
  if (text.starts_with("dense<")) {
    const std::size_t end = text.find('>');
    std::vector<std::int64_t> out = number_list(text.substr(6, end - 6));
    if (text.substr(6).starts_with("[") || out.size() != 1 || end == std::string_view::npos) return out;
    const std::string_view type = text.substr(end, text.find('>', end + 1) - end);  // one number for all
    std::int64_t count = 1;
    constexpr std::int64_t most = 64;
    for (const std::int64_t size : number_list(type.substr(0, type.rfind('x'))))
      count = std::clamp<std::int64_t>(size, 0, most) * std::min(count, most);
    out.assign(static_cast<std::size_t>(std::min(count, most)), out.front());
    return out;
  }
  return number_list(text.substr(0, text.find_first_of(",:}>) ")));
}

std::vector<std::int64_t> numbers(std::string_view text, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const auto value = value_of(text, key)) return numbers_in(*value);
  return {};
}

/// The truth values of [false, true] or array<i1: false, true>: 0x1.
std::string truths(std::string_view text, std::initializer_list<std::string_view> keys) {
  std::string out;
  for (const std::string_view key : keys) {
    const auto value = value_of(text, key);
    if (!value) continue;
    const std::string_view list = value->substr(0, value->find_first_of("]>"));
    for (std::size_t at = list.find_first_of("tf"); at != std::string_view::npos; at = list.find_first_of("tf", at + 4))
      out += fmt::format("{}{}", out.empty() ? "" : "x", list[at] == 't' ? 1 : 0);
  }
  return out;
}

std::string in_braces(const std::vector<std::int64_t>& list) { return fmt::format("{{{}}}", fmt::join(list, ",")); }

/// A list of dimensions by any of its keys.
void add_list(std::string_view name, std::string_view text, std::initializer_list<std::string_view> keys,
              Attributes& out) {
  out.emplace_back(name, in_braces(numbers(text, keys)));
}

/// [2] x [0] behind a key: both sides; the generic form has a key for either.
void add_sides(std::string_view text, std::string_view key, std::string_view generic, std::string_view name,
               Attributes& out) {
  std::vector<std::int64_t> sides[2];
  if (const auto value = value_of(text, key); value && value->starts_with("[")) {
    sides[0] = numbers_in(*value);
    const std::size_t by = value->find("] x [");
    if (by != std::string_view::npos) sides[1] = numbers_in(value->substr(by + 4));
  } else {
    sides[0] = numbers(text, {fmt::format("lhs_{}", generic)});
    sides[1] = numbers(text, {fmt::format("rhs_{}", generic)});
  }
  static constexpr std::string_view names[2][2] = {{"lhs_contracting_dims", "rhs_contracting_dims"},
                                                   {"lhs_batch_dims", "rhs_batch_dims"}};
  for (std::size_t i = 0; i < 2; ++i) out.emplace_back(names[name == "batch"][i], in_braces(sides[i]));
}

/// dense<[[0, 1], [2, 3]]> as {{0,1},{2,3}}.
std::string dense_groups(std::string_view text, std::string_view key) {
  const auto value = value_of(text, key);
  if (!value || !value->starts_with("dense<")) return {};
  const std::string_view values = value->substr(6, value->find('>') - 6);
  if (!values.starts_with("[")) return fmt::format("{{{{{}}}}}", values);
  std::string out(values);
  for (char& c : out) c = c == '[' ? '{' : c == ']' ? '}' : c;
  return out;
}

/// The labels of [b, 0, 1, f]: b01f.
std::string labels(std::string_view list) {
  std::string out;
  for (const char c : list)
    if (std::isalnum(static_cast<unsigned char>(c))) out += c;
  return out;
}

/// Words of a window: " stride=2x2 pad=1_1x0_0".
std::string window_words(
    std::string_view text,
    std::initializer_list<std::pair<std::string_view, std::initializer_list<std::string_view>>> words,
    std::initializer_list<std::string_view> padding) {
  std::string out;
  for (const auto& [word, keys] : words)
    if (const auto list = numbers(text, keys); !list.empty()) out += fmt::format(" {}={}", word, fmt::join(list, "x"));
  if (const auto pads = numbers(text, padding); !pads.empty()) {
    out += " pad=";
    for (std::size_t i = 0; i + 1 < pads.size(); i += 2)
      out += fmt::format("{}{}_{}", i > 0 ? "x" : "", pads[i], pads[i + 1]);
  }
  return fmt::format("{{{}}}", trim(out));
}

void add_convolution(std::string_view text, Attributes& out) {
  std::size_t at = std::min({text.find("dim_numbers"), text.find("#stablehlo.conv<"), text.size()});
  std::string dims[3];
  for (std::string& side : dims) {
    at = text.find('[', at);
    if (at == std::string_view::npos) return;
    const std::size_t end = text.find(']', at);
    if (end == std::string_view::npos) return;
    side = labels(text.substr(at, end - at));
    at = end;
  }
  out.emplace_back("dim_labels", fmt::format("{}_{}->{}", dims[0], dims[1], dims[2]));
  std::string window = window_words(text,
                                    {{"stride", {"stride", "window_strides"}},
                                     {"lhs_dilate", {"lhs_dilate", "lhs_dilation"}},
                                     {"rhs_dilate", {"rhs_dilate", "rhs_dilation"}}},
                                    {"pad", "padding"});
  if (const std::string turned = truths(text, {"reverse", "window_reversal"}); turned.find('1') != std::string::npos)
    window.insert(window.size() - 1, fmt::format(" reversed={}", turned));
  out.emplace_back("window", std::move(window));
  for (const std::string_view key : {"feature_group_count", "batch_group_count"})
    if (const auto count = number_after(text, key)) out.emplace_back(key, fmt::format("{}", *count));
}

/// [0:8, 0:4:2], or three lists.
void add_slice(std::string_view text, Attributes& out) {
  std::string parts;
  if (value_of(text, "start_indices")) {
    const auto from = numbers(text, {"start_indices"}), to = numbers(text, {"limit_indices"}),
               step = numbers(text, {"strides"});
    for (std::size_t i = 0; i < std::min({from.size(), to.size(), step.size()}); ++i)
      parts += fmt::format("{}[{}:{}:{}]", i > 0 ? "," : "", from[i], to[i], step[i]);
  } else if (const std::size_t open = text.find('['); open != std::string_view::npos) {
    for (const std::string_view part : top_level_parts(inside_of(text.substr(open))))
      parts += fmt::format("{}[{}]", parts.empty() ? "" : ",", part);
  }
  out.emplace_back("slice", fmt::format("{{{}}}", parts));
}

void add_padding(std::string_view text, Attributes& out) {
  const auto low = numbers(text, {"low", "edge_padding_low"}), high = numbers(text, {"high", "edge_padding_high"}),
             inner = numbers(text, {"interior", "interior_padding"});
  std::string words;
  for (std::size_t i = 0; i < std::min({low.size(), high.size(), inner.size()}); ++i)
    words += fmt::format("{}{}_{}_{}", i > 0 ? "x" : "", low[i], high[i], inner[i]);
  out.emplace_back("padding", std::move(words));
}

/// The sharding of an operation or argument: as shardy writes it, from < to its >.
void add_shardy(std::string_view text, Attributes& out) {
  std::size_t at = text.find("#sdy.sharding<");
  if (at != std::string_view::npos)
    at += 13;
  else
    at = text.find("<@");
  if (at == std::string_view::npos) return;
  int depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && --depth == 0) {
      out.emplace_back("frontend_attributes", fmt::format("#sdy.sharding{}", text.substr(at, i + 1 - at)));
      return;
    }
  }
}

void add_dimensions(std::string_view opcode, std::string_view text, Attributes& out) {
  if (opcode == "dot" || opcode == "ragged-dot") {
    add_sides(text, "contracting_dims", "contracting_dimensions", "contracting", out);
    add_sides(text, "batching_dims", "batching_dimensions", "batch", out);
    if (opcode == "ragged-dot") add_list("rhs_group_dims", text, {"rhs_group_dimensions"}, out);
  }
  if (opcode == "convolution") add_convolution(text, out);
  if (opcode == "broadcast") add_list("dimensions", text, {"dims", "broadcast_dimensions"}, out);
  if (opcode == "transpose") add_list("dimensions", text, {"dims", "permutation"}, out);
  if (opcode == "reduce") add_list("dimensions", text, {"dimensions"}, out);
  if (opcode == "reverse") add_list("dimensions", text, {"dims", "dimensions"}, out);
  if (opcode == "concatenate" || opcode == "sort") add_list("dimensions", text, {"dim", "dimension"}, out);
  if (opcode == "iota") add_list("iota_dimension", text, {"dim", "iota_dimension"}, out);
  if (opcode == "slice") add_slice(text, out);
  if (opcode == "dynamic-slice") add_list("dynamic_slice_sizes", text, {"sizes", "slice_sizes"}, out);
  if (opcode == "pad") add_padding(text, out);
  if (opcode == "reduce-window" || opcode == "select-and-scatter")
    out.emplace_back("window", window_words(text,
                                            {{"size", {"window_dimensions"}},
                                             {"stride", {"window_strides"}},
                                             {"lhs_dilate", {"base_dilations"}},
                                             {"rhs_dilate", {"window_dilations"}}},
                                            {"padding"}));
  if (opcode == "gather")
    for (const std::string_view key : {"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
                                       "start_indices_batching_dims", "start_index_map", "slice_sizes"})
      add_list(key, text, {key}, out);
  if (opcode == "scatter")
    for (const std::string_view key : {"update_window_dims", "inserted_window_dims", "input_batching_dims",
                                       "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"})
      add_list(key, text, {key}, out);
  if (opcode == "gather" || opcode == "scatter")
    if (const auto at = numbers(text, {"index_vector_dim"}); at.size() == 1)
      out.emplace_back("index_vector_dim", fmt::format("{}", at.front()));
  if (opcode == "all-gather") add_list("dimensions", text, {"all_gather_dim"}, out);
  if (opcode == "all-to-all")
    for (const std::string_view key : {"split_dimension", "concat_dimension"}) add_list(key, text, {key}, out);
  if (opcode == "reduce-scatter") add_list("dimensions", text, {"scatter_dimension"}, out);
}

}  // namespace

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool quote = text.substr(i).starts_with("\\22");
    out += quote ? '"' : text[i];
    if (quote) i += 2;
  }
  return out;
}

std::string hlo_opcode(std::string_view operation) {
  const std::size_t dot = operation.rfind('.');
  std::string out(dot == std::string_view::npos ? operation : operation.substr(dot + 1));
  if (operation.starts_with("sdy.")) {
    if (out == "sharding_constraint" || out == "reshard") return "custom-call";
    return out == "manual_computation" || out == "named_computation" ? "call" : "optimization-barrier";
  }
  std::replace(out.begin(), out.end(), '_', '-');
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"dot-general", "dot"},        {"broadcast-in-dim", "broadcast"},
      {"case", "conditional"},       {"if", "conditional"},
      {"composite", "call"},         {"top-k", "topk"},
      {"bitcast", "bitcast-convert"}};
  for (const auto& [name, hlo] : names)
    if (out == name) return std::string(hlo);
  return out;
}

std::string mesh_groups(std::string_view text, const NamedMeshes& meshes, const std::vector<NamedAxis>& usual) {
  const std::size_t at = text.find("replica_group_mesh_axes<");
  if (at == std::string_view::npos) return {};
  text = text.substr(at);
  const std::size_t sign = std::min(text.find('@'), text.size() - 1);
  const std::string_view name = text.substr(sign + 1, text.find_first_of(",> ", sign) - sign - 1);
  const auto known = std::find_if(meshes.begin(), meshes.end(), [&](const auto& mesh) { return mesh.first == name; });
  std::string mesh, axes;
  for (const NamedAxis& axis : known == meshes.end() ? usual : known->second) {
    const std::size_t used = text.find(fmt::format("\"{}\"", axis.first));
    std::string_view rest = used == std::string_view::npos ? "" : text.substr(used);
    rest = rest.substr(0, rest.find("axis_ref", 1));
    const std::size_t part = rest.find("sub_axis");
    const auto numbers = part == std::string_view::npos ? std::vector<std::int64_t>() : number_list(rest.substr(part));
    const auto add_axis = [&](std::string_view suffix, std::int64_t size, bool grouped) {
      mesh += fmt::format("{}'{}{}'={}", mesh.empty() ? "" : ",", axis.first, suffix, size);
      if (grouped) axes += fmt::format("{}'{}{}'", axes.empty() ? "" : ",", axis.first, suffix);
    };
    if (numbers.size() < 2 || numbers[0] < 1 || numbers[1] < 1 || axis.second % (numbers[0] * numbers[1]) != 0) {
      add_axis("", axis.second, used != std::string_view::npos);
      continue;
    }
    add_axis(".0", numbers[0], false);
    add_axis(".1", numbers[1], true);
    add_axis(".2", axis.second / numbers[0] / numbers[1], false);
  }
  return fmt::format("mesh[{}] {{{}}}", mesh, axes);
}

std::string applied_operation(std::string_view text) {
  std::string out;
  for (std::size_t at = text.find("stablehlo."); at != std::string_view::npos; at = text.find("stablehlo.", at + 1)) {
    const std::string_view name = text.substr(at + 10, text.find_first_of(" (\"<", at) - at - 10);
    if (at > 0 && (text[at - 1] == '#' || text[at - 1] == '!')) continue;  // a type or an attribute
    if (name == "return") break;
    if (!out.empty()) return {};
    out = hlo_opcode(name);
  }
  return out;
}

Attributes hlo_attributes(std::string_view opcode, std::string_view text) {
  Attributes out;
  add_dimensions(opcode, text, out);
  if (opcode == "compare") {
    const std::size_t generic = text.find("<comparison_direction ");
    out.emplace_back("direction",
                     trim(generic == std::string_view::npos ? text : text.substr(generic + 22)).substr(0, 2));
  }
  if (const std::size_t at = text.find("applies "); at != std::string_view::npos) {
    const std::string_view name = text.substr(at + 8, text.find(' ', at + 8) - at - 8);
    out.emplace_back("applies", hlo_opcode(name));
  }
  for (const std::string_view key : {"replica_groups", "source_target_pairs"})
    if (std::string groups = dense_groups(text, key); !groups.empty()) out.emplace_back(key, std::move(groups));
  if (text.find("use_global_device_ids") != std::string_view::npos) out.emplace_back("use_global_device_ids", "true");
  if (const auto sharding = text_after(text, "mhlo.sharding")) out.emplace_back("sharding", std::string(*sharding));
  if (opcode != "call") {
    add_shardy(text, out);
    return out;
  }
  for (const std::string_view key : {"in_shardings", "out_shardings", "manual_axes"})  // of a manual computation
    if (const std::size_t at = text.find(key); at != std::string_view::npos) {
      const std::size_t open = text.find_first_of("[{", at);
      if (open != std::string_view::npos) out.emplace_back(key, std::string(inside_of(text.substr(open))));
    }
  return out;
}

}  // namespace assay::hlo
