#include "assay/ask/report/patterns.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/render.h"
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

/// Pairs of "level = {name} | chips = {chips}".
std::vector<std::pair<std::string_view, std::string_view>> pairs_of(std::string_view text) {
  std::vector<std::pair<std::string_view, std::string_view>> out;
  for (const std::string_view pair : patterns_of(text)) {
    const std::size_t equals = pair.find("= ");
    out.emplace_back(trim(pair.substr(0, equals)), trim(pair.substr(equals + 2)));
  }
  return out;
}

/// "memory.fits", "!sweep", "chips > 1", "ranks# > 1", "per = core": whether that is so.
bool holds(const Reader& results, std::string_view condition) {
  if (condition.starts_with('!')) return !holds(results, condition.substr(1));
  const std::size_t sign = condition.find_first_of("=<>");
  const std::string_view path = trim(condition.substr(0, sign));
  if (sign == std::string_view::npos) {
    const Value* value = results.at(path);
    const auto* truth = value ? std::get_if<bool>(&value->data()) : nullptr;
    return truth ? *truth : results.has(path);
  }
  const std::string_view other = trim(condition.substr(sign + 1));
  if (condition[sign] == '=' && !parse_number(other)) return results.text(path) == other;
  const double number = path.ends_with('#') ? static_cast<double>(results.rows(path.substr(0, path.size() - 1)).size())
                                            : results.number(path);
  const double limit = parse_number(other).value_or(results.number(other));
  return condition[sign] == '=' ? number == limit : condition[sign] == '<' ? number < limit : number > limit;
}

/// A text behind its conditions, "[chips > 1] {chips} chips", and the tone that they name: "[!fits bad] too large".
struct Guarded {
  std::string_view text;
  bool shown = true;
  std::optional<Tone> tone;
};

Guarded guarded(const Reader& results, std::string_view text) {
  constexpr std::pair<std::string_view, Tone> tones[] = {{" warning", Tone::warning}, {" bad", Tone::bad}};
  Guarded out{text, true, {}};
  while (out.text.starts_with('[')) {
    const std::size_t end = out.text.find(']');
    std::string_view condition = out.text.substr(1, end - 1);
    for (const auto& [word, tone] : tones)
      if (condition.ends_with(word)) {
        out.tone = tone;
        condition.remove_suffix(word.size());
      }
    out.shown = out.shown && holds(results, condition);
    out.text.remove_prefix(end + 1);
    if (out.text.starts_with(" [")) out.text.remove_prefix(1);
  }
  return out;
}

/// "[[0, 1], [2, 3]]"
std::string array_text(const Value& value) {
  const Items* items = value.items();
  if (!items) return scalar_text(value);
  std::string text;
  for (const Value& item : *items) text += (text.empty() ? "" : ", ") + array_text(item);
  return "[" + text + "]";
}

/// "dQ, dK = attention grad(dO, Q)" of "dQ[B, S], dK[B, S] = attention grad(dO[B, S], Q[B, S])"
std::string without_brackets(std::string_view text) {
  std::string out;
  int depth = 0;
  for (const char c : text) {
    if (c == '[') ++depth;
    if (depth == 0) out += c;
    if (c == ']') --depth;
  }
  return out;
}

