#include "assay/base/record_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay {
namespace {

/// A quantity as a file writes it, for hints.
std::string_view example(Dim dim) {
  if (dim == Seconds::dim) return "6.25 us";
  if (dim == Bytes::dim) return "80 GiB";
  if (dim == FlopsPerSecond::dim) return "989 TFLOP/s";
  if (dim == Watts::dim) return "700 W";
  if (dim == Hertz::dim) return "1.98 GHz";
  return "3.35 TB/s";
}

/// The largest plausible size of what a fit or a table of measurements states.
double most(Dim dim) {
  if (dim == Seconds::dim) return (10_s).value();
  if (dim == Bytes::dim) return (64_GiB).value();
  if (dim == BytesPerSecond::dim) return (100_TB_per_s).value();
  return std::numeric_limits<double>::max();
}

/// "FILE:LINE (KEY)": files state hundreds of numbers.
std::string origin_at(const RecordFile& file, const Toml& node, std::string_view source) {
  const std::string line = std::to_string(node.line);
  std::string out;
  out.reserve(file.name.size() + line.size() + source.size() + 4);
  return out.append(file.name).append(":").append(line).append(" (").append(source).append(")");
}

bool is_number(const Toml& node) { return node.kind == Toml::Kind::number || node.kind == Toml::Kind::integer; }

}  // namespace

std::string RecordReader::origin() const { return origin_at(file_, table_, source_); }

std::string RecordReader::origin_of(std::string_view key) const {
  const Toml* node = source_.empty() ? nullptr : table_.find(key);
  return node ? origin_at(file_, *node, source_) : "";
}

const Toml* RecordReader::find(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  return table_.find(key);
}

const Toml* RecordReader::required(std::string_view key) {
  const Toml* node = find(key);
  if (!node) fault_at(table_, key, "this key is required", file_.keys_hint);
  return node;
}

void RecordReader::text(std::string_view key, std::string& value) {
  const Toml* node = required(key);
  if (node && is_kind(*node, key, Toml::Kind::text, "write it in double quotes")) value = node->text;
}

void RecordReader::text(std::string_view key, std::optional<std::string>& value) {
  if (find(key)) text(key, value.emplace());
}

void RecordReader::texts(std::string_view key, std::vector<std::string>& values) {
  const Toml* node = required(key);
  if (!node) return;
  if (node->kind != Toml::Kind::array || node->items.empty())
    return fault_at(*node, key, "expected a list of texts", "e.g. [\"Hopper\"]");
  for (const Toml& item : node->items)
    if (is_kind(item, key, Toml::Kind::text, "write it in double quotes")) values.push_back(item.text);
}

void RecordReader::pairs(std::string_view key, std::vector<std::pair<std::string, std::string>>& values) {
  each_key(key, [&](const std::string& name, RecordReader& inner) {
    auto& [first, second] = values.emplace_back(name, "");
    inner.text(first, second);
  });
}

void RecordReader::unknown_word(const Toml& node, std::string_view key, const std::vector<std::string>& known) {
  if (is_kind(node, key, Toml::Kind::text, "write it in double quotes"))
    fault_at(node, key, fmt::format("{} is not known", in_quotes(node.text)), suggestion(node.text, known));
}

void RecordReader::texts(std::string_view key, std::optional<std::vector<std::string>>& values) {
  if (find(key)) texts(key, values.emplace());
}

void RecordReader::date(std::string_view key, std::string& value) {
  const Toml* node = required(key);
  if (node && is_kind(*node, key, Toml::Kind::date, "write 2026-11-01 without quotes")) value = node->text;
}

void RecordReader::flag(std::string_view key, bool& value) {
  const Toml* node = find(key);
  if (node && is_kind(*node, key, Toml::Kind::boolean)) value = node->boolean;
}

void RecordReader::count(std::string_view key, std::int64_t& value) {
  if (const Toml* node = required(key)) read_value(*node, *node, key, value);
}

