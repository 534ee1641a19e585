#include "assay/hardware/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "assay/base/text.h"
#include "assay/base/toml.h"

namespace assay::hardware {
namespace {

/// State shared by all tables of one file.
struct CalibrationDocument {
  std::string file;
  std::set<std::string> sources;
  std::vector<Error> faults;
  std::vector<std::pair<std::string, std::string>> origins;
};

class CalibrationReader {
 public:
  CalibrationReader(CalibrationDocument& document, const Toml& table, std::string path)
      : document_(document), table_(table), path_(std::move(path)) {}

  void text(std::string_view key, std::string& value) {
    if (const Toml* node = required(key)) read_text(*node, key, value);
  }
  void text(std::string_view key, std::optional<std::string>& value) {
    if (const Toml* node = find(key)) read_text(*node, key, value.emplace());
  }
  void texts(std::string_view key, std::optional<std::vector<std::string>>& values) {
    const Toml* node = find(key);
    if (!node) return;
    if (node->kind != Toml::Kind::array || node->items.empty())
      return fault(*node, key, "expected a list of texts", "e.g. [\"Hopper\"]");
    values.emplace();
    for (const Toml& item : node->items) read_text(item, key, values->emplace_back());
  }
  /// A non-negative number without unit.
  void number(std::string_view key, double& value) { read_number(key, value, 0.0, 1e6, "a number from 0 to 1e6"); }
  /// An optional boolean; keeps its default if absent.
  void flag(std::string_view key, bool& value) {
    const Toml* node = find(key);
    if (!node) return;
    if (node->kind != Toml::Kind::boolean)
      return fault(*node, key, fmt::format("expected true or false, got {}", describe(node->kind)), "");
    value = node->boolean;
  }
  /// A share of an ideal rate. Links sometimes exceed their nominal rate, so slightly above 1 is allowed.
  void share(std::string_view key, double& value) { read_number(key, value, 1e-4, 1.25, "a share from 1e-4 to 1.25"); }
  void time(std::string_view key, Seconds& value) { read_quantity(key, value, 1_s, "6.25 us"); }
  void time(std::string_view key, std::optional<Seconds>& value) {
    if (find(key)) time(key, value.emplace());
  }
  void size(std::string_view key, Bytes& value) { read_quantity(key, value, 1_GB, "2 MB"); }
  void rate(std::string_view key, std::optional<BytesPerSecond>& value) {
    if (find(key)) read_quantity(key, value.emplace(), 100_TB_per_s, "140 GB/s");
  }
  void formats(std::string_view key, std::array<double, 12>& shares) {
    const Toml* node = required(key);
    if (!node) return;
    if (node->kind != Toml::Kind::table || node->members.empty())
      return fault(*node, key, "expected a table of shares by format", "e.g. share = { bf16 = 0.87 }");
    CalibrationReader inner(document_, *node, join_path(key));
    for (const DtypeFacts& dtype : all_dtypes())
      if (node->find(dtype.name)) inner.share(dtype.name, shares[static_cast<std::size_t>(dtype.dtype)]);
    inner.finish();
  }
  /// An optional table; at the top of the file it names its source.
  template <class T, class F>
  void section(std::string_view key, std::optional<T>& value, F read) {
    const Toml* node = find(key);
    if (!node) return;
    read_table(*node, key, value.emplace(), read);
  }
  template <class T, class F>
  void inner(std::string_view key, T& value, F read) {
    if (const Toml* node = required(key)) read_table(*node, key, value, read);
  }

  void finish() {
    const std::vector<std::string> known(seen_.begin(), seen_.end());
    for (const auto& [key, value] : table_.members)
      if (!seen_.contains(key))
        fault(value, key, fmt::format("unknown key {}", in_quotes(key)), suggestion(key, known));
  }
  void expect(std::string_view key) { seen_.insert(std::string(key)); }
  void fault(const Toml& node, std::string_view key, std::string what, std::string hint) {
    document_.faults.push_back({Error::Kind::input,
                                fmt::format("{}:{}:{}: {}", document_.file, node.line, node.column, join_path(key)),
                                std::move(what),
                                std::move(hint),
                                {}});
  }