/// What stands for "{path}", "{path%}" (a percentage, with a sign as "{path+%}"), "{path..}" (a range in words),
/// "{path;}" (up to the semicolon), "{path~}" (cut where it is wide), "{path#}" (how many rows), "{path[]}" (numbers in
/// brackets), "{path-}" (without what stands in brackets), "{path\n}" (on one line), "{path:.2f}" (formatted), "{path
/// iB}" (in binary units) and "{path of path}" (both in one unit); empty where it is missing.
std::string value_text(const Reader& results, std::string_view path) {
  constexpr std::string_view range = "..", binary = " iB", of = " of ";
  const auto without = [&](std::size_t n) { return path.substr(0, path.size() - n); };
  if (path.ends_with(range)) return results.has(without(2)) ? range_words(results, without(2)) : "";
  if (path.ends_with("+%")) return results.has(without(2)) ? signed_percent(results.number(without(2))) : "";
  if (path.ends_with('%')) return results.has(without(1)) ? percent(results.number(without(1))) : "";
  if (path.ends_with('#')) return fmt::format("{}", results.rows(without(1)).size());
  if (path.ends_with(binary)) return short_binary(Bytes(results.number(without(binary.size()))));
  if (path.ends_with(';')) {
    const std::string text = results.text(without(1));
    return text.substr(0, text.find(';'));
  }
  if (path.ends_with('~')) {
    constexpr std::size_t widest = 27;
    const std::string text = results.text(without(1));
    return text.size() > widest ? text.substr(0, widest - 2) + ".." : text;
  }
  if (path.ends_with('-')) return without_brackets(results.text(without(1)));
  if (path.ends_with("\\n")) {
    std::string text = results.text(without(2));
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
  if (const std::size_t form = path.find(':'); form != std::string_view::npos)
    return results.has(path.substr(0, form)) ? fmt::format(fmt::runtime(fmt::format("{{{}}}", path.substr(form))),
                                                           results.number(path.substr(0, form)))
                                             : "";
  if (path.ends_with("[]")) return results.has(without(2)) ? array_text(*results.at(without(2))) : "";
  const std::size_t at = path.find(of);
  if (at == std::string_view::npos) return results.has(path) ? results.text(path) : "";
  const auto whole = results.quantity(path.substr(at + of.size()));
  if (!whole || !results.has(path.substr(0, at))) return "";
  const SharedUnit unit = shared_unit(*whole);
  return fmt::format("{} of {}", unit.number(results.number(path.substr(0, at))), unit.text(whole->value));
}

/// The list as a table of all its keys; the first one has no head.
ScreenTable whole_table(const Reader& results, std::string_view path) {
  ScreenTable table;
  for (const Value& row : results.rows(path)) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const auto& [key, value] : *row.members()) {
      if (table.rows.size() == 1) table.head.push_back(cells.empty() ? "" : key);
      cells.push_back(value.is_null() ? "-" : short_text(value));
    }
  }
  return table;
}

/// Rows of a list that are "6", "all", "10 sampled" (evenly, with the last one) or "8 largest by KEY".
Items chosen_rows(const Items& all, std::string_view which) {
  constexpr std::string_view largest = " largest by ", sampled = " sampled";
  Items rows = all;
  const std::size_t by = which.find(largest);
  if (by != std::string_view::npos)
    std::stable_sort(rows.begin(), rows.end(),
                     [key = which.substr(by + largest.size())](const Value& a, const Value& b) {
                       return Reader(*a.members()).number(key) > Reader(*b.members()).number(key);
                     });
  if (!which.ends_with(sampled)) return rows;
  const auto most = static_cast<std::size_t>(parse_number(which.substr(0, which.size() - sampled.size())).value_or(1));
  const std::size_t every = std::max<std::size_t>(1, (all.size() + most - 1) / most);
  rows.clear();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % every == 0 || i + 1 == all.size()) rows.push_back(all[i]);
  return rows;
}

/// "6 rows of levels: level = {name} | * = {*}"; * is the first key of the rows.
ScreenTable described_table(const Reader& results, std::string label, std::string_view text) {
  constexpr std::string_view of = " rows of ";
  const std::size_t at = text.find(of), colon = text.find(": ");
  const std::string_view which = text.substr(0, at);
  const std::string_view path = text.substr(at + of.size(), std::min(colon, text.size()) - at - of.size());
  if (colon == std::string_view::npos) return whole_table(results, path);
  const Items& all = results.rows(path);
  auto columns = pairs_of(text.substr(colon + 2));
  const std::string first = all.empty() ? "" : all.front().members()->front().first, pattern = "{" + first + "}";
  for (auto& column : columns)
    if (column.first == "*") column = {first, pattern};
  const Members shown{{"rows", chosen_rows(all, which)}};
  const auto most = parse_number(which.substr(0, which.find(' ')));
  const bool samples = which.ends_with("sampled");
  const std::size_t count = Reader(shown).rows("rows").size();
  ScreenTable table = table_of(Reader(shown), "rows", std::move(label), columns,
                               most && !samples ? static_cast<std::size_t>(*most) : count);
  for (std::string& head : table.head) head = filled(results, head).value_or("");
  if (samples && count < all.size()) table.more = fmt::format("{} of {}: --all has all of them", count, all.size());
  return table;
}

