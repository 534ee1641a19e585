#include "assay/hardware/calibration.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::hardware {
namespace {

CalibrationSource read_calibration_source(const std::string& key, RecordReader& reader) {
  CalibrationSource source;
  source.key = key;
  const auto optional = [&](std::string_view field, std::string& value) {
    if (reader.has(field)) reader.text(field, value);
  };
  reader.text("title", source.title);
  optional("command", source.command);
  optional("url", source.url);
  reader.date("date", source.date);
  optional("rows", source.rows);
  optional("error", source.error);
  if (source.command.empty() && source.url.empty()) reader.fault("command", "a source needs command or url");
  return source;
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
  void number(std::string_view key, Seconds value) { line(key, fmt::format("\"{} us\"", significant(value.in(1_us)))); }
  void number(std::string_view key, Bytes value) { line(key, fmt::format("\"{} MB\"", significant(value.in(1_MB)))); }
  void number(std::string_view key, BytesPerSecond value) {
    line(key, fmt::format("\"{} GB/s\"", significant(value.in(1_GB_per_s))));
  }
  template <class T>
  void number(std::string_view key, const std::optional<T>& value) {
    if (value) number(key, *value);
  }
  void formats(std::string_view key, const std::array<double, 12>& shares) {
    std::string list;
    for (const DtypeFacts& dtype : all_dtypes())
      if (const double share = shares[static_cast<std::size_t>(dtype.dtype)]; share > 0.0)
        list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", dtype.name, significant(share));
    line(key, fmt::format("{{ {} }}", list));
  }
  template <class T, class F>
  void optional_table(std::string_view key, const std::optional<T>& value, F write) {
    if (value) table(key, *value, write);
  }
  template <class T, class F>
  void table(std::string_view key, const T& value, F write) {
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
    for (const auto& [name, origin] : calibration_.origins.all())
      if (name == section) return origin.substr(origin.find('(') + 1, origin.size() - origin.find('(') - 2);
    return calibration_.sources.empty() ? "fit" : calibration_.sources.front().key;
  }

  const Calibration& calibration_;
  std::string text_, path_;
};

/// The sources of a section's numbers.
void add_origins(std::string_view section, const Calibration& from, Calibration& into) {
  for (const auto& [key, source] : from.origins.all())
    if (key.starts_with(section) && (key.size() == section.size() || key[section.size()] == '.'))
      into.origins.add(key, source);
}

template <class T>
void take_missing(std::optional<T>& own, const std::optional<T>& family, std::string_view section,
                  const Calibration& from, Calibration& into) {
  if (own || !family) return;
  own = family;
  add_origins(section, from, into);
}

}  // namespace

std::string Calibration::origin(std::string_view section) const {
  const std::string_view known = origins.of(section);
  return known.empty() ? "not calibrated" : std::string(known);
}

Fabric fabric_of(std::string_view technology) {
  if (technology.find("EFA") != std::string_view::npos) return Fabric::efa;
  if (technology.find("TCPXO") != std::string_view::npos) return Fabric::tcpxo;
  if (technology.find("InfiniBand") != std::string_view::npos) return Fabric::infiniband;
  const bool is_ethernet = technology.find("RoCE") != std::string_view::npos || technology.starts_with("Ethernet");
  return is_ethernet ? Fabric::roce : Fabric::infiniband;
}

void CollectiveCalibration::run(const CollectiveProtocols& library, std::string_view architecture) {
  protocols = library;
  for (std::size_t i = 0; i < across_curves.size(); ++i)
    if (auto& curve = this->*across_curves[i]) curve->runs = library.of(fabric_keys[i], architecture);
}

Result<Calibration> read_calibration(std::string_view document, std::string_view file) {
  Calibration calibration;
  RecordFile shared{.name = std::string(file), .keys_hint = "docs/calibration.md lists the keys"};
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources([&](const std::string& key, RecordReader& source) {
      calibration.sources.push_back(read_calibration_source(key, source));
    });
    visit_calibration(calibration, reader);
    reader.check_id(calibration.id);
    if (calibration.chip.has_value() == calibration.architectures.has_value())
      reader.fault("chip", "a calibration belongs to one chip, or to architectures",
                   "chip = \"h200-sxm\" or architectures = [\"Hopper\"]");
  }));
  calibration.origins = std::move(shared.origins);
  return calibration;
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
    if (read.chip && (read.chip == chip.id || read.chip == chip.base))
      ASSAY_CHECK(of_chip.take(std::move(read), path, catalogue.layer(path)));
    else if (related)
      ASSAY_CHECK(of_family.take(std::move(read), path, catalogue.layer(path)));
  }
  std::optional<Calibration>&own = of_chip.values, &family = of_family.values;
  if (!own && !family) return std::optional<ChipCalibration>();
  ASSAY_TRY(library, collective_protocols_of(catalogue));
  for (std::optional<Calibration>* each : {&own, &family})
    if (*each && (*each)->collective) (*each)->collective->run(library, chip.architecture);
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
    if (v.spread && family->spread && !v.spread->between_nodes) v.spread->between_nodes = family->spread->between_nodes;
    if (v.spread && family->spread)
      for (double SpreadCalibration::*field :
           {&SpreadCalibration::matmul, &SpreadCalibration::attention, &SpreadCalibration::decode,
            &SpreadCalibration::pointwise, &SpreadCalibration::collective})
        if ((*v.spread).*field == 0.0) (*v.spread).*field = (*family->spread).*field;
    // A format that the chip's own fit did not cover.
    if (v.matmul && family->matmul)
      for (std::size_t i = 0; i < v.matmul->share.size(); ++i)
        if (v.matmul->share[i] == 0.0 && family->matmul->share[i] > 0.0) {
          v.matmul->share[i] = family->matmul->share[i];
          add_origins(fmt::format("matmul.share.{}", name(static_cast<Dtype>(i))), *family, v);
        }
  }
  return std::optional(std::move(found));
}

}  // namespace

Result<std::optional<ChipCalibration>> calibration_of(const Chip& chip, const Catalogue& catalogue) {
  ASSAY_TRY(found, catalogue.kept<std::optional<ChipCalibration>>(
                       fmt::format("calibration of {}, {}, {}", chip.id, chip.base, chip.architecture),
                       [&] { return read_calibration_of(chip, catalogue); }));
  return *found;
}

}  // namespace assay::hardware
