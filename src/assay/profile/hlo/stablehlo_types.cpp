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
  const std::string out = lower_case(trim(text));
  if (out == "i1") return "pred";
  if (out == "complex<f32>") return "c64";
  if (out == "complex<f64>") return "c128";
  if (out.starts_with("ui")) return "u" + out.substr(2);
  if (out.starts_with("i")) return "s" + out.substr(1);
  return out;
}

}  // namespace

std::vector<std::string_view> top_level_parts(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t start = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (quoted) continue;
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

Result<std::vector<Shape>> result_types(std::string_view text, std::size_t count, const Cursor& in, std::size_t at) {
  std::vector<Shape> out;
  const std::size_t arrow = text.rfind("->");
  const bool shown = arrow != std::string_view::npos;
  std::string_view types = trim(shown ? text.substr(arrow + 2) : text);
  if (types.starts_with("(") && types.ends_with(")")) types = types.substr(1, types.size() - 2);
  std::vector<std::string_view> parts = top_level_parts(types);
  if (!shown && count <= 1 && parts.size() > 1) parts = {parts.back()};
  for (const std::string_view part : parts) {
    ASSAY_TRY(shape, parse_tensor_type(part, in, at));
    out.push_back(std::move(shape));
  }
  return out;
}

Pieces pieces_of(std::string_view text) {
  Pieces out;
  int depth = 0;
  std::size_t open = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (quoted) continue;
    if ((c == '(' || c == '[' || c == '{') && depth++ == 0) open = i;
    if ((c == ')' || c == ']' || c == '}') && --depth == 0) out.brackets.emplace_back(open, i);
    if (c == ':' && depth == 0) out.colon = i;
  }
  return out;
}

void divide(Statement& out, std::deque<std::string>& made, std::string_view text, std::size_t text_at, bool generic) {
  const Pieces pieces = pieces_of(text);
  const std::size_t end = pieces.colon.value_or(text.size());
  if (pieces.colon) out.types = text.substr(end + 1);
  out.operands = out.attributes = text.substr(0, end);
  const std::string opcode = hlo_opcode(out.operation);
  const bool manual = opcode == "call" && out.operation.starts_with("sdy.");
  const bool listed = generic || opcode == "call" || opcode == "custom-call" || opcode == "while";
  for (std::size_t i = 0; i < pieces.brackets.size() && pieces.brackets[i].first < end; ++i) {
    const auto [open, close] = pieces.brackets[i];
    if (i == 0 && listed && text[open] == '(') out.operands = text.substr(0, close + 1);
    const bool regions = text.substr(open).starts_with("({");
    const bool body = manual && !generic && i > 0 && i + 1 < pieces.brackets.size() &&
                      text[pieces.brackets[i].first] == '(' && text[pieces.brackets[i + 1].first] == '{';
    if (!regions && !body) continue;
    out.attributes = text.substr(0, open);
    if (body) {
      out.regions.push_back(text_at + open);
      break;
    }
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    for (const auto& [from, to] : pieces_of(inside).brackets)
      if (inside[from] == '{') out.regions.push_back(text_at + open + 1 + from);
    if (const std::string_view more = trim(text.substr(close + 1, end - close - 1)); !more.empty())
      out.attributes = made.emplace_back(fmt::format("{} {}", out.attributes, more));
    break;
  }
}

std::string_view symbol(std::string_view line) {
  if (const auto name = text_after(line, "sym_name")) return *name;
  const std::size_t at = line.find('@');
  return at == std::string_view::npos ? "" : line.substr(at + 1, line.find_first_of(" {(=\n", at) - at - 1);
}

std::vector<std::string_view> attribute_lists(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key), open = text.find('[', at);
  if (at == std::string_view::npos || open == std::string_view::npos) return {};
  Cursor in(text, "");
  in.move_to(open);
  const auto inside = in.bracketed();
  return inside ? top_level_parts(*inside) : std::vector<std::string_view>();
}

void blank_locations(std::string& text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    const bool starts = !quoted && text[i] == 'l' && text.compare(i, 4, "loc(") == 0 &&
                        (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n' || text[i - 1] == '=');
    if (!starts) continue;
    Cursor in(text, "");
    in.move_to(i + 3);
    if (!in.bracketed()) return;
    for (; i < in.at(); ++i)
      if (text[i] != '\n') text[i] = ' ';
    --i;
  }
}

}  // namespace assay::hlo