void RecordReader::count(std::string_view key, std::optional<std::int64_t>& value) {
  if (find(key)) count(key, value.emplace());
}

void RecordReader::number(std::string_view key, double& value) {
  if (const Toml* node = required(key)) plain_number(*node, key, value, 0.0, file_.largest, "a number");
}

void RecordReader::share(std::string_view key, double& value) {
  if (const Toml* node = required(key)) plain_number(*node, key, value, 1e-4, 1.25, "a share");
}

void RecordReader::formats(std::string_view key, std::array<double, 12>& shares) {
  inner_table(required(key), key, false, [&](RecordReader& inner) {
    if (inner.table_.members.empty())
      fault(key, "expected a table of shares by format", "e.g. share = { bf16 = 0.87 }");
    for (const DtypeFacts& dtype : all_dtypes())
      if (inner.has(dtype.name)) inner.share(dtype.name, shares[static_cast<std::size_t>(dtype.dtype)]);
  });
}

void RecordReader::span(std::string_view key, double& low, double& high) {
  const Toml* node = required(key);
  if (!node) return;
  const std::vector<Toml>& ends = node->items;
  if (ends.size() != 2 || !is_number(ends[0]) || !is_number(ends[1]) || !(ends[0].number <= ends[1].number))
    return fault_at(*node, key, "expected the least and the largest", "e.g. [8, 512]");
  low = ends[0].number;
  high = ends[1].number;
}

void RecordReader::sources() {
  sources([](std::string_view, RecordReader& source) {
    std::string title;
    source.text("title", title);
    for (const std::string_view known : {"url", "command", "note", "date", "accessed", "rows", "error"})
      source.find(known);
  });
}

void RecordReader::check_id(std::string_view id) {
  std::string_view base = file_.name;
  if (const std::size_t slash = base.rfind('/'); slash != std::string_view::npos) base.remove_prefix(slash + 1);
  if (!id.empty() && base.ends_with(".toml") && base.substr(0, base.size() - 5) != id)
    fault("id", fmt::format("the id is {} but the file is {}", in_quotes(id), in_quotes(base)), "file name = id");
}

void RecordReader::finish() {
  for (const auto& [key, node] : table_.members)
    if (std::find(known_.begin(), known_.end(), key) == known_.end())
      fault_at(node, key, fmt::format("unknown key {}", in_quotes(key)), suggestion(key, known_));
}

void RecordReader::fault(std::string_view key, std::string what, std::string hint) {
  const Toml* node = table_.find(key);
  fault_at(node ? *node : table_, key, std::move(what), std::move(hint));
}

void RecordReader::fault_at(const Toml& node, std::string_view key, std::string what, std::string hint) {
  const std::string& file = node.file.empty() ? file_.name : node.file;
  std::string place = node.line > 0 ? fmt::format("{}:{}:{}: {}", file, node.line, node.column, join_path(key))
                                    : fmt::format("{} {}", override_source, join_path(key));
  file_.faults.push_back({Error::Kind::input, std::move(place), std::move(what), std::move(hint), {}});
}

std::string RecordReader::join_path(std::string_view key) const {
  std::string out = path_;
  if (!path_.empty() && !key.empty()) out += '.';
  return out.append(key);
}

bool RecordReader::is_kind(const Toml& node, std::string_view key, Toml::Kind wanted, std::string hint) {
  if (node.kind == wanted) return true;
  fault_at(node, key, fmt::format("expected {}, got {}", describe(wanted), describe(node.kind)), std::move(hint));
  return false;
}

bool RecordReader::is_known_source(const Toml& node, std::string_view key, const std::string& source) {
  if (file_.sources.contains(source)) return true;
  const std::vector<std::string> known(file_.sources.begin(), file_.sources.end());
  fault_at(node, key, fmt::format("unknown source {}", in_quotes(source)), suggestion(source, known));
  return false;
}