 private:
  const Toml* find(std::string_view key) {
    seen_.insert(std::string(key));
    return table_.find(key);
  }
  const Toml* required(std::string_view key) {
    const Toml* node = find(key);
    if (!node) fault(table_, key, "this key is required", "docs/calibration.md lists the keys");
    return node;
  }
  std::string join_path(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }
  void read_text(const Toml& node, std::string_view key, std::string& value) {
    if (node.kind != Toml::Kind::text)
      return fault(node, key, fmt::format("expected text, got {}", describe(node.kind)), "write it in double quotes");
    value = node.text;
  }
  void read_number(std::string_view key, double& value, double low, double high, std::string_view wanted) {
    const Toml* node = required(key);
    if (!node) return;
    if (node->kind != Toml::Kind::number && node->kind != Toml::Kind::integer)
      return fault(*node, key, fmt::format("expected {}, got {}", wanted, describe(node->kind)), "");
    if (!(node->number >= low && node->number <= high))
      return fault(*node, key, fmt::format("{} is not {}", human_number(node->number), wanted), "");
    value = node->number;
  }
  template <class Q>
  void read_quantity(std::string_view key, Q& value, Q most, std::string_view example) {
    const Toml* node = required(key);
    if (!node) return;
    if (node->kind != Toml::Kind::text)
      return fault(*node, key, fmt::format("this number has no unit; expected {}", base_unit(Q::dim)),
                   fmt::format("write the unit in the text: \"{}\"", example));
    const auto parsed = parse_quantity(node->text, Q::dim, "");
    if (!parsed) return fault(*node, key, parsed.error().what, parsed.error().hint);
    if (!(parsed->value >= 0.0) || parsed->value > most.value())
      return fault(*node, key, fmt::format("{} is not from 0 to {}", in_quotes(node->text), human(most)), "");
    value = Q(parsed->value);
  }
  template <class T, class F>
  void read_table(const Toml& node, std::string_view key, T& value, F read) {
    if (node.kind != Toml::Kind::table)
      return fault(node, key, fmt::format("expected a table, got {}", describe(node.kind)), "");
    CalibrationReader below(document_, node, join_path(key));
    if (path_.empty()) below.read_origin(node, std::string(key));
    read(value, below);
    below.finish();
  }
  void read_origin(const Toml& node, const std::string& section) {
    const Toml* source = find("source");
    if (!source || source->kind != Toml::Kind::text)
      return fault(source ? *source : node, "source", "these numbers have no source",
                   "source = \"KEY\" of a [source.KEY] table");
    if (!document_.sources.contains(source->text)) {
      const std::vector<std::string> known(document_.sources.begin(), document_.sources.end());
      return fault(*source, "source", fmt::format("unknown source {}", in_quotes(source->text)),
                   suggestion(source->text, known));
    }
    document_.origins.emplace_back(section, fmt::format("{}:{} ({})", document_.file, node.line, source->text));
  }

  CalibrationDocument& document_;
  const Toml& table_;
  std::string path_;
  std::set<std::string> seen_;
};

std::vector<CalibrationSource> read_sources(CalibrationDocument& document, const Toml& root,
                                            CalibrationReader& reader) {
  std::vector<CalibrationSource> sources;
  reader.expect("source");
  const Toml* tables = root.find("source");
  if (!tables || tables->kind != Toml::Kind::table) {
    reader.fault(tables ? *tables : root, "source", "a calibration must say how it was made",
                 "[source.KEY] with title, command (or url) and date");
    return sources;
  }
  for (const auto& [key, table] : tables->members) {
    document.sources.insert(key);
    CalibrationSource source;
    source.key = key;
    const std::string path = "source." + key;
    if (table.kind != Toml::Kind::table) {
      reader.fault(table, path, "a source is a table", "");
      continue;
    }
    const std::pair<std::string_view, std::string*> fields[] = {{"title", &source.title}, {"command", &source.command},
                                                                {"url", &source.url},     {"date", &source.date},
                                                                {"rows", &source.rows},   {"error", &source.error}};
    for (const auto& [field, value] : table.members) {
      const auto* known = std::find_if(std::begin(fields), std::end(fields),
                                       [&name = field](const auto& entry) { return entry.first == name; });
      const Toml::Kind wanted = field == "date" ? Toml::Kind::date : Toml::Kind::text;
      if (known == std::end(fields))
        reader.fault(value, path, fmt::format("unknown key {}", in_quotes(field)),
                     "allowed are title, command, url, date, rows and error");
      else if (value.kind != wanted)
        reader.fault(value, path + "." + field,
                     fmt::format("expected {}, got {}", describe(wanted), describe(value.kind)), "");
      else
        *known->second = value.text;
    }
    if (source.title.empty() || source.date.empty() || (source.command.empty() && source.url.empty()))
      reader.fault(table, path, "a source needs title, date and command (or url)", "");
    sources.push_back(std::move(source));
  }
  return sources;
}

class Writer {
 public:
  explicit Writer(const Calibration& calibration) : calibration_(calibration) {}

