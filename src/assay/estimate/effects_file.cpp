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
    fault(*table_, "source", "numbers name a [source.KEY] table of the file");
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

void EffectsReader::read_number(const Toml* table, std::string_view key, double& value) {
  const Toml* node = table ? table->find(key) : nullptr;
  if (!node || (node->kind != Toml::Kind::number && node->kind != Toml::Kind::integer))
    return fault(node ? *node : root_, key, "a number is wanted");
  if (!(node->number >= 0.0 && node->number <= 100.0)) return fault(*node, key, "a number from 0 to 100 is wanted");
  value = node->number;
}

void EffectsReader::read_time(const Toml* table, std::string_view key, Seconds& value) {
  const Toml* node = table ? table->find(key) : nullptr;
  if (!node || node->kind != Toml::Kind::text)
    return fault(node ? *node : root_, key, "a time with its unit is wanted");
  const auto parsed = parse_quantity(node->text, Seconds::dim, "");
  if (!parsed || !(parsed->value >= 0.0 && parsed->value <= 10.0))
    return fault(*node, key, "a time from 0 to 10 s is wanted");
  value = Seconds(parsed->value);
}

void EffectsReader::read_size(const Toml* table, std::string_view key, Bytes& value) {
  const Toml* node = table ? table->find(key) : nullptr;
  if (!node || node->kind != Toml::Kind::text)
    return fault(node ? *node : root_, key, "a size with its unit is wanted");
  const auto parsed = parse_quantity(node->text, Bytes::dim, "");
  if (!parsed || !(parsed->value >= 0.0 && Bytes(parsed->value) <= 64.0 * 1_GiB))
    return fault(*node, key, "a size from 0 to 64 GiB is wanted");
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

}  // namespace assay::estimate
