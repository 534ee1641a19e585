#include "assay/profile/hlo/stablehlo_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/text.h"
#include "assay/profile/hlo/module.h"

namespace assay::hlo {
namespace {

constexpr const char* tensor_form = "a type is written as tensor<4x4096xbf16>";

/// i32 is s32 here, i1 is pred, and names of floats are in lower case.
std::string element_name(std::string_view text) {
  std::string out(trim(text));
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (out == "i1") return "pred";
  if (out == "complex<f32>") return "c64";
  if (out == "complex<f64>") return "c128";
  if (out.starts_with("ui")) return "u" + out.substr(2);
  if (out.starts_with("i")) return "s" + out.substr(1);
  return out;
}

/// The text of the first brackets of a kind behind a key: "dims = [0, 1]" gives "0, 1".
std::string_view list_after(std::string_view text, std::string_view key, char open = '[') {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  const std::size_t start = text.find(open, at + key.size());
  if (start == std::string_view::npos) return {};
  Cursor in(text, "");
  in.move_to(start);
  const auto inside = in.bracketed();
  return inside ? *inside : std::string_view();
}

std::string in_braces(std::string_view numbers) { return fmt::format("{{{}}}", fmt::join(number_list(numbers), ",")); }

/// [2] x [0] behind a key: both sides.
std::pair<std::string, std::string> both_sides(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {"{}", "{}"};
  const std::string_view left = list_after(text.substr(at), key);
  const std::string_view from = text.substr(at);
  const std::size_t by = from.find("] x [");
  if (by == std::string_view::npos) return {in_braces(left), "{}"};
  return {in_braces(left), in_braces(list_after(from.substr(by + 1), "x"))};
}

/// dense<[[0, 1], [2, 3]]> as {{0,1},{2,3}}.
std::string dense_groups(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  const std::size_t dense = text.find("dense<", at);
  if (dense == std::string_view::npos) return {};
  const std::string_view values = text.substr(dense + 6, text.find('>', dense) - dense - 6);
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

void add_convolution(std::string_view text, std::vector<std::pair<std::string_view, std::string>>& out) {
  const std::string_view from = text.substr(std::min(text.find("dim_numbers"), text.size()));
  std::string dims[3];
  std::size_t at = 0;
  for (std::string& side : dims) {
    at = from.find('[', at);
    if (at == std::string_view::npos) return;
    const std::size_t end = from.find(']', at);
    if (end == std::string_view::npos) return;
    side = labels(from.substr(at, end - at));
    at = end;
  }
  out.emplace_back("dim_labels", fmt::format("{}_{}->{}", dims[0], dims[1], dims[2]));
  const std::string_view window = list_after(text, "window", '{');
  const auto joined = [](const std::vector<std::int64_t>& list) { return fmt::format("{}", fmt::join(list, "x")); };
  std::string words;
  for (const auto& [key, name] :
       {std::pair("stride", "stride"), std::pair("lhs_dilate", "lhs_dilate"), std::pair("rhs_dilate", "rhs_dilate")})
    if (const auto list = number_list(list_after(window, key)); !list.empty())
      words += fmt::format(" {}={}", name, joined(list));
  if (const auto pads = number_list(list_after(window, "pad")); !pads.empty()) {
    words += " pad=";
    for (std::size_t i = 0; i + 1 < pads.size(); i += 2)
      words += fmt::format("{}{}_{}", i > 0 ? "x" : "", pads[i], pads[i + 1]);
  }
  out.emplace_back("window", fmt::format("{{{}}}", words));
  for (const std::string_view key : {"feature_group_count", "batch_group_count"})
    if (const auto count = number_after(text, key)) out.emplace_back(key, fmt::format("{}", *count));
}

}  // namespace

std::vector<std::string_view> top_level_parts(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool arrow = c == '>' && i > 0 && text[i - 1] == '-';
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    if ((c == ')' || c == ']' || c == '}' || c == '>') && !arrow) --depth;
    if (c == ',' && depth == 0) {
      out.push_back(trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (const std::string_view last = trim(text.substr(start)); !last.empty()) out.push_back(last);
  return out;
}

Result<Shape> parse_tensor_type(std::string_view text, const Cursor& in, std::size_t at) {
  text = trim(text);
  Shape out;
  if (text.starts_with("!")) {
    out.element = find_element_type("token");
    return out;
  }
  if (text.starts_with("tuple<") && text.ends_with(">")) {
    out.is_tuple = true;
    for (const std::string_view part : top_level_parts(text.substr(6, text.size() - 7))) {
      if (part.starts_with("tuple<")) return in.fault_at(at, "tuples in tuples are not read", tensor_form);
      ASSAY_TRY(member, parse_tensor_type(part, in, at));
      out.members.push_back(std::move(member));
    }
    return out;
  }
  if (!text.starts_with("tensor<") || !text.ends_with(">"))
    return in.fault_at(at, fmt::format("expected a type, not {}", in_quotes(text)), tensor_form);
  std::string_view inside = text.substr(7, text.size() - 8);
  inside = inside.substr(0, inside.find(','));  // without an encoding
  std::string dims;
  while (!inside.empty() && (std::isdigit(static_cast<unsigned char>(inside.front())) || inside.front() == '?')) {
    const std::size_t x = inside.find('x');
    if (x == std::string_view::npos) return in.fault_at(at, "expected x behind a size", tensor_form);
    dims += fmt::format("{}{}", dims.empty() ? "" : ",", inside.substr(0, x));
    inside.remove_prefix(x + 1);
  }
  auto shape = parse_shape(fmt::format("{}[{}]", element_name(inside), dims), "type");
  if (!shape) return in.fault_at(at, fmt::format("unknown type {}", in_quotes(text)), tensor_form);
  return std::move(*shape);
}

Result<std::vector<Shape>> result_types(std::string_view text, const Cursor& in, std::size_t at) {
  std::vector<Shape> out;
  const std::size_t arrow = text.rfind("->");
  const bool shown = arrow != std::string_view::npos;
  std::string_view types = trim(shown ? text.substr(arrow + 2) : text);
  if (types.starts_with("(") && types.ends_with(")")) types = types.substr(1, types.size() - 2);
  std::vector<std::string_view> parts = top_level_parts(types);
  if (!shown && parts.size() > 1) parts = {parts.back()};
  for (const std::string_view part : parts) {
    ASSAY_TRY(shape, parse_tensor_type(part, in, at));
    out.push_back(std::move(shape));
  }
  return out;
}

std::optional<std::size_t> type_colon(std::string_view text) {
  int depth = 0;
  std::optional<std::size_t> out;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') inside = !inside;
    if (inside) continue;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == ':' && depth == 0) out = i;
  }
  return out;
}

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
  if (operation.starts_with("sdy.")) return out == "sharding_constraint" ? "custom-call" : "sdy-" + out;
  std::replace(out.begin(), out.end(), '_', '-');
  if (out == "dot-general") return "dot";
  if (out == "broadcast-in-dim") return "broadcast";
  if (out == "case" || out == "if") return "conditional";
  return out;
}

std::vector<std::pair<std::string_view, std::string>> hlo_attributes(std::string_view opcode, std::string_view text) {
  std::vector<std::pair<std::string_view, std::string>> out;
  if (opcode == "dot") {
    const auto contracting = both_sides(text, "contracting_dims"), batching = both_sides(text, "batching_dims");
    out.emplace_back("lhs_contracting_dims", contracting.first);
    out.emplace_back("rhs_contracting_dims", contracting.second);
    out.emplace_back("lhs_batch_dims", batching.first);
    out.emplace_back("rhs_batch_dims", batching.second);
  }
  if (opcode == "convolution") add_convolution(text, out);
  if (opcode == "broadcast") out.emplace_back("dimensions", in_braces(list_after(text, "dims")));
  if (opcode == "reduce" || opcode == "transpose" || opcode == "concatenate")
    out.emplace_back("dimensions", in_braces(list_after(text, opcode == "transpose" ? "dims" : "dimensions")));
  if (opcode == "compare") out.emplace_back("direction", std::string(trim(text).substr(0, 2)));
  for (const std::string_view key : {"replica_groups", "source_target_pairs"})
    if (std::string groups = dense_groups(text, key); !groups.empty()) out.emplace_back(key, std::move(groups));
  if (text.find("use_global_device_ids") != std::string_view::npos) out.emplace_back("use_global_device_ids", "true");
  if (opcode == "all-gather")
    if (const auto dim = number_after(text, "all_gather_dim"))
      out.emplace_back("dimensions", fmt::format("{{{}}}", *dim));
  if (const auto sharding = text_after(text, "mhlo.sharding")) out.emplace_back("sharding", std::string(*sharding));
  if (const std::size_t at = text.find("#sdy.sharding"); at != std::string_view::npos)
    out.emplace_back("frontend_attributes", std::string(text.substr(at, text.find("]>", at) + 2 - at)));
  return out;
}

}  // namespace assay::hlo
