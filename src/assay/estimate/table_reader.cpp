#include "assay/estimate/table_reader.h"

#include <fmt/format.h>

#include "assay/base/text.h"

namespace assay::estimate {

Result<void> TableDocument::result() const {
  if (faults.empty()) return {};
  Error first = faults.front();
  first.also.assign(faults.begin() + 1, faults.end());
  return tl::unexpected<Error>(std::move(first));
}

void TableReader::sources() {
  const Toml* tables = required("source");
  if (!tables) return;
  if (tables->kind != Toml::Kind::table) return wrong_kind(*tables, "source", Toml::Kind::table);
  for (const auto& [key, node] : tables->members) {
    document_.sources.insert(key);
    const std::string path = "source." + key;
    if (node.kind != Toml::Kind::table) {
      wrong_kind(node, path, Toml::Kind::table);
      continue;
    }
    TableReader inner(document_, node, path);
    std::string title;
    inner.text("title", title);
    for (const std::string_view known : {"url", "command", "note", "date", "accessed"}) inner.find(known);
    inner.finish();
  }
}

void TableReader::text(std::string_view key, std::string& value) {
  const Toml* node = required(key);
  if (!node) return;
  if (node->kind != Toml::Kind::text) return wrong_kind(*node, key, Toml::Kind::text);
  value = node->text;
}

void TableReader::texts(std::string_view key, std::vector<std::string>& values) {
  const Toml* node = required(key);
  if (!node) return;
  if (node->kind != Toml::Kind::array || node->items.empty())
    return fault_at(*node, key, "expected a list of texts", "e.g. [\"Hopper\"]");
  for (const Toml& item : node->items) {
    if (item.kind != Toml::Kind::text) return wrong_kind(item, key, Toml::Kind::text);
    values.push_back(item.text);
  }
}

void TableReader::flag(std::string_view key, bool& value) {
  const Toml* node = find(key);
  if (!node) return;
  if (node->kind != Toml::Kind::boolean) return wrong_kind(*node, key, Toml::Kind::boolean);
  value = node->boolean;
}

void TableReader::value(std::string_view key, double& value) {
  const Toml* node = required(key);
  if (!node) return;
  if (node->kind != Toml::Kind::number && node->kind != Toml::Kind::integer)
    return wrong_kind(*node, key, Toml::Kind::number);
  if (!(node->number >= 0.0 && node->number <= 1e6))
    return fault_at(*node, key, fmt::format("{} is not from 0 to 1e6", human_number(node->number)), "");
  value = node->number;
}

template <class Q>
void TableReader::quantity(std::string_view key, Q& value, std::string_view example) {
  const Toml* node = required(key);
  if (!node) return;
  if (node->kind != Toml::Kind::text)
    return fault_at(*node, key, fmt::format("expected a number with a unit ({})", base_unit(Q::dim)),
                    fmt::format("write the unit in the text: \"{}\"", example));
  const auto parsed = parse_quantity(node->text, Q::dim, "");
  if (!parsed) return fault_at(*node, key, parsed.error().what, parsed.error().hint);
  if (!(parsed->value >= 0.0)) return fault_at(*node, key, fmt::format("{} is below 0", in_quotes(node->text)), "");
  value = Q(parsed->value);
}

void TableReader::value(std::string_view key, Seconds& value) { quantity(key, value, "6.25 us"); }
void TableReader::value(std::string_view key, Bytes& value) { quantity(key, value, "2 MB"); }
void TableReader::value(std::string_view key, BytesPerSecond& value) { quantity(key, value, "140 GB/s"); }
void TableReader::value(std::string_view key, Watts& value) { quantity(key, value, "700 W"); }

void TableReader::finish() {
  const std::vector<std::string> known(seen_.begin(), seen_.end());
  for (const auto& [key, node] : table_.members)
    if (!seen_.contains(key))
      fault_at(node, key, fmt::format("unknown key {}", in_quotes(key)), suggestion(key, known));
}

void TableReader::fault(std::string_view key, std::string what, std::string hint) {
  const Toml* node = table_.find(key);
  fault_at(node ? *node : table_, key, std::move(what), std::move(hint));
}

const Toml* TableReader::find(std::string_view key) {
  seen_.insert(std::string(key));
  return table_.find(key);
}

const Toml* TableReader::required(std::string_view key) {
  const Toml* node = find(key);
  if (!node) fault_at(table_, key, "this key is required", "");
  return node;
}

std::string TableReader::join_path(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void TableReader::source() {
  std::string key;
  text("source", key);
  if (!key.empty() && !document_.sources.contains(key)) {
    const std::vector<std::string> known(document_.sources.begin(), document_.sources.end());
    fault("source", fmt::format("unknown source {}", in_quotes(key)), suggestion(key, known));
  }
}

void TableReader::wrong_kind(const Toml& node, std::string_view key, Toml::Kind wanted) {
  fault_at(node, key, fmt::format("expected {}, got {}", describe(wanted), describe(node.kind)), "");
}

void TableReader::fault_at(const Toml& node, std::string_view key, std::string what, std::string hint) {
  document_.faults.push_back({Error::Kind::input,
                              fmt::format("{}:{}:{}: {}", document_.file, node.line, node.column, join_path(key)),
                              std::move(what),
                              std::move(hint),
                              {}});
}

}  // namespace assay::estimate
