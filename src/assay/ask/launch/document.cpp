#include "assay/ask/launch/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "assay/ask/launch/references.h"
#include "assay/base/text.h"
#include "assay/base/toml.h"
#include "assay/model/checkpoint/json_reader.h"

namespace assay::launch {
namespace {

std::string joined(std::string_view prefix, std::string_view key) {
  return prefix.empty() ? std::string(key) : fmt::format("{}.{}", prefix, key);
}

void flatten(const model::Json& node, const std::string& name, std::vector<Given>& out) {
  if (node.kind == model::Json::Kind::object) {
    for (const auto& [key, member] : node.members) flatten(member, joined(name, key), out);
  } else if (node.kind == model::Json::Kind::list) {
    std::vector<std::string> items;
    for (const model::Json& item : node.items) items.push_back(item.members.empty() ? scalar_of(item) : "...");
    out.push_back({name, join(items, ","), false});
  } else {
    out.push_back({name, scalar_of(node), false});
  }
}

/// As TOML, YAML and JSON all write it.
std::string value_text(const Line& line) {
  if (line.is_list) {
    std::vector<std::string> items;
    for (const std::string& item : split(line.value, ',')) items.push_back(value_text({"", item, ""}));
    return fmt::format("[{}]", join(items, ", "));
  }
  if (!line.is_text &&
      (line.value == "true" || line.value == "false" || line.value == "null" || parse_number(line.value)))
    return line.value;
  std::string out = "\"";
  for (const char c : line.value) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string comment_of(const Line& line) { return line.reason.empty() ? "" : "  # " + line.reason; }

std::string write_toml(const std::vector<Line>& lines) {
  std::vector<std::string> tables;
  const auto table_of = [](const std::string& name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? std::string() : name.substr(0, dot);
  };
  for (const Line& line : lines)
    if (std::find(tables.begin(), tables.end(), table_of(line.name)) == tables.end())
      tables.push_back(table_of(line.name));
  // Keys of the root come before all tables.
  std::stable_partition(tables.begin(), tables.end(), [](const std::string& table) { return table.empty(); });
  std::string out;
  for (const std::string& table : tables) {
    if (!table.empty()) out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", table);
    for (const Line& line : lines)
      if (table_of(line.name) == table)
        out += fmt::format("{} = {}{}\n", line.name.substr(table.empty() ? 0 : table.size() + 1), value_text(line),
                           comment_of(line));
  }
  return out;
}

/// Lines below one prefix, as a nested object.
void write_nested(Style style, const std::vector<Line>& lines, const std::string& prefix, int depth, std::string& out) {
  std::vector<std::string> keys;
  for (const Line& line : lines) {
    if (!line.name.starts_with(prefix)) continue;
    const std::string key = line.name.substr(prefix.size(), line.name.find('.', prefix.size()) - prefix.size());
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  const std::string indent(2 * static_cast<std::size_t>(depth), ' ');
  for (const std::string& key : keys) {
    const bool last = key == keys.back();
    const auto leaf = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == prefix + key; });
    if (style == Style::json) {
      out += fmt::format("{}\"{}\": ", indent, key);
      if (leaf != lines.end()) {
        out += value_text(*leaf);
      } else {
        out += "{\n";
        write_nested(style, lines, prefix + key + ".", depth + 1, out);
        out += indent + "}";
      }
      out += last ? "\n" : ",\n";
    } else if (leaf != lines.end()) {
      out += fmt::format("{}{}: {}{}\n", indent, key, value_text(*leaf), comment_of(*leaf));
    } else {
      out += fmt::format("{}{}:\n", indent, key);
      write_nested(style, lines, prefix + key + ".", depth + 1, out);
    }
  }
}

}  // namespace

std::string scalar_of(const model::Json& node) {
  switch (node.kind) {
    case model::Json::Kind::null:
      return "null";
    case model::Json::Kind::boolean:
      return node.boolean ? "true" : "false";
    case model::Json::Kind::integer:
      return std::to_string(node.integer);
    case model::Json::Kind::number:
      return exact_number(node.number);
    default:
      return node.text;
  }
}

std::vector<Given> flat(const model::Json& tree) {
  std::vector<Given> out;
  flatten(tree, "", out);
  return out;
}

Result<std::vector<model::Json>> read_trees(Style style, std::string_view text, std::string_view file) {
  std::vector<model::Json> out;
  if (style == Style::yaml) {
    ASSAY_TRY(trees, read_yaml(text, file));
    out = std::move(trees);
    for (model::Json& tree : out) resolve_references(tree);
    return out;
  }
  if (style == Style::toml) {
    ASSAY_TRY(root, parse_toml(text, file));
    out.push_back(model::json_of(root));
  } else {
    ASSAY_TRY(root, model::parse_json(text, file));
    out.push_back(std::move(root));
  }
  return out;
}

Result<std::vector<Given>> read_document(Style style, std::string_view text, std::string_view file) {
  ASSAY_TRY(trees, read_trees(style, text, file));
  std::vector<Given> out;
  for (const model::Json& tree : trees) flatten(tree, "", out);
  return out;
}

std::string write_document(Style style, const std::vector<Line>& lines) {
  if (style == Style::toml) return write_toml(lines);
  std::string out;
  write_nested(style, lines, "", style == Style::json ? 1 : 0, out);
  return style == Style::json ? "{\n" + out + "}\n" : out;
}

}  // namespace assay::launch