  void text(std::string_view key, const std::string& value) { line(key, fmt::format("\"{}\"", value)); }
  void text(std::string_view key, const std::optional<std::string>& value) {
    if (value) text(key, *value);
  }
  void texts(std::string_view key, const std::optional<std::vector<std::string>>& values) {
    if (values) line(key, fmt::format("[\"{}\"]", join(*values, "\", \"")));
  }
  void number(std::string_view key, double value) { line(key, significant(value)); }
  void flag(std::string_view key, bool value) {
    if (value) line(key, "true");
  }
  void share(std::string_view key, double value) { line(key, significant(value)); }
  void time(std::string_view key, Seconds value) { line(key, fmt::format("\"{} us\"", significant(value.in(1_us)))); }
  void time(std::string_view key, const std::optional<Seconds>& value) {
    if (value) time(key, *value);
  }
  void size(std::string_view key, Bytes value) { line(key, fmt::format("\"{} MB\"", significant(value.in(1_MB)))); }
  void rate(std::string_view key, const std::optional<BytesPerSecond>& value) {
    if (value) line(key, fmt::format("\"{} GB/s\"", significant(value->in(1_GB_per_s))));
  }
  void formats(std::string_view key, const std::array<double, 12>& shares) {
    std::string list;
    for (const DtypeFacts& dtype : all_dtypes())
      if (const double share = shares[static_cast<std::size_t>(dtype.dtype)]; share > 0.0)
        list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", dtype.name, significant(share));
    line(key, fmt::format("{{ {} }}", list));
  }
  template <class T, class F>
  void section(std::string_view key, const std::optional<T>& value, F write) {
    if (value) inner(key, *value, write);
  }
  template <class T, class F>
  void inner(std::string_view key, const T& value, F write) {
    const std::string before = path_;
    path_ += path_.empty() ? std::string(key) : "." + std::string(key);
    text_ += fmt::format("\n[{}]\n", path_);
    if (before.empty()) text_ += fmt::format("source = \"{}\"\n", source_of(key));
    write(value, *this);
    path_ = before;
  }
  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view key, const std::string& value) { text_ += fmt::format("{} = {}\n", key, value); }
  /// Four digits: a fit is no more precise.
  static std::string significant(double value) {
    std::string text = fmt::format("{:.4g}", value);
    return text.find('e') == std::string::npos ? text : fmt::format("{:.8f}", value);
  }
  std::string source_of(std::string_view section) const {
    for (const auto& [name, origin] : calibration_.origins)
      if (name == section) return origin.substr(origin.find('(') + 1, origin.size() - origin.find('(') - 2);
    return calibration_.sources.empty() ? "fit" : calibration_.sources.front().key;
  }

  const Calibration& calibration_;
  std::string text_, path_;
};

template <class T>
void take_missing(std::optional<T>& own, const std::optional<T>& family, std::string_view section,
                  const Calibration& from, Calibration& into) {
  if (own || !family) return;
  own = family;
  into.origins.emplace_back(section, from.origin(section));
}

}  // namespace

std::string Calibration::origin(std::string_view section) const {
  for (const auto& [name_, origin_] : origins)
    if (name_ == section) return origin_;
  return "not calibrated";
}

Fabric fabric_of(std::string_view technology) {
  if (technology.find("EFA") != std::string_view::npos) return Fabric::efa;
  if (technology.find("TCPXO") != std::string_view::npos) return Fabric::tcpxo;
  return Fabric::infiniband;
}

Result<Calibration> read_calibration(std::string_view document, std::string_view file) {
  ASSAY_TRY(root, parse_toml(document, file));
  Calibration calibration;
  CalibrationDocument shared{std::string(file), {}, {}, {}};
  CalibrationReader reader(shared, root, "");
  calibration.sources = read_sources(shared, root, reader);
  visit_calibration(calibration, reader);
  reader.finish();
  if (calibration.chip.has_value() == calibration.architectures.has_value())
    reader.fault(root, "chip", "a calibration belongs to one chip, or to architectures",
                 "chip = \"h200-sxm\" or architectures = [\"Hopper\"]");
  const std::size_t slash = file.rfind('/');
  const std::string_view base = slash == std::string_view::npos ? file : file.substr(slash + 1);
  if (!calibration.id.empty() && base.ends_with(".toml") && base.substr(0, base.size() - 5) != calibration.id)
    reader.fault(*root.find("id"), "id",
                 fmt::format("the id is {} but the file is {}", in_quotes(calibration.id), in_quotes(base)),
                 "file name = id");
  calibration.origins = std::move(shared.origins);
  if (shared.faults.empty()) return calibration;
  Error first = shared.faults.front();
  first.also.assign(shared.faults.begin() + 1, shared.faults.end());
  return tl::unexpected<Error>(std::move(first));
}

