#include "assay/ask/report/patterns.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::report {
namespace {

/// The path of a pattern that is nothing but one.
std::string_view only_path(std::string_view pattern) {
  const bool whole = pattern.starts_with('{') && pattern.find('}') == pattern.size() - 1 && !pattern.ends_with("%}");
  return whole ? pattern.substr(1, pattern.size() - 2) : std::string_view{};
}

/// A unit for several values: that of the one in the middle, so that neither end needs many digits. Nothing if they
/// are not all of one kind.
std::optional<SharedUnit> unit_for(const std::vector<const Value*>& values) {
  std::vector<AnyQuantity> known;
  for (const Value* value : values) {
    const auto* quantity = std::get_if<QuantityValue>(&value->data());
    if (!quantity || (!known.empty() && quantity->quantity.dim != known.front().dim)) return std::nullopt;
    if (quantity->quantity.value != 0.0) known.push_back(quantity->quantity);
  }
  if (known.empty() || known.front().dim.usd != 0) return std::nullopt;  // money has its own rules
  std::sort(known.begin(), known.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  return shared_unit(known[known.size() / 2]);
}

/// "{a} at {b}", "{c}" of a text with | between them.
std::vector<std::string_view> patterns_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t bar = text.find('|');
    out.push_back(trim(text.substr(0, bar)));
    if (bar == std::string_view::npos) return out;
    text.remove_prefix(bar + 1);
  }
}

/// "6 rows of levels: level = {name} | chips = {chips}"; nothing where the text is no table.
std::optional<ScreenTable> described_table(const Reader& results, const std::string& label, std::string_view text) {
  constexpr std::string_view rows = " rows of ";
  const std::size_t at = text.find(rows), colon = text.find(": ");
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at) return std::nullopt;
  const std::string_view path = text.substr(at + rows.size(), colon - at - rows.size());
  const auto most = parse_number(text.substr(0, at));
  std::vector<std::pair<std::string_view, std::string_view>> columns;
  for (const std::string_view column : patterns_of(text.substr(colon + 2))) {
    const std::size_t equals = column.find("= ");
    columns.emplace_back(trim(column.substr(0, equals)), trim(column.substr(equals + 2)));
  }
  return table_of(results, path, label, columns, most ? static_cast<std::size_t>(*most) : results.rows(path).size());
}

}  // namespace

std::optional<std::string> filled(const Reader& results, std::string_view pattern) {
  std::string text;
  while (true) {
    const std::size_t open = pattern.find('{');
    text += pattern.substr(0, open);
    if (open == std::string_view::npos) return text;
    const std::size_t close = pattern.find('}', open);
    std::string_view path = pattern.substr(open + 1, close - open - 1);
    const bool share = path.ends_with('%');
    if (share) path.remove_suffix(1);
    const std::string value = !results.has(path) ? "" : share ? percent(results.number(path)) : results.text(path);
    if (value.empty()) return std::nullopt;
    text += value;
    pattern.remove_prefix(close + 1);
  }
}

std::vector<Phrase> phrases(const Reader& results, const std::vector<std::string_view>& patterns, Tone tone) {
  std::vector<Phrase> out;
  for (const std::string_view pattern : patterns)
    if (auto text = filled(results, pattern)) out.push_back({std::move(*text), tone});
  return out;
}

std::vector<Phrase> each_of(const Reader& results, std::string_view path) {
  std::vector<Phrase> out;
  const Value* object = results.at(path);
  if (!object || !object->members()) return out;
  std::vector<const Value*> values;
  for (const auto& [key, value] : *object->members())
    if (!value.is_null()) values.push_back(&value);
  const auto unit = unit_for(values);
  for (const auto& [key, value] : *object->members()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', ' ');
    const std::string text = unit ? short_number(*numeric(value) / unit->scale) : short_text(value);
    if (!text.empty() && !value.is_null()) out.push_back({fmt::format("{} {}", name, text)});
  }
  if (unit && !out.empty()) out.back().text += " " + unit->unit;
  return out;
}