bool RecordReader::add_source(const std::string& key) {
  known_.push_back(key);
  if (file_.sources.insert(key).second) return true;
  fault(key, fmt::format("the source {} is reserved", in_quotes(key)), "call it something else");
  return false;
}

void RecordReader::read_source(bool needed) {
  constexpr std::string_view remedy = "source = \"KEY\" of a [source.KEY] table";
  const Toml* node = find("source");
  if (!node) {
    if (needed) fault_at(table_, "source", "these numbers have no source", std::string(remedy));
    return;
  }
  if (!is_kind(*node, "source", Toml::Kind::text, std::string(remedy))) return;
  source_ = node->text;
  source_file_ = node->file;
  is_known_source(*node, "source", source_);
}

const Toml* RecordReader::list_of_tables(std::string_view key) {
  const Toml* node = find(key);
  if (!node || node->kind == Toml::Kind::array) return node;
  fault_at(*node, key, fmt::format("expected a list of tables, got {}", describe(node->kind)),
           fmt::format("write [[{}]]", join_path(key)));
  return nullptr;
}

void RecordReader::check_names(std::string_view what, Names names) {
  const std::vector<std::string> known(names.begin(), names.end());
  for (const auto& [key, node] : table_.members) {
    known_.push_back(key);
    if (std::find(known.begin(), known.end(), key) == known.end())
      fault_at(node, key, fmt::format("there is no {} {}", what, in_quotes(key)), suggestion(key, known));
  }
}

void RecordReader::add_origin(const Toml& node, std::string_view key) {
  if (!source_.empty()) file_.origins.add(join_path(key), origin_at(file_, node, source_));
}

void RecordReader::plain_number(const Toml& node, std::string_view key, double& value, double low, double high,
                                std::string_view wanted) {
  const auto bounds = [&] { return fmt::format("{} from {} to {}", wanted, human_number(low), human_number(high)); };
  if (!is_number(node)) return fault_at(node, key, fmt::format("expected {}, got {}", bounds(), describe(node.kind)));
  if (!(node.number >= low && node.number <= high))
    return fault_at(node, key, fmt::format("{} is not {}", human_number(node.number), bounds()));
  value = node.number;
  add_origin(node, key);
}

std::optional<double> RecordReader::parsed_quantity(const Toml& node, const Toml& at, std::string_view key, Dim dim) {
  if (node.kind != Toml::Kind::text) {
    fault_at(at, key,
             is_number(node) ? fmt::format("this number has no unit; expected {}", base_unit(dim))
                             : fmt::format("expected a number with a unit, got {}", describe(node.kind)),
             fmt::format("write the unit in the text: \"{}\"", example(dim)));
    return std::nullopt;
  }
  const auto parsed = parse_quantity(node.text, dim, "");
  if (parsed) return parsed->value;
  fault_at(at, key, parsed.error().what, parsed.error().hint);
  return std::nullopt;
}

void RecordReader::plain_quantity(const Toml& node, std::string_view key, Dim dim, double& value) {
  const std::optional<double> parsed = parsed_quantity(node, node, key, dim);
  if (!parsed) return;
  if (!(*parsed >= 0.0 && *parsed <= most(dim)))
    return fault_at(node, key,
                    fmt::format("{} is not from 0 to {}", in_quotes(node.text), human(AnyQuantity{most(dim), dim})));
  value = *parsed;
  add_origin(node, key);
}

void RecordReader::positive_quantity(const Toml& node, const Toml& at, std::string_view key, Dim dim, double& value) {
  const std::optional<double> parsed = parsed_quantity(node, at, key, dim);
  if (!parsed) return;
  if (*parsed <= 0.0)
    return fault_at(at, key, fmt::format("{} is not positive", in_quotes(node.text)),
                    "leave out what the chip does not have");
  value = *parsed;
}