/// "of price: {value} ({provider})": a phrase for each row of a list or, with {name}, for each member of an object.
std::vector<Phrase> phrases_of_rows(const Reader& results, std::string_view text) {
  const std::size_t colon = text.find(": ");
  const std::string_view path = text.substr(0, colon);
  std::vector<Phrase> out;
  const auto add = [&](const Members& row) {
    for (Phrase& phrase : phrases(Reader(row), patterns_of(text.substr(colon + 2)))) out.push_back(std::move(phrase));
  };
  for (const Value& row : results.rows(path)) add(*row.members());
  if (const Value* object = results.at(path); object && object->members())
    for (const auto& [key, value] : *object->members()) {
      Members row{{"name", key}};
      row.insert(row.end(), value.members()->begin(), value.members()->end());
      add(row);
    }
  return out;
}

double number_at(const Reader& results, std::string_view pattern) { return results.number(only_path(pattern)); }

/// "Compute = {compute_time} | Memory = {memory_time}": bars beside each other, the longest as long as there is room.
void add_bars(Screen& screen, const Reader& results, std::string_view text) {
  AnyQuantity longest;
  const auto times = pairs_of(text);
  for (const auto& [label, pattern] : times)
    if (const auto time = results.quantity(only_path(pattern)); time && time->value > longest.value) longest = *time;
  if (longest.value == 0.0) return;
  const SharedUnit unit = shared_unit(longest);
  for (const auto& [label, pattern] : times)
    if (const double time = number_at(results, pattern); time > 0.0)
      screen.blocks.emplace_back(FillBar{std::string(label), time, 0.0, longest.value, {}, unit, {{unit.text(time)}}});
}

/// "parameters.total: attention = {parameters.attention} | ...": parts of a whole, the largest of them.
void add_stack(Screen& screen, const Reader& results, std::string label, std::string_view text, bool exact) {
  constexpr std::size_t most = 6;
  const std::size_t colon = text.find(": ");
  const AnyQuantity total(results.number(text.substr(0, colon)), Dim{});
  StackedBar bar{std::move(label), {}, exact ? SharedUnit{"", 1.0, 0} : shared_unit(total), ""};
  bar.text = exact ? results.text(text.substr(0, colon)) : bar.unit.text(total.value);
  if (!exact) bar.unit.decimals = std::max(bar.unit.decimals, 1);  // small parts count, too
  for (const auto& [name, pattern] : pairs_of(text.substr(colon + 2)))
    if (const double size = number_at(results, pattern); exact ? size > 0.0 : bar.unit.shows(size))
      bar.parts.push_back({std::string(name), size});
  if (!exact) bar.parts = largest_parts(std::move(bar.parts), most);
  if (!bar.parts.empty()) screen.blocks.emplace_back(std::move(bar));
}

/// "memory.total of memory.capacity: stored = {memory.stored} | ...": how much of a whole is used.
void add_fill(Screen& screen, const Reader& results, std::string label, std::string_view text) {
  constexpr std::string_view of = " of ";
  const std::size_t at = text.find(of), colon = text.find(": ");
  const auto whole = results.quantity(text.substr(at + of.size(), colon - at - of.size()));
  if (!whole) return;
  SharedUnit unit = shared_unit(*whole);
  unit.decimals = std::max(unit.decimals, 2);  // what is used may be a small part
  FillBar bar{std::move(label), results.number(text.substr(0, at)), 0.0, whole->value, {}, unit, {}};
  bar.text = {{fmt::format("{} of {}", unit.number(bar.used), unit.text(bar.whole))}};
  for (const auto& [name, pattern] : pairs_of(text.substr(colon + 2)))
    bar.parts.push_back({std::string(name), number_at(results, pattern)});
  screen.blocks.emplace_back(std::move(bar));
}