std::string calibration_text(const Calibration& calibration) {
  // The sources come after the names and before the first table of numbers.
  Writer head(calibration), all(calibration);
  head.text("id", calibration.id);
  head.text("name", calibration.name);
  head.text("chip", calibration.chip);
  head.texts("architectures", calibration.architectures);
  const std::string names = head.take();
  visit_calibration(calibration, all);
  const std::string text = all.take();
  std::string sources;
  for (const CalibrationSource& source : calibration.sources) {
    sources += fmt::format("\n[source.{}]\n", source.key);
    const std::pair<std::string_view, const std::string*> fields[] = {
        {"title", &source.title}, {"command", &source.command}, {"url", &source.url}};
    for (const auto& [key, value] : fields)
      if (!value->empty()) sources += fmt::format("{} = \"{}\"\n", key, *value);
    sources += fmt::format("date = {}\n", source.date);
    if (!source.rows.empty()) sources += fmt::format("rows = \"{}\"\n", source.rows);
    if (!source.error.empty()) sources += fmt::format("error = \"{}\"\n", source.error);
  }
  return names + sources + text.substr(names.size());
}

namespace {

/// The calibration of a chip or family: if several files claim it, the last overlay wins.
class Claim {
 public:
  explicit Claim(std::string whose) : whose_(std::move(whose)) {}

  Result<void> take(Calibration read, const std::string& path, int layer) {
    if (values && layer == layer_)
      return fail(path, fmt::format("{} has a calibration in {} already", whose_, path_),
                  "keep one of them: a file of --catalogue replaces the built-in one, whatever its name");
    if (values && layer < layer_) return {};
    values = std::move(read);
    path_ = path;
    layer_ = layer;
    return {};
  }

  std::optional<Calibration> values;

 private:
  std::string whose_, path_;
  int layer_ = 0;
};

Result<std::optional<ChipCalibration>> read_calibration_of(const Chip& chip, const Catalogue& catalogue) {
  Claim of_chip(chip.id), of_family(fmt::format("the family {}", chip.architecture));
  for (const auto& [path, text] : catalogue.files("calibration/")) {
    ASSAY_TRY(read, read_calibration(text, path));
    const auto& families = read.architectures;
    const bool related =
        families && std::find(families->begin(), families->end(), chip.architecture) != families->end();
    if (read.chip == chip.id)
      ASSAY_CHECK(of_chip.take(std::move(read), path, catalogue.layer(path)));
    else if (related)
      ASSAY_CHECK(of_family.take(std::move(read), path, catalogue.layer(path)));
  }
  std::optional<Calibration>&own = of_chip.values, &family = of_family.values;
  if (!own && !family) return std::optional<ChipCalibration>();
  ChipCalibration found;
  found.own = own.has_value();
  if (!own) {
    found.basis = fmt::format("calibration/{}.toml, for the family {}", family->id, chip.architecture);
    found.values = std::move(*family);
    return std::optional(std::move(found));
  }
  found.basis = fmt::format("calibration/{}.toml", own->id);
  found.values = std::move(*own);
  if (family) {
    Calibration& v = found.values;
    take_missing(v.matmul, family->matmul, "matmul", *family, v);
    take_missing(v.launch, family->launch, "launch", *family, v);
    take_missing(v.flushed, family->flushed, "flushed", *family, v);
    take_missing(v.burst, family->burst, "burst", *family, v);
    take_missing(v.sustained, family->sustained, "sustained", *family, v);
    take_missing(v.pointwise, family->pointwise, "pointwise", *family, v);
    take_missing(v.attention, family->attention, "attention", *family, v);
    take_missing(v.collective, family->collective, "collective", *family, v);
    take_missing(v.host, family->host, "host", *family, v);
    take_missing(v.spread, family->spread, "spread", *family, v);
    if (v.spread && family->spread)
      for (double SpreadCalibration::*field :
           {&SpreadCalibration::matmul, &SpreadCalibration::attention, &SpreadCalibration::decode,
            &SpreadCalibration::pointwise, &SpreadCalibration::collective})
        if ((*v.spread).*field == 0.0) (*v.spread).*field = (*family->spread).*field;
    // A format that the chip's own fit did not cover.
    if (v.matmul && family->matmul)
      for (std::size_t i = 0; i < v.matmul->share.size(); ++i)
        if (v.matmul->share[i] == 0.0) v.matmul->share[i] = family->matmul->share[i];
  }
  return std::optional(std::move(found));
}

}  // namespace

Result<std::optional<ChipCalibration>> calibration_of(const Chip& chip, const Catalogue& catalogue) {
  ASSAY_TRY(found, catalogue.kept<std::optional<ChipCalibration>>(
                       fmt::format("calibration of {}, {}", chip.id, chip.architecture),
                       [&] { return read_calibration_of(chip, catalogue); }));
  return *found;
}

}  // namespace assay::hardware
