#include "assay/lab/benchmark/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "assay/base/text.h"
#include "assay/model/checkpoint/json_reader.h"

namespace assay::benchmark {
namespace {

using model::Json;

constexpr std::size_t largest_json = 256U << 20;

/// A member, or an item by its number; nullptr if there is none.
const Json* member(const Json& json, std::string_view key) {
  if (json.kind != Json::Kind::list) return json.find(key);
  const auto index = parse_number(key);
  return index && *index >= 0.0 && *index < static_cast<double>(json.items.size())
             ? &json.items[static_cast<std::size_t>(*index)]
             : nullptr;
}

const Json* at_path(const Json& root, std::string_view path) {
  if (const Json* whole = root.find(path)) return whole;  // keys may have dots themselves
  const Json* json = &root;
  for (const std::string& key : split(path, '.'))
    if (json) json = member(*json, key);
  return json;
}

/// A scalar as text; nothing for null, lists and objects.
std::optional<std::string> text_of(const Json* json) {
  if (!json) return std::nullopt;
  switch (json->kind) {
    case Json::Kind::text:
      return json->text;
    case Json::Kind::integer:
      return std::to_string(json->integer);
    case Json::Kind::number:
      return fmt::format("{}", json->number);
    default:
      return std::nullopt;
  }
}

/// A table of metrics in several sections: rows that start with "Metric" name the columns of those below.
std::optional<std::string> field_of(std::span<const std::string> lines, std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::vector<std::string> head;
  for (const std::string& line : lines) {
    std::vector<std::string> fields = split(line, ',');
    if (fields.front() == "Metric")
      head = std::move(fields);
    else if (fields.front() == path.substr(0, dot))
      for (std::size_t i = 1; i < std::min(fields.size(), head.size()); ++i)
        if (head[i] == path.substr(dot + 1)) return std::move(fields[i]);
  }
  return std::nullopt;
}

/// What stands behind a label in one of the lines, up to a blank or a comma, or up to what the star names.
std::optional<std::string> value_behind(std::span<const std::string> lines, std::string_view path) {
  const std::size_t star = path.find('*');
  const std::string_view label = path.substr(0, star);
  for (const std::string& line : lines) {
    const std::size_t at = line.find(label);
    if (at == std::string::npos) continue;
    std::string_view rest = trim(std::string_view(line).substr(at + label.size()));
    if (star != std::string_view::npos) {
      const std::size_t end = rest.find(path.substr(star + 1));
      if (end != std::string_view::npos) return std::string(trim(rest.substr(0, end)));
      continue;
    }
    rest = rest.substr(0, rest.find_first_of(" \t%"));
    while (!rest.empty() && rest.back() == ',') rest.remove_suffix(1);
    return std::string(rest);
  }
  return std::nullopt;
}

/// A line without the colours of a terminal.
std::string plain(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && line[i] != 'm') ++i;
      continue;
    }
    if (line[i] != '\r') out += line[i];
  }
  return out;
}

}  // namespace

struct Document::Content {
  std::string file;
  struct Value {
    Json json;
    int line = 0;  ///< 0: the whole file
  };
  std::vector<Value> values;
  std::vector<std::string> lines;
  bool is_table = false;
};

namespace {

/// A document, or one in each line.
Result<std::vector<std::pair<Json, int>>> read_values(std::string_view text, std::string_view file) {
  std::vector<std::pair<Json, int>> out;
  auto whole = model::parse_json(text, file, largest_json);
  if (whole) {
    if (whole->kind == Json::Kind::list)
      for (Json& item : whole->items) out.emplace_back(std::move(item), 0);
    else
      out.emplace_back(std::move(*whole), 0);
    return out;
  }
  const std::vector<std::string> lines = split(text, '\n');
  const bool of_lines = lines.size() > 1 && model::parse_json(lines.front(), file).has_value();
  if (!of_lines) return tl::unexpected<Error>(std::move(whole).error());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    ASSAY_TRY(value, model::parse_json(lines[i], fmt::format("{}:{}", file, i + 1), largest_json));
    out.emplace_back(std::move(value), static_cast<int>(i + 1));
  }
  return out;
}

}  // namespace

Result<Document> Document::parse(std::string_view text, std::string_view file) {
  auto content = std::make_shared<Content>();
  content->file = file;
  if (trim(text).empty()) return fail(std::string(file), "the file is empty", "name a file that a benchmark wrote");
  const std::string_view begin = trim(text);
  if (begin.front() == '{' || (begin.front() == '[' && trim(begin.substr(1)).starts_with('{'))) {
    ASSAY_TRY(values, read_values(text, file));
    for (auto& [json, line] : values) content->values.push_back({std::move(json), line});
  } else {
    for (const std::string& line : split(text, '\n')) content->lines.push_back(plain(line));
    content->is_table = content->lines.front().starts_with("Metric,");
  }
  Document out;
  out.content_ = std::move(content);
  return out;
}

std::vector<Part> Document::parts(const Writer& writer) const {
  const auto& all = content_;
  std::vector<Part> out;
  if (writer.form == Writer::Form::table && all->is_table)
    out.push_back({all->file, [all](std::string_view path) { return field_of(all->lines, path); }});
  if (writer.form == Writer::Form::log && !all->is_table)
    for (std::size_t i = 0; i < all->lines.size(); ++i)
      if (all->lines[i].find(writer.step) != std::string::npos)
        out.push_back({fmt::format("{}:{}", all->file, i + 1), [all, i, is_first = out.empty()](std::string_view path) {
                         auto own = value_behind(std::span(&all->lines[i], 1), path);
                         return own || !is_first ? own : value_behind(all->lines, path);  // what holds for the run
                       }});
  if (writer.form != Writer::Form::json) return out;
  for (std::size_t v = 0; v < all->values.size(); ++v) {
    const Json& root = all->values[v].json;
    const int line = all->values[v].line;
    const std::string place = line > 0 ? fmt::format("{}:{}", all->file, line) : all->file;
    const Json* list = writer.rows.empty() ? nullptr : at_path(root, writer.rows);
    if (!writer.rows.empty() && (!list || list->kind != Json::Kind::list)) continue;
    const auto add = [&](const Json& row, const std::string& where) {
      out.push_back({where, [all, &row, &root](std::string_view path) {
                       if (auto own = text_of(at_path(row, path))) return own;
                       return text_of(at_path(root, path));
                     }});
    };
    if (!list)
      add(root, all->values.size() > 1 && line == 0 ? fmt::format("{}: run {}", place, v + 1) : place);
    else
      for (std::size_t i = 0; i < list->items.size(); ++i) add(list->items[i], fmt::format("{}: run {}", place, i + 1));
  }
  return out;
}

}  // namespace assay::benchmark