RecordReader::SourcedParts RecordReader::parts_of(const Toml& node, std::string_view key, std::string& note) {
  SourcedParts parts{&node, nullptr, source_, true};
  if (node.kind != Toml::Kind::table) return parts;
  parts.value = node.find("value");
  if (!parts.value) fault_at(node, key, "value is missing", "write { value = ..., source = \"...\" }");
  for (const auto& [name, member] : node.members) {
    if (name == "source" && member.kind == Toml::Kind::text) {
      parts.source = member.text;
      parts.inherited = false;
    } else if (name == "note" && member.kind == Toml::Kind::text) {
      note = member.text;
    } else if (name == "also" && member.kind == Toml::Kind::array) {
      parts.also = &member;
    } else if (name != "value") {
      fault_at(member, key, fmt::format("unknown or wrongly typed key {}", in_quotes(name)),
               "allowed are value, source, note and also = [{ value, source }]");
    }
  }
  return parts;
}

const Toml* RecordReader::other_value(const Toml& item, std::string_view key) {
  const Toml *number = item.find("value"), *source = item.find("source");
  if (item.kind != Toml::Kind::table || !number || !source || source->kind != Toml::Kind::text) {
    fault_at(item, key, "an entry of also is { value = ..., source = \"...\" }");
    return nullptr;
  }
  return is_known_source(item, key, source->text) ? number : nullptr;
}

std::string RecordReader::source_of(const SourcedParts& parts, const Toml& node, std::string_view key,
                                    const std::string& note) {
  if (parts.value && parts.value->line == 0)
    return parts.value->file.empty() ? std::string(override_source) : parts.value->file;
  // The source of a base's table is not that of a number which replaces the base's.
  const bool other = parts.inherited && node.file != source_file_;
  const std::string& file = node.file.empty() ? file_.name : node.file;
  if (file_.own && (parts.source.empty() || other)) return fmt::format("{}:{} ({})", file, node.line, own_source);
  if (parts.source.empty() || other) {
    fault_at(node, key, "this number has no source", "add source = \"KEY\" to its table or to the number");
    return {};
  }
  // The unknown source of a table was reported there, so not again at each of its numbers.
  const bool known = parts.inherited ? file_.sources.contains(parts.source) : is_known_source(node, key, parts.source);
  if (!known) return {};
  if (parts.source == "assumed" && note.empty())
    fault_at(node, key, "an assumed number needs a note", "say what the assumption is based on: note = \"...\"");
  return fmt::format("{}:{} ({})", file, node.line, parts.source);
}

void RecordReader::read_value(const Toml& node, const Toml& at, std::string_view key, std::int64_t& value) {
  if (node.kind != Toml::Kind::integer)
    return fault_at(at, key, fmt::format("expected a whole number, got {}", describe(node.kind)));
  if (node.integer < 1 || node.integer > 1'000'000'000)
    return fault_at(at, key, fmt::format("implausible count {}", node.integer), "counts are from 1 to 1e9");
  value = node.integer;
}

void RecordReader::read_value(const Toml& node, const Toml& at, std::string_view key, double& value) {
  if (!is_number(node)) return fault_at(at, key, fmt::format("expected a ratio, got {}", describe(node.kind)));
  if (!(node.number > 0.0 && node.number <= 1.0))
    return fault_at(at, key, fmt::format("{} is not a share above 0 and at most 1", human_number(node.number)));
  value = node.number;
}

void RecordReader::read_value(const Toml& node, const Toml& at, std::string_view key, bool& value) {
  if (node.kind != Toml::Kind::boolean)
    return fault_at(at, key, fmt::format("expected true or false, got {}", describe(node.kind)));
  value = node.boolean;
}

void RecordReader::wrong_list(const Toml& node, const Toml& at, std::string_view key) {
  if (node.kind != Toml::Kind::array)
    return fault_at(at, key, fmt::format("expected a list, got {}", describe(node.kind)), "e.g. [16, 20, 28]");
  fault_at(at, key, "a list must have 1 to 64 entries");
}

}  // namespace assay