ScreenTable table_of(const Reader& results, std::string_view path, std::string label,
                     const std::vector<std::pair<std::string_view, std::string_view>>& columns, std::size_t most) {
  const Items& all = results.rows(path);
  const Items rows(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size())));
  ScreenTable table{std::move(label), {}, std::vector<std::vector<std::string>>(rows.size())};
  for (const auto& [head, pattern] : columns) {
    const std::string_view single = only_path(pattern);
    std::vector<const Value*> values;
    for (const Value& row : rows)
      if (const Reader reader(*row.members()); !single.empty() && reader.has(single))
        values.push_back(reader.at(single));
    const auto unit = unit_for(values);
    std::vector<std::string> cells;
    for (const Value& row : rows) {
      const Reader reader(*row.members());
      const auto quantity = unit ? reader.quantity(single) : std::nullopt;
      cells.push_back(quantity && quantity->value == 0.0 ? "0"
                      : quantity ? fmt::format("{} {}", short_number(quantity->value / unit->scale), unit->unit)
                                 : filled(reader, pattern).value_or(""));
    }
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& cell) { return cell.empty(); })) continue;
    table.head.emplace_back(head);
    for (std::size_t i = 0; i < cells.size(); ++i) table.rows[i].push_back(std::move(cells[i]));
  }
  if (all.size() > rows.size()) table.more = fmt::format("and {} more: --all", all.size() - rows.size());
  return table;
}

void add_line(Screen& screen, std::string label, std::vector<Phrase> all) {
  if (!all.empty()) screen.blocks.emplace_back(PhraseLine{std::move(label), std::move(all)});
}

void add_table(Screen& screen, ScreenTable table) {
  if (!table.rows.empty()) screen.blocks.emplace_back(std::move(table));
}

void add_blocks(Screen& screen, const Reader& results, std::string_view text) {
  std::vector<std::string> blocks;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(' '))
      blocks.back() += line.substr(1);
    else if (!line.empty())
      blocks.emplace_back(line);
  }
  for (const std::string_view block : blocks) {
    constexpr std::string_view each = "each ";
    std::string label(block.substr(0, block.find(": ")));
    const std::string_view rest = block.substr(label.size() + 2);
    const bool strong = label.ends_with('!');
    if (strong) label.pop_back();
    if (auto table = described_table(results, label, rest))
      add_table(screen, std::move(*table));
    else if (rest.starts_with(each))
      add_line(screen, label, each_of(results, rest.substr(each.size())));
    else
      add_line(screen, label, phrases(results, patterns_of(rest), strong ? Tone::strong : Tone::plain));
  }
}

std::string range_words(const Reader& results, std::string_view path) {
  const auto at = [&](std::string_view key) { return fmt::format("{}.{}", path, key); };
  const auto estimate = results.quantity(at("estimate"));
  const SharedUnit unit = shared_unit(estimate ? *estimate : results.quantity(at("upper")).value_or(AnyQuantity()));
  const auto span = [&](std::string_view low, std::string_view high) {
    const std::string from = unit.number(results.number(at(low))), to = unit.number(results.number(at(high)));
    const std::string end = unit.unit.empty() ? "" : "\u00a0" + unit.unit;  // no line ends before a unit
    return from == to ? from + end : fmt::format("{}\u00a0..\u00a0{}{}", from, to, end);
  };
  const std::string ideal = fmt::format("ideal hardware: {}", span("lower", "upper"));
  if (!results.has(at("interval"))) return ideal;
  std::string text =
      fmt::format("{:.0f} % of such predictions lie within {}", 100.0 * results.number(at("interval.coverage")),
                  span("interval.low", "interval.high"));
  if (results.truth(at("interval.extrapolates")) && results.has(at("interval.extrapolates_in")))
    text += fmt::format(" (extrapolates in {})", results.text(at("interval.extrapolates_in")));
  return text + "; " + ideal;
}

}  // namespace assay::report
