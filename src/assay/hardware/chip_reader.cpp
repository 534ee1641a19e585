// Reads a chip file into a Chip: one pass over visit_chip, collecting every fault.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "assay/base/text.h"
#include "assay/base/toml.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/chip_overrides.h"
#include "assay/hardware/chip_rules.h"

namespace assay::hardware {
namespace {

/// State shared by all tables of one file.
struct ChipDocument {
  std::string file;
  std::set<std::string> sources;
  std::vector<Error> faults;
};

class ChipReader {
 public:
  ChipReader(ChipDocument& document, const Toml& table, std::string path, std::string source)
      : document_(document), table_(table), path_(std::move(path)), source_(std::move(source)) {
    if (const Toml* own = find("source"); own && !path_.empty()) {
      if (own->kind == Toml::Kind::text) {
        source_ = own->text;
        known_source(*own, "source", source_);
      } else
        fault(*own, "source", "source must be text: the key of a [source.KEY] table", "");
    }
  }

  void text(std::string_view key, std::string& value) {
    if (const Toml* node = required(key)) read_text(*node, key, value);
  }
  void text(std::string_view key, std::optional<std::string>& value) {
    if (const Toml* node = find(key)) read_text(*node, key, value.emplace());
  }
  void date(std::string_view key, std::string& value) {
    const Toml* node = required(key);
    if (!node) return;
    if (node->kind != Toml::Kind::date)
      fault(*node, key, fmt::format("expected a date, got {}", describe(node->kind)),
            "write 2026-11-01 without quotes");
    value = node->text;
  }

  template <class T>
  void number(std::string_view key, Sourced<T>& value) {
    if (const Toml* node = required(key)) read_sourced(*node, key, value);
  }
  template <class T>
  void number(std::string_view key, Maybe<T>& value) {
    if (const Toml* node = find(key)) read_sourced(*node, key, value.emplace());
  }

  template <class T, class F>
  void table(std::string_view key, T& value, F read) {
    if (const Toml* node = required(key)) read_table(*node, key, value, read);
  }
  template <class T, class F>
  void optional_table(std::string_view key, T& value, F read) {
    if (const Toml* node = find(key)) read_table(*node, key, value, read);
  }
  template <class T, class F>
  void optional_table(std::string_view key, std::optional<T>& value, F read) {
    if (const Toml* node = find(key)) read_table(*node, key, value.emplace(), read);
  }
  template <class T, class F>
  void items(std::string_view key, std::vector<T>& values, F read) {
    const Toml* node = find(key);
    if (!node) return;
    if (node->kind != Toml::Kind::array)
      return fault(*node, key, fmt::format("expected a list of tables, got {}", describe(node->kind)),
                   fmt::format("write [[{}]]", join_path(key)));
    for (const Toml& item : node->items) read_table(item, key, values.emplace_back(), read);
  }
  template <class T, class F>
  void named_tables(std::string_view key, std::vector<T>& values, std::span<const std::string_view> names, F read) {
    const Toml* node = required(key);
    if (!node) return;
    if (node->kind != Toml::Kind::table)
      return fault(*node, key, fmt::format("expected a table, got {}", describe(node->kind)), "");
    ChipReader inner(document_, *node, join_path(key), source_);
    inner.seen_.insert("source");
    for (std::string_view name : names) {
      if (const Toml* member = inner.find(name)) {
        T& value = values.emplace_back();
        value.name = name;
        inner.read_table(*member, name, value, read);
      }
    }
    inner.finish();
  }

  /// Every key that was not read is a fault.
  void finish() {
    std::vector<std::string> known(seen_.begin(), seen_.end());
    for (const auto& [key, value] : table_.members)
      if (!seen_.contains(key))
        fault(value, key, fmt::format("unknown key {}", in_quotes(key)), suggestion(key, known));
  }
  void expect(std::string_view key) { seen_.insert(std::string(key)); }

  void fault(const Toml& node, std::string_view key, std::string what, std::string hint) {
    // A --set value has no line in the file.
    const std::string place = node.line > 0
                                  ? fmt::format("{}:{}:{}: {}", document_.file, node.line, node.column, join_path(key))
                                  : fmt::format("{} {}", override_source, join_path(key));
    document_.faults.push_back({Error::Kind::input, place, std::move(what), std::move(hint), {}});
  }

 private:
  const Toml* find(std::string_view key) {
    seen_.insert(std::string(key));
    return table_.find(key);
  }
  const Toml* required(std::string_view key) {
    const Toml* node = find(key);
    if (!node) fault(table_, key, "this key is required", "docs/catalogue.md lists the keys");
    return node;
  }
  std::string join_path(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }

  bool known_source(const Toml& node, std::string_view key, const std::string& source) {
    if (document_.sources.contains(source)) return true;
    std::vector<std::string> known(document_.sources.begin(), document_.sources.end());
    fault(node, key, fmt::format("unknown source {}", in_quotes(source)), suggestion(source, known));
    return false;
  }

  void read_text(const Toml& node, std::string_view key, std::string& value) {
    if (node.kind != Toml::Kind::text)
      return fault(node, key, fmt::format("expected text, got {}", describe(node.kind)), "write it in double quotes");
    value = node.text;
  }

  template <class T, class F>
  void read_table(const Toml& node, std::string_view key, T& value, F read) {
    if (node.kind != Toml::Kind::table)
      return fault(node, key, fmt::format("expected a table, got {}", describe(node.kind)), "");
    ChipReader inner(document_, node, join_path(key), source_);
    inner.seen_.insert("source");
    read(value, inner);
    inner.finish();
  }

  template <class T>
  void read_sourced(const Toml& node, std::string_view key, Sourced<T>& value) {
    std::string source = source_;
    bool inherited = true;
    const Toml* number = &node;
    if (node.kind == Toml::Kind::table) {
      number = node.find("value");
      if (!number) fault(node, key, "value is missing", "write { value = ..., source = \"...\" }");
      for (const auto& [name, member] : node.members) {
        if (name == "source" && member.kind == Toml::Kind::text) {
          source = member.text;
          inherited = false;
        } else if (name == "note" && member.kind == Toml::Kind::text)
          value.note = member.text;
        else if (name == "also" && member.kind == Toml::Kind::array)
          read_also(member, key, value);
        else if (name != "value")
          fault(member, key, fmt::format("unknown or wrongly typed key {}", in_quotes(name)),
                "allowed are value, source, note and also = [{ value, source }]");
      }
    }
    if (number) read_value(*number, number->line > 0 ? node : *number, key, value.value);
    if (number && number->line == 0) {
      value.source = override_source;
      return;
    }
    if (source.empty())
      return fault(node, key, "this number has no source", "add source = \"KEY\" to its table or to the number");
    // The unknown source of a table was reported there, so not again at each of its numbers.
    if (inherited ? !document_.sources.contains(source) : !known_source(node, key, source)) return;
    if (source == "assumed" && value.note.empty())
      fault(node, key, "an assumed number needs a note", "say what the assumption is based on: note = \"...\"");
    value.source = fmt::format("{}:{} ({})", document_.file, node.line, source);
  }

  template <class T>
  void read_also(const Toml& list, std::string_view key, Sourced<T>& value) {
    for (const Toml& item : list.items) {
      const Toml* number = item.find("value");
      const Toml* source = item.find("source");
      if (item.kind != Toml::Kind::table || !number || !source || source->kind != Toml::Kind::text) {
        fault(item, key, "an entry of also is { value = ..., source = \"...\" }", "");
        continue;
      }
      if (!known_source(item, key, source->text)) continue;
      typename Sourced<T>::Other other;
      read_value(*number, item, key, other.value);
      other.source = source->text;
      value.also.push_back(std::move(other));
    }
  }

