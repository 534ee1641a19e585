#include "assay/estimate/effects_file.h"

#include <fmt/format.h>

#include "assay/base/text.h"

namespace assay::estimate {
namespace {

std::string in_text(Seconds value) { return fmt::format("\"{:.4g} us\"", value.in(1_us)); }

template <class F>
std::string list_text(std::string_view key, EffectsWriter::Names names, F value) {
  std::string text = fmt::format("{} = {{ ", key);
  for (std::size_t i = 0; i < names.size(); ++i) text += fmt::format("{}{} = {}", i ? ", " : "", names[i], value(i));
  return text + " }\n";
}

/// Families that were measured, with their values.
template <class F>
std::string family_text(std::string_view key, const Families& families, const std::vector<char>& measured, F value) {
  std::string text;
  for (std::size_t i = 0; i < families.size(); ++i)
    if (measured[i]) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", families[i].id, value(i));
  return fmt::format("{} = {{ {} }}\n", key, text);
}

}  // namespace

void EffectsReader::table(std::string_view name) {
  name_ = name;
  table_ = root_.find(name);
  if (!table_ || table_->kind != Toml::Kind::table) {
    table_ = nullptr;
    return fault(root_, "", "this table is required");
  }
  const Toml *source = table_->find("source"), *sources = root_.find("source");
  if (!source || source->kind != Toml::Kind::text || !sources || !sources->find(source->text))
    fault(*table_, "source", "name a [source.KEY] table of the file as the source of these numbers");
}

void EffectsReader::numbers(std::string_view key, Names names, std::span<double> values) {
  const Toml* inner = table_ ? table_->find(key) : nullptr;
  for (std::size_t i = 0; i < values.size(); ++i) read_number(inner, names[i], values[i]);
}

void EffectsReader::times(std::string_view key, Names names, std::span<Seconds> values) {
  const Toml* inner = table_ ? table_->find(key) : nullptr;
  for (std::size_t i = 0; i < values.size(); ++i) read_time(inner, names[i], values[i]);
}

void EffectsReader::sizes(std::string_view key, Names names, std::span<Bytes> values) {
  const Toml* inner = table_ ? table_->find(key) : nullptr;
  for (std::size_t i = 0; i < values.size(); ++i) read_size(inner, names[i], values[i]);
}

template <class F>
void EffectsReader::read_families(std::string_view key, const Families& families, std::vector<char>& measured, F read) {
  const Toml* inner = table_ ? table_->find(key) : nullptr;
  if (!inner || inner->kind != Toml::Kind::table)
    return fault(inner ? *inner : root_, key, "expected a table of numbers by family");
  for (const auto& [id, node] : inner->members)
    if (!family_index(families, id))
      fault(node, key, fmt::format("there is no family {}: families/{}.toml would describe it", in_quotes(id), id));
  for (std::size_t i = 0; i < families.size(); ++i) {
    const bool stated = inner->find(families[i].id) != nullptr;
    if (!measured_known_) measured[i] = stated;
    if (stated != static_cast<bool>(measured[i]))
      fault(*inner, key, fmt::format("the tables do not agree on whether {} was measured", families[i].id));
    if (stated) read(inner, i);
  }
  measured_known_ = true;
}

void EffectsReader::family_numbers(std::string_view key, const Families& families, std::vector<char>& measured,
                                   std::vector<double>& values) {
  read_families(key, families, measured,
                [&](const Toml* inner, std::size_t i) { read_number(inner, families[i].id, values[i]); });
}

void EffectsReader::family_times(std::string_view key, const Families& families, std::vector<char>& measured,
                                 std::vector<Seconds>& values) {
  read_families(key, families, measured,
                [&](const Toml* inner, std::size_t i) { read_time(inner, families[i].id, values[i]); });
}

void EffectsReader::read_number(const Toml* table, std::string_view key, double& value) {
  const Toml* node = table ? table->find(key) : nullptr;
  if (!node || (node->kind != Toml::Kind::number && node->kind != Toml::Kind::integer))
    return fault(node ? *node : root_, key, "expected a number");
  if (!(node->number >= 0.0 && node->number <= 100.0)) return fault(*node, key, "expected a number from 0 to 100");
  value = node->number;
}

void EffectsReader::read_time(const Toml* table, std::string_view key, Seconds& value) {
  const Toml* node = table ? table->find(key) : nullptr;
  if (!node || node->kind != Toml::Kind::text) return fault(node ? *node : root_, key, "expected a time with its unit");
  const auto parsed = parse_quantity(node->text, Seconds::dim, "");
  if (!parsed || !(parsed->value >= 0.0 && parsed->value <= 10.0))
    return fault(*node, key, "expected a time from 0 to 10 s");
  value = Seconds(parsed->value);
}

void EffectsReader::read_size(const Toml* table, std::string_view key, Bytes& value) {
  const Toml* node = table ? table->find(key) : nullptr;
  if (!node || node->kind != Toml::Kind::text) return fault(node ? *node : root_, key, "expected a size with its unit");
  const auto parsed = parse_quantity(node->text, Bytes::dim, "");
  if (!parsed || !(parsed->value >= 0.0 && Bytes(parsed->value) <= 64.0 * 1_GiB))
    return fault(*node, key, "expected a size from 0 to 64 GiB");
  value = Bytes(parsed->value);
}

void EffectsReader::fault(const Toml& node, std::string_view key, std::string what) {
  if (fault_) return;
  fault_ = Error{Error::Kind::input,
                 fmt::format("{}:{}:{}: {}.{}", file_, node.line, node.column, name_, key),
                 std::move(what),
                 "docs/validation.md lists the keys",
                 {}};
}

void EffectsWriter::table(std::string_view name) { text_ += fmt::format("\n[{}]\nsource = \"{}\"\n", name, source_); }
void EffectsWriter::number(std::string_view key, double value) { text_ += fmt::format("{} = {:.4g}\n", key, value); }
void EffectsWriter::time(std::string_view key, Seconds value) {
  text_ += fmt::format("{} = {}\n", key, in_text(value));
}
void EffectsWriter::numbers(std::string_view key, Names names, std::span<const double> values) {
  text_ += list_text(key, names, [&](std::size_t i) { return fmt::format("{:.4g}", values[i]); });
}
void EffectsWriter::sizes(std::string_view key, Names names, std::span<const Bytes> values) {
  text_ += list_text(key, names, [&](std::size_t i) { return fmt::format("\"{:.4g} GiB\"", values[i].in(1_GiB)); });
}
void EffectsWriter::times(std::string_view key, Names names, std::span<const Seconds> values) {
  text_ += list_text(key, names, [&](std::size_t i) { return in_text(values[i]); });
}
void EffectsWriter::family_numbers(std::string_view key, const Families& families, const std::vector<char>& measured,
                                   const std::vector<double>& values) {
  text_ += family_text(key, families, measured, [&](std::size_t i) { return fmt::format("{:.4g}", values[i]); });
}
void EffectsWriter::family_times(std::string_view key, const Families& families, const std::vector<char>& measured,
                                 const std::vector<Seconds>& values) {
  text_ += family_text(key, families, measured, [&](std::size_t i) { return in_text(values[i]); });
}

}  // namespace assay::estimate