/// "bar of total_time: computation = {computation_time} | ...": all parts of a time, in their order.
void add_bar(Screen& screen, const Reader& results, std::string label, std::string_view text) {
  const std::size_t colon = text.find(": ");
  const auto whole = results.quantity(text.substr(0, colon));
  if (!whole) return;
  StackedBar bar{std::move(label), {}, shared_unit(*whole), results.text(text.substr(0, colon))};
  for (const auto& [name, pattern] : pairs_of(text.substr(colon + 2)))
    if (const double size = number_at(results, pattern); size > 0.0) bar.parts.push_back({std::string(name), size});
  if (!bar.parts.empty()) screen.blocks.emplace_back(std::move(bar));
}

/// "7 parts of categories: {category} = {time}": the largest rows of a list as parts of a bar, those of one name
/// together. None where a row has no size.
void add_parts(Screen& screen, const Reader& results, std::string label, std::string_view most, std::string_view text) {
  const std::size_t colon = text.find(": ");
  const auto [name, pattern] = pairs_of(text.substr(colon + 2)).front();
  std::vector<BarPart> parts;
  AnyQuantity whole;
  for (const Value& row : results.rows(text.substr(0, colon))) {
    const Reader one(*row.members());
    const auto size = one.quantity(only_path(pattern));
    if (!size) return;
    whole = {whole.value + size->value, size->dim};
    const std::string of = filled(one, name).value_or("");
    const auto known = std::find_if(parts.begin(), parts.end(), [&](const BarPart& part) { return part.name == of; });
    (known == parts.end() ? parts.emplace_back(BarPart{of, 0.0}) : *known).size += size->value;
  }
  if (!(whole.value > 0.0)) return;
  parts = largest_parts(std::move(parts), static_cast<std::size_t>(parse_number(most).value_or(0.0)));
  screen.blocks.emplace_back(StackedBar{std::move(label), std::move(parts), shared_unit(whole), short_quantity(whole)});
}

/// A block a line; a line that starts with a blank goes on with the last one.
std::vector<std::string> blocks_of(std::string_view text) {
  std::vector<std::string> blocks;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(' '))
      blocks.back() += line.substr(1);
    else if (!line.empty())
      blocks.emplace_back(line);
  }
  return blocks;
}

/// What stands behind `word` at the start of a text, if it starts so.
std::optional<std::string_view> behind(std::string_view text, std::string_view word) {
  return text.starts_with(word) ? std::optional(text.substr(word.size())) : std::nullopt;
}

void add_block(Screen& screen, const Reader& results, std::string label, std::string_view text) {
  const bool strong = label.ends_with('!');
  if (strong) label.pop_back();
  if (const std::size_t rows = text.find(" rows of "); rows < text.find(": ") && rows < text.find('{'))
    add_table(screen, described_table(results, std::move(label), text));
  else if (const std::size_t parts = text.find(" parts of "); parts < text.find(": "))
    add_parts(screen, results, std::move(label), text.substr(0, parts), text.substr(parts + 10));
  else if (const auto bar = behind(text, "bar of "))
    add_bar(screen, results, std::move(label), *bar);
  else if (const auto path = behind(text, "each "))
    add_line(screen, std::move(label), each_of(results, *path));
  else if (const auto rest = behind(text, "of "))
    add_line(screen, std::move(label), phrases_of_rows(results, *rest));
  else if (const auto bars = behind(text, "bars: "))
    add_bars(screen, results, *bars);
  else if (const auto stack = behind(text, "stack of "))
    add_stack(screen, results, std::move(label), *stack, false);
  else if (const auto exact = behind(text, "exact stack of "))
    add_stack(screen, results, std::move(label), *exact, true);
  else if (const auto fill = behind(text, "fill "))
    add_fill(screen, results, std::move(label), *fill);
  else
    add_line(screen, std::move(label), phrases(results, patterns_of(text), strong ? Tone::strong : Tone::plain));
}