  template <Dim D>
  void read_value(const Toml& node, const Toml& at, std::string_view key, Quantity<D>& value) {
    if (node.kind != Toml::Kind::text) {
      const bool number = node.kind == Toml::Kind::integer || node.kind == Toml::Kind::number;
      return fault(at, key,
                   number ? fmt::format("this number has no unit; expected {}", base_unit(D))
                          : fmt::format("expected a number with a unit, got {}", describe(node.kind)),
                   "write the unit in the text: \"3.35 TB/s\"");
    }
    auto parsed = parse_quantity(node.text, D, "");
    if (!parsed) return fault(at, key, parsed.error().what, parsed.error().hint);
    if (parsed->value <= 0.0)
      return fault(at, key, fmt::format("{} is not positive", in_quotes(node.text)),
                   "leave out what the chip does not have");
    value = Quantity<D>(parsed->value);
  }
  void read_value(const Toml& node, const Toml& at, std::string_view key, std::int64_t& value) {
    if (node.kind != Toml::Kind::integer)
      return fault(at, key, fmt::format("expected a whole number, got {}", describe(node.kind)), "");
    if (node.integer < 1 || node.integer > 1'000'000'000)
      return fault(at, key, fmt::format("implausible count {}", node.integer), "counts are from 1 to 1e9");
    value = node.integer;
  }
  void read_value(const Toml& node, const Toml& at, std::string_view key, double& value) {
    if (node.kind != Toml::Kind::number && node.kind != Toml::Kind::integer)
      return fault(at, key, fmt::format("expected a ratio, got {}", describe(node.kind)), "");
    if (!(node.number > 0.0 && node.number <= 1.0))
      return fault(at, key, fmt::format("{} is not a share above 0 and at most 1", human_number(node.number)), "");
    value = node.number;
  }
  void read_value(const Toml& node, const Toml& at, std::string_view key, bool& value) {
    if (node.kind != Toml::Kind::boolean)
      return fault(at, key, fmt::format("expected true or false, got {}", describe(node.kind)), "");
    value = node.boolean;
  }
  template <class T>
  void read_value(const Toml& node, const Toml& at, std::string_view key, std::vector<T>& values) {
    if (node.kind != Toml::Kind::array)
      return fault(at, key, fmt::format("expected a list, got {}", describe(node.kind)), "e.g. [16, 20, 28]");
    if (node.items.empty() || node.items.size() > 64) return fault(at, key, "a list must have 1 to 64 entries", "");
    for (const Toml& item : node.items) read_value(item, at, key, values.emplace_back());
  }

  ChipDocument& document_;
  const Toml& table_;
  std::string path_, source_;
  std::set<std::string> seen_;
};

void read_sources(ChipDocument& document, const Toml& root, Chip& chip, ChipReader& reader) {
  document.sources = {"assumed"};
  reader.expect("source");
  const Toml* sources = root.find("source");
  if (!sources) return;
  if (sources->kind != Toml::Kind::table)
    return reader.fault(*sources, "source", "expected the tables of the sources",
                        "[source.KEY] with title, url and accessed");
  for (const auto& [key, table] : sources->members) {
    if (!document.sources.insert(key).second) {
      reader.fault(table, "source." + key, fmt::format("the source {} is reserved", in_quotes(key)),
                   "call it something else");
      continue;
    }
    SourceEntry entry{key, {}, {}, {}, {}};
    const std::string path = "source." + key;
    bool readable = true;
    if (table.kind != Toml::Kind::table) {
      reader.fault(table, path, "a source is a table", "[source." + key + "] with title, url and accessed");
      continue;
    }
    for (const auto& [field, value] : table.members) {
      std::string* target = field == "title"      ? &entry.title
                            : field == "url"      ? &entry.url
                            : field == "command"  ? &entry.command
                            : field == "accessed" ? &entry.accessed
                                                  : nullptr;
      const Toml::Kind wanted = field == "accessed" ? Toml::Kind::date : Toml::Kind::text;
      if (!target) {
        reader.fault(value, path, fmt::format("unknown key {}", in_quotes(field)),
                     "allowed are title, url, command and accessed");
        continue;
      }
      *target = value.text;
      if (value.kind == wanted) continue;
      reader.fault(value, path + "." + field,
                   fmt::format("expected {}, got {}", describe(wanted), describe(value.kind)), "");
      readable = false;
    }
    if (!readable) continue;
    if (entry.title.empty() || (entry.url.empty() && entry.command.empty()) || entry.accessed.empty())
      reader.fault(table, path, "a source needs title, url (or command) and accessed", "");
    chip.sources.push_back(std::move(entry));
  }
}

}  // namespace

Result<Chip> read_chip(std::string_view document, std::string_view file, const std::vector<Override>& overrides) {
  auto root = parse_toml(document, file);
  if (!root) return tl::unexpected<Error>(root.error());
  for (const Override& change : overrides) ASSAY_CHECK(apply_override(*root, change));
  Chip chip;
  ChipDocument shared{std::string(file), {}, {}};
  ChipReader reader(shared, *root, "", "");
  read_sources(shared, *root, chip, reader);
  visit_chip(chip, reader);
  reader.finish();
  const ReportFault report = [&](const Toml& node, std::string_view key, std::string what, std::string hint) {
    reader.fault(node, key, std::move(what), std::move(hint));
  };
  if (shared.faults.empty()) check_chip(chip, *root, report);
  if (shared.faults.empty()) share_adapters(chip, *root, report);
  if (shared.faults.empty() && !overrides.empty())
    if (const auto before = read_chip(document, file)) scale_fabric(chip, *before);
  if (shared.faults.empty()) check_fabric(chip, *root, report);
  if (shared.faults.empty()) {
    const std::size_t slash = file.rfind('/');
    const std::string_view base = slash == std::string_view::npos ? file : file.substr(slash + 1);
    if (base.ends_with(".toml") && base.substr(0, base.size() - 5) != chip.id)
      reader.fault(*root->find("id"), "id",
                   fmt::format("the id is {} but the file is {}", in_quotes(chip.id), in_quotes(base)),
                   "file name = id");
    if (!shared.faults.empty()) return tl::unexpected<Error>(shared.faults.front());
    return chip;
  }
  Error first = shared.faults.front();
  first.also.assign(shared.faults.begin() + 1, shared.faults.end());
  return tl::unexpected<Error>(std::move(first));
}

}  // namespace assay::hardware
