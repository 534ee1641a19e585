#include "assay/ask/report/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/ask/report/derivation.h"
#include "assay/ask/report/html.h"
#include "assay/ask/report/layout.h"
#include "assay/ask/report/reader.h"
#include "assay/base/text.h"

namespace assay::report {
namespace {

constexpr std::string_view bold = "1", dim = "2", red = "31", green = "32";

std::string paint(std::string_view text, std::string_view code, bool colour) {
  return colour && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

/// A list or object without entries has nothing to show.
bool is_empty(const Value& value) {
  return (value.items() && value.items()->empty()) || (value.members() && value.members()->empty());
}

bool is_range(const Value& value) { return value.find("lower") && value.find("upper"); }
bool is_interval(const Value& value) { return value.find("low") && value.find("high") && value.find("coverage"); }

/// Members that only programs read: requests to send back, and what pictures show.
bool is_for_programs(std::string_view key) {
  return key == "arguments" || key == "controls" || key == "timeline" || key == "blocks";
}

/// A list of objects: printed as a table.
bool is_table(const Value& value) {
  const Items* items = value.items();
  return items && !items->empty() && items->front().members();
}

std::string list_text(const Items& items) {
  std::string text;
  for (const Value& item : items) {
    const Items* inner = item.items();
    text += (text.empty() ? "" : ", ") + (inner ? "[" + list_text(*inner) + "]" : scalar_text(item));
  }
  return text;
}

/// Quantities of one line in the unit of the first, if one of them is in hours or days: other units differ by prefixes
/// that one reads at a glance.
std::vector<std::string> alike_texts(const std::vector<const Value*>& values) {
  std::vector<std::string> texts, units;
  for (const Value* value : values) {
    texts.push_back(scalar_text(*value));
    const std::size_t space = texts.back().rfind(' ');
    units.push_back(space == std::string::npos ? "" : texts.back().substr(space + 1));
  }
  const bool is_long = std::any_of(units.begin(), units.end(), [](const auto& u) { return u == "h" || u == "days"; });
  const auto unit = parse_quantity("1 " + units.front(), "");
  for (std::size_t i = 0; is_long && unit && i < values.size(); ++i)
    if (const auto number = numeric(*values[i]); number && units[i] != units.front())
      texts[i] = human_number(*number / unit->value) + " " + units.front();
  return texts;
}

/// The estimate first: bounds assume ideal hardware, and real hardware may be above both.
std::string range_text(const Value& value) {
  const Value *estimate = value.find("estimate"), *interval = value.find("interval");
  const Value *lower = value.find("lower"), *upper = value.find("upper");
  if (!estimate) {
    const auto texts = alike_texts({lower, upper});
    return texts[0] + " .. " + texts[1];
  }
  std::vector<const Value*> values{estimate, lower, upper};
  const Value *low = interval ? interval->find("low") : nullptr, *high = interval ? interval->find("high") : nullptr,
              *coverage = interval ? interval->find("coverage") : nullptr;
  const bool has_interval = low && high && coverage;
  if (has_interval) values.insert(values.end(), {low, high});
  const auto texts = alike_texts(values);
  std::string text = texts[0] + "  (";
  if (has_interval) text += fmt::format("{:.0f} % within {} .. {}; ", 100.0 * *numeric(*coverage), texts[3], texts[4]);
  return fmt::format("{}ideal {} .. {})", text, texts[1], texts[2]);
}

/// GB and GiB are not mixed among values that stand together: one that is not whole in GiB makes all of them GB.
class CommonPrefix {
 public:
  void add(const Value& value) {
    const auto* quantity = std::get_if<QuantityValue>(&value.data());
    if (!quantity || quantity->quantity.dim != Bytes::dim || std::abs(quantity->quantity.value) < (1_kB).value())
      return;
    if (!human(quantity->quantity).ends_with("iB")) prefix_ = BytePrefix::decimal;
  }
  BytePrefix prefix() const { return prefix_; }

 private:
  BytePrefix prefix_ = BytePrefix::binary_if_exact;
};

/// One cell or one line: scalars, ranges and lists of scalars.
std::string cell(const Value& value, BytePrefix bytes = BytePrefix::binary_if_exact) {
  if (is_range(value)) return range_text(value);
  if (is_interval(value)) {
    const auto texts = alike_texts({value.find("low"), value.find("high")});
    return texts[0] + " .. " + texts[1];
  }
  if (const Items* items = value.items()) return list_text(*items);
  return scalar_text(value, bytes);
}

/// An object of scalars (and ranges) only can stand on its own lines; deeper ones become groups.
struct Grid {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> numeric;
};

void flatten(const std::string& prefix, const Value& value, std::vector<std::pair<std::string, const Value*>>& out) {
  const Members* members = value.members();
  if (!members || is_range(value) || is_interval(value)) {
    out.emplace_back(prefix, &value);
    return;
  }
  for (const auto& [key, member] : *members)
    if (!is_for_programs(key)) flatten(prefix.empty() ? key : prefix + "." + key, member, out);
}

Grid grid(const Items& items) {
  Grid table;
  std::vector<std::vector<std::pair<std::string, const Value*>>> all;
  std::map<std::string, CommonPrefix> prefixes;
  for (const Value& item : items) {
    flatten("", item, all.emplace_back());
    for (const auto& [key, value] : all.back()) prefixes[key].add(*value);
  }
  for (const auto& cells : all) {
    std::vector<std::string> row(table.head.size());
    for (const auto& [key, value] : cells) {
      const auto column = std::find(table.head.begin(), table.head.end(), key);
      const auto index = static_cast<std::size_t>(column - table.head.begin());
      if (column == table.head.end()) {
        table.head.push_back(key);
        table.numeric.push_back(true);
        row.emplace_back();
        for (auto& earlier : table.rows) earlier.emplace_back();
      }
      row[index] = cell(*value, prefixes[key].prefix());
      if (!value->is_null() && !numeric(*value)) table.numeric[index] = false;
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string text_table(const Items& items, const std::string& indent, bool colour) {
  const Grid table = grid(items);
  std::vector<std::size_t> widths;
  for (const std::string& head : table.head) widths.push_back(columns(words(head)));
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  const auto line = [&](const std::vector<std::string>& row, bool head) {
    std::string text = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string shown = head ? words(row[i]) : row[i];
      const std::string space(widths[i] - std::min(widths[i], columns(shown)), ' ');
      text += (i ? "  " : "") + (table.numeric[i] ? space + shown : i + 1 == row.size() ? shown : shown + space);
    }
    while (text.size() > indent.size() && text.back() == ' ') text.pop_back();
    return head ? paint(text, bold, colour) + "\n" : text + "\n";
  };
  std::string text = line(table.head, true);
  for (const auto& row : table.rows) text += line(row, false);
  return text;
}

std::string source_text(const Value& value) {
  const auto* quantity = std::get_if<QuantityValue>(&value.data());
  if (!quantity || quantity->source.empty()) return "";
  std::string text = "[" + quantity->source + "]";
  for (const auto& [other, source] : quantity->also)
    if (human(other) != human(quantity->quantity)) text += fmt::format("  also {} [{}]", human(other), source);
  return text;
}

void text_members(const Members& members, const std::string& indent, bool colour, std::string& out) {
  std::size_t label = 0, value_width = 0;
  CommonPrefix common;
  for (const auto& [key, value] : members) common.add(value);
  const BytePrefix bytes = common.prefix();
  for (const auto& [key, value] : members)
    if (!(value.members() && !is_range(value)) && !is_table(value) && !is_empty(value)) {
      label = std::max(label, columns(words(key)));
      if (!source_text(value).empty()) value_width = std::max(value_width, columns(cell(value, bytes)));
    }
  for (const auto& [key, value] : members) {
    if (is_empty(value) || is_for_programs(key)) continue;
    if (is_table(value)) {
      out += fmt::format("{}{}\n{}", indent, paint(words(key), bold, colour),
                         text_table(*value.items(), indent + "  ", colour));
    } else if (value.members() && !is_range(value)) {
      out += fmt::format("{}{}\n", indent, paint(words(key), bold, colour));
      text_members(*value.members(), indent + "  ", colour, out);
    } else {
      const std::string source = source_text(value);
      std::string shown = source.empty() ? cell(value, bytes)
                                         : padded(cell(value, bytes), value_width) + "  " + paint(source, dim, colour);
      out += fmt::format("{}{}  {}\n", indent, padded(words(key), label), shown);
    }
  }
}

std::string render_table(const Response& response, const RenderOptions& options) {
  std::string out;
  if (!options.quiet && !response.headline.empty())
    out += paint(printable(response.headline), bold, options.colour) + "\n\n";
  text_members(response.results, "", options.colour, out);
  if (options.explain && !response.derived.empty())
    out += "\n" + render_derivation(response, options.colour, options.width);
  if (!options.quiet)
    for (const std::string& note : response.notes)
      out += (&note == &response.notes.front() ? "\n" : "") + paint("note: " + printable(note), dim, options.colour) +
             "\n";
  return out;
}

void tree_lines(const Value& value, const std::string& indent, std::string& out) {
  std::vector<std::pair<std::string, const Value*>> children;
  if (const Members* members = value.members())
    for (const auto& [key, member] : *members)
      if (!is_empty(member) && !is_for_programs(key)) children.emplace_back(words(key), &member);
  if (const Items* items = value.items())
    for (const Value& item : *items) children.emplace_back(fmt::format("[{}]", &item - items->data()), &item);
  for (const auto& [name, member] : children) {
    const bool last = member == children.back().second;
    const bool leaf = !(member->members() && !is_range(*member)) && !is_table(*member);
    out += indent + (last ? "`-- " : "|-- ") + name + (leaf ? ": " + cell(*member) : "") + "\n";
    if (!leaf) tree_lines(*member, indent + (last ? "    " : "|   "), out);
  }
}

std::string md_escape(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

void md_members(const Members& members, const std::string& path, std::string& rows, std::string& tables) {
  for (const auto& [key, value] : members) {
    if (is_empty(value) || is_for_programs(key)) continue;
    const std::string name = path.empty() ? words(key) : path + " / " + words(key);
    if (is_table(value)) {
      const Grid table = grid(*value.items());
      tables += "\n**" + name + "**\n\n|";
      for (const std::string& head : table.head) tables += " " + md_escape(words(head)) + " |";
      tables += "\n|";
      for (bool right : table.numeric) tables += right ? " ---: |" : " --- |";
      tables += "\n";
      for (const auto& row : table.rows) {
        tables += "|";
        for (const std::string& text : row) tables += " " + md_escape(text) + " |";
        tables += "\n";
      }
    } else if (value.members() && !is_range(value)) {
      md_members(*value.members(), name, rows, tables);
    } else {
      rows += fmt::format("| {} | {} |\n", name, md_escape(cell(value)));
    }
  }
}

std::string render_md(const Response& response, const RenderOptions& options) {
  std::string rows, tables, out;
  md_members(response.results, "", rows, tables);
  if (!options.quiet && !response.headline.empty()) out += "**" + response.headline + "**\n\n";
  if (!rows.empty()) out += "| quantity | value |\n| --- | --- |\n" + rows;
  out += tables;
  if (options.explain && !response.derived.empty()) out += "\n```\n" + render_derivation(response, false, 0) + "```\n";
  if (!options.quiet)
    for (const std::string& note : response.notes) out += "\n> " + note + "\n";
  return out;
}

/// Text of a message, which may contain user input: control bytes are spelled out and long text is cut.
std::string printable(std::string_view text) {
  constexpr std::size_t limit = 600;
  const bool utf8 = !invalid_utf8(text.substr(0, limit));
  std::string out;
  for (char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f || (byte >= 0x80 && !utf8))
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return text.size() > limit ? out + "..." : out;
}

std::string csv_cell(const Value& value) {
  std::string text;
  if (const auto number = numeric(value))
    text = exact_number(*number);
  else if (const Items* items = value.items())
    text = list_text(*items);
  else if (!value.is_null())
    text = scalar_text(value);
  return csv_quoted(std::move(text));
}

std::string unit_of(const Value& value) {
  const auto* quantity = std::get_if<QuantityValue>(&value.data());
  return quantity ? base_unit(quantity->quantity.dim) : "";
}

/// Objects and ranges down to single values, "time.lower".
void leaves(const std::string& prefix, const Value& value, std::vector<std::pair<std::string, const Value*>>& out) {
  if (const Members* members = value.members()) {
    for (const auto& [key, member] : *members)
      if (!is_for_programs(key)) leaves(prefix.empty() ? key : prefix + "." + key, member, out);
  } else if (is_table(value)) {
    for (const Value& item : *value.items())
      leaves(fmt::format("{}[{}]", prefix, &item - value.items()->data()), item, out);
  } else {
    out.emplace_back(prefix, &value);
  }
}

}  // namespace

std::optional<ScreenTable> whole_list(const Members& results, std::string_view path,
                                      const std::vector<std::string_view>& keys) {
  constexpr std::size_t most_lines = 8;
  const Value* list = Reader(results).at(path);
  if (!list || !is_table(*list)) return std::nullopt;
  const Grid all = grid(*list->items());
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < all.head.size() && keys.empty(); ++i) columns.push_back(i);
  for (const std::string_view key : keys)
    if (const auto at = std::find(all.head.begin(), all.head.end(), key); at != all.head.end())
      columns.push_back(static_cast<std::size_t>(at - all.head.begin()));
  ScreenTable table{"", {}, std::vector<std::vector<std::string>>(all.rows.size()), "", most_lines};
  for (const std::size_t column : columns) {
    table.head.push_back(words(all.head[column]));
    for (std::size_t row = 0; row < all.rows.size(); ++row) table.rows[row].push_back(all.rows[row][column]);
  }
  return table;
}

std::string csv_quoted(std::string text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, "\"");
  return "\"" + text + "\"";
}

std::string render_csv(const Response& response) {
  const Value results{response.results};
  const Value* table = response.table_key.empty() ? nullptr : results.find(response.table_key);
  std::vector<std::pair<std::string, const Value*>> cells;
  if (!table || !is_table(*table)) {
    std::string out = "key,value,unit\n";
    leaves("", results, cells);
    for (const auto& [key, value] : cells) out += fmt::format("{},{},{}\n", key, csv_cell(*value), unit_of(*value));
    return out;
  }
  // Columns are in order of first appearance. A unit that all rows share goes into the header, others next to their
  // numbers.
  std::vector<std::string> head;
  std::vector<std::vector<std::pair<std::string, std::string>>> rows;
  for (const Value& item : *table->items()) {
    cells.clear();
    leaves("", item, cells);
    auto& row = rows.emplace_back(head.size());
    for (const auto& [key, value] : cells) {
      const bool of_interval = key.starts_with("interval.") || key.find(".interval.") != std::string::npos;
      if (of_interval && !key.ends_with(".low") && !key.ends_with(".high")) continue;  // the same in all rows
      const auto column = static_cast<std::size_t>(std::find(head.begin(), head.end(), key) - head.begin());
      if (column == head.size()) {
        head.push_back(key);
        row.emplace_back();
      }
      row[column] = {csv_cell(*value), unit_of(*value)};
    }
  }
  for (auto& row : rows) row.resize(head.size());
  std::string out;
  for (std::size_t i = 0; i < head.size(); ++i) {
    std::vector<std::string> units;
    for (const auto& row : rows)
      if (!row[i].first.empty() && std::find(units.begin(), units.end(), row[i].second) == units.end())
        units.push_back(row[i].second);
    const bool shared = units.size() == 1;
    out += (i ? "," : "") + head[i] + (shared && !units[0].empty() ? " [" + units[0] + "]" : "");
    for (auto& row : rows)
      if (!shared && !row[i].second.empty()) row[i].first += " " + row[i].second;
  }
  for (const auto& row : rows) {
    out += "\n";
    for (std::size_t i = 0; i < row.size(); ++i) out += (i ? "," : "") + row[i].first;
  }
  return out + "\n";
}

std::string render_derivation(const Response& response, bool colour, std::size_t width) {
  std::string out;
  const ShownDerivation shown = shown_derivation(response);
  for (const DerivationLine& line : shown.lines) {
    const std::size_t indent = 2 * static_cast<std::size_t>(line.depth);
    std::string formula = line.name;
    if (!line.formula.empty() && !line.repeated) formula += " = " + line.formula;
    constexpr std::size_t least = 40;  // columns of a formula, however deep
    const std::size_t room = width == 0 ? formula.size() + 2 : std::max(least, width - std::min(width, indent + 4));
    std::size_t column = 0;  // of the last line
    const auto add_line = [&](std::string_view text, bool first) {
      const std::size_t blanks = first ? indent : indent + 4;
      out += (first ? "" : "\n") + std::string(blanks, ' ') + std::string(text);
      column = blanks + columns(text);
    };
    const std::vector<std::string> lines = wrapped(formula + " =", room);
    for (std::size_t i = 0; i < lines.size(); ++i) add_line(lines[i], i == 0);
    const auto add = [&](const std::string& text, std::string_view blanks, const auto& style) {
      if (width > 0 && column + blanks.size() + columns(text) > width)
        add_line("", false);
      else
        out += blanks;
      out += paint(text, style, colour);
      column += blanks.size() + columns(text);
    };
    add(human(line.quantity), " ", bold);
    if (line.repeated) add("(above)", "   ", dim);
    if (!line.bound_by.empty() && !line.repeated) add(fmt::format("<- bound by {}", line.bound_by), "   ", green);
    if (!line.source.empty()) add(fmt::format("[{}]", line.source), "   ", dim);
    out += "\n";
  }
  if (shown.left_out > 0)
    out +=
        paint(fmt::format("{} below: --explain=all, or --explain=PATH for one part",
                          shown.left_out == 1 ? "1 line more"
                                              : human_count(static_cast<std::int64_t>(shown.left_out)) + " lines more"),
              dim, colour) +
        "\n";
  return out;
}

std::string render(const Response& response, const RenderOptions& options) {
  switch (options.format) {
    case Format::json:
      return render_json(response, options.explain);
    case Format::csv:
      return render_csv(response);
    case Format::md:
      return render_md(response, options);
    case Format::tree: {
      std::string out = options.quiet || response.headline.empty() ? "" : response.headline + "\n";
      tree_lines(Value(response.results), "", out);
      if (options.explain && !response.derived.empty()) out += "\n" + render_derivation(response, false, 0);
      return out;
    }
    case Format::svg:
      if (!response.picture) throw InternalError("a picture was asked for and not drawn");
      return draw::to_svg(*response.picture);
    case Format::html:
      return render_html(response);
    case Format::table:
      break;
  }
  if (response.lines.empty() && (options.all || !response.screen)) return render_table(response, options);
  if (response.lines.empty()) {
    std::string out = render(*response.screen, {options.width, options.colour, options.utf8, options.quiet});
    if (options.explain && !response.derived.empty())
      out += "\n" + render_derivation(response, options.colour, options.width);
    return out;
  }
  std::string out;
  for (const std::string& line : response.lines) out += line + "\n";
  return out;
}

std::string render(const Error& error, const RenderOptions& options) {
  if (options.format == Format::json) return render_json(error);
  std::string out;
  const auto add = [&](std::string_view label, std::string_view colour, const std::string& text) {
    std::string before = paint(label, colour, options.colour);
    for (const std::string& line : wrapped(printable(text), options.width - label.size())) {
      out += before + line + "\n";
      before = std::string(label.size(), ' ');
    }
  };
  // Lines after the first one show a place in a text: they are not wrapped.
  const std::size_t first = error.what.find('\n');
  const std::string what = error.what.substr(0, first);
  add("error: ", red, error.where.empty() ? what : error.where + ": " + what);
  for (std::size_t at = first; at != std::string::npos;) {
    const std::size_t next = error.what.find('\n', at + 1);
    out += std::string(5, ' ') +
           printable(error.what.substr(at + 1, next == std::string::npos ? next : next - at - 1)) + "\n";
    at = next;
  }
  if (!error.hint.empty()) add("hint:  ", dim, error.hint);
  for (const Error& other : error.also) out += render(other, options);
  return out;
}

}  // namespace assay::report