/// "[sweep] Label: text" in its parts; nothing where its condition does not hold.
std::optional<std::pair<std::string, std::string_view>> shown_block(const Reader& results, std::string_view block) {
  const Guarded of = guarded(results, block);
  if (!of.shown) return std::nullopt;
  const std::string label(trim(of.text.substr(0, of.text.find(": "))));
  return std::pair(label, of.text.substr(of.text.find(": ") + 2));
}

}  // namespace

std::optional<std::string> filled(const Reader& results, std::string_view pattern) {
  std::string text;
  while (!pattern.empty()) {
    const std::size_t open = pattern.find_first_of("{<");
    text += pattern.substr(0, open);
    if (open == std::string_view::npos) break;
    const bool optional = pattern[open] == '<';
    std::size_t from = open;  // conditions may have < and >
    while (optional && trim(pattern.substr(from + 1)).starts_with('[')) from = pattern.find(']', from + 1);
    const std::size_t close = pattern.find(optional ? '>' : '}', from + 1);
    const std::string_view inner = pattern.substr(open + 1, close - open - 1);
    pattern.remove_prefix(close + 1);
    if (optional) {
      const Guarded part = guarded(results, inner);
      if (part.shown) text += filled(results, part.text).value_or("");
      continue;
    }
    const std::string value = value_text(results, inner);
    if (value.empty()) return std::nullopt;
    text += value;
  }
  return text;
}

std::vector<Phrase> phrases(const Reader& results, const std::vector<std::string_view>& patterns, Tone tone) {
  std::vector<Phrase> out;
  for (const std::string_view pattern : patterns) {
    const Guarded of = guarded(results, pattern);
    if (auto text = of.shown ? filled(results, trim(of.text)) : std::nullopt)
      out.push_back({std::move(*text), of.tone.value_or(tone)});
  }
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
  if (std::all_of(table.head.begin(), table.head.end(), [](const std::string& head) { return head.empty(); }))
    table.head.clear();
  if (all.size() > rows.size()) table.more = fmt::format("and {} more: --all", all.size() - rows.size());
  return table;
}

void add_line(Screen& screen, std::string label, std::vector<Phrase> all) {
  if (all.empty()) return;
  auto* last = screen.blocks.empty() ? nullptr : std::get_if<PhraseLine>(&screen.blocks.back());
  if (last && !label.empty() && last->label == label)
    last->phrases.insert(last->phrases.end(), all.begin(), all.end());
  else
    screen.blocks.emplace_back(PhraseLine{std::move(label), std::move(all)});
}

void add_table(Screen& screen, ScreenTable table) {
  if (!table.rows.empty()) screen.blocks.emplace_back(std::move(table));
}

void add_blocks(Screen& screen, const Reader& results, std::string_view text) {
  for (const std::string& block : blocks_of(text))
    if (const auto shown = shown_block(results, block)) add_block(screen, results, shown->first, shown->second);
}

std::optional<Screen> described_screen(std::string_view text, const Response& answer) {
  const Reader results(answer.results, &answer.inputs);
  Screen screen;
  screen.notes = answer.notes;
  for (const std::string& block : blocks_of(text)) {
    const auto shown = shown_block(results, block);
    if (!shown) continue;
    const auto& [label, rest] = *shown;
    if (label == "All") return std::nullopt;
    if (label == "Headline") {
      if (screen.headline.empty()) screen.headline = phrases(results, patterns_of(rest), Tone::strong);
    } else if (label == "Beneath") {
      if (auto line = filled(results, rest)) screen.beneath.push_back(std::move(*line));
    } else if (label == "Notes") {
      screen.notes = rest == "none" ? std::vector<std::string>() : answer.important;
    } else if (label == "Note") {
      screen.notes.emplace_back(rest);
    } else if (label == "Whole") {
      screen.list = whole_list(answer.results, rest);
    } else {
      add_block(screen, results, label, rest);
    }
  }
  if (screen.headline.empty())
    screen.headline = {{answer.headline, answer.outcome == Outcome::ok ? Tone::strong : Tone::bad}};
  return screen;
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
