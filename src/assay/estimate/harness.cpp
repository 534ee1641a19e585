#include "assay/estimate/harness.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/base/toml.h"

namespace assay::estimate {
namespace {

constexpr std::string_view harness_file = "validation/harness.toml";

class HarnessReader {
 public:
  explicit HarnessReader(std::string_view file) : file_(file) {}

  void fault(const Toml& node, std::string_view key, std::string what, std::string hint = {}) {
    faults_.push_back({Error::Kind::input,
                       fmt::format("{}:{}:{}: {}", file_, node.line, node.column, key),
                       std::move(what),
                       std::move(hint),
                       {}});
  }
  void time(const Toml& node, std::string_view key, Seconds& value) {
    if (node.kind != Toml::Kind::text) return fault(node, key, "this time has no unit", "write \"6.2 us\"");
    const auto parsed = parse_quantity(node.text, Seconds::dim, "");
    if (!parsed) return fault(node, key, parsed.error().what, parsed.error().hint);
    if (!(parsed->value >= 0.0)) return fault(node, key, "a time is not below 0");
    value = Seconds(parsed->value);
  }
  void bytes(const Toml& node, std::string_view key, Bytes& value) {
    if (node.kind != Toml::Kind::text) return fault(node, key, "this size has no unit", "write \"40 MB\"");
    const auto parsed = parse_quantity(node.text, Bytes::dim, "");
    if (!parsed) return fault(node, key, parsed.error().what, parsed.error().hint);
    if (!(parsed->value >= 0.0)) return fault(node, key, "a size is not below 0");
    value = Bytes(parsed->value);
  }
  void passes(const Toml& node, std::string_view key, double& value) {
    const bool number = node.kind == Toml::Kind::number || node.kind == Toml::Kind::integer;
    if (!number || !(node.number >= 0.0)) return fault(node, key, "expected a number from 0 up");
    value = node.number;
  }
  Result<void> finish() {
    if (faults_.empty()) return {};
    Error first = faults_.front();
    first.also.assign(faults_.begin() + 1, faults_.end());
    return tl::unexpected<Error>(std::move(first));
  }

 private:
  std::string file_;
  std::vector<Error> faults_;
};

void read_launches(const Toml& table, HarnessReader& reader, Harness& harness) {
  for (const auto& [key, value] : table.members) {
    const auto* known = std::find(std::begin(kernel_kind_names), std::end(kernel_kind_names), key);
    if (known == std::end(kernel_kind_names)) {
      const std::vector<std::string> names(std::begin(kernel_kind_names), std::end(kernel_kind_names));
      reader.fault(value, key, "unknown kind of kernel", suggestion(key, names));
      continue;
    }
    reader.time(value, key, harness.launch[static_cast<std::size_t>(known - std::begin(kernel_kind_names))]);
  }
}

void read_cast(const Toml& numbers, HarnessReader& reader, Quantising& cast) {
  for (const auto& [key, value] : numbers.members) {
    if (key == "fixed")
      reader.time(value, key, cast.fixed);
    else if (key == "element")
      reader.time(value, key, cast.element);
    else if (key == "passes")
      reader.passes(value, key, cast.passes);
    else
      reader.fault(value, key, fmt::format("unknown key {}", in_quotes(key)), "the keys are fixed, element and passes");
  }
}

void read_quantising(const Toml& table, HarnessReader& reader, Harness& harness) {
  for (const auto& [format, architectures] : table.members) {
    const auto dtype = parse_dtype(format, "");
    if (!dtype || architectures.kind != Toml::Kind::table) {
      reader.fault(architectures, format, "expected a number format", "write [harness.NAME.quantise.fp8.Hopper]");
      continue;
    }
    for (const auto& [architecture, numbers] : architectures.members) {
      if (numbers.kind == Toml::Kind::table)
        read_cast(numbers, reader, harness.quantise[{*dtype, architecture}]);
      else
        reader.fault(numbers, architecture, "expected an architecture and its times",
                     "write [harness.NAME.quantise.fp8.Hopper]");
    }
  }
}

void read_harness(const Toml& table, const std::string& name, const Toml* sources, HarnessReader& reader,
                  Harness& harness) {
  bool has_source = false;
  for (const auto& [key, value] : table.members) {
    if (key == "launch" && value.kind == Toml::Kind::table)
      read_launches(value, reader, harness);
    else if (key == "gap")
      reader.time(value, key, harness.gap);
    else if (key == "ramp")
      reader.time(value, key, harness.ramp);
    else if (key == "dirty")
      reader.bytes(value, key, harness.dirty);
    else if (key == "evicts")
      reader.passes(value, key, harness.evicts);
    else if (key == "quantise" && value.kind == Toml::Kind::table)
      read_quantising(value, reader, harness);
    else if (key == "attention_passes")
      reader.passes(value, key, harness.attention_passes);
    else if (key == "split_k" && value.kind == Toml::Kind::boolean)
      harness.split_k = value.boolean;
    else if (key == "source" && sources && sources->find(value.text))
      has_source = true;
    else
      reader.fault(value, name + "." + key, fmt::format("unknown or wrongly typed key {}", in_quotes(key)),
                   "the keys are source, launch, gap, ramp, dirty, evicts, split_k, quantise and attention_passes");
  }
  if (!has_source)
    reader.fault(table, name, "these numbers have no source", "source = \"KEY\" of a [source.KEY] table");
}

}  // namespace

Result<Harnesses> read_harnesses(std::string_view document, std::string_view file) {
  ASSAY_TRY(root, parse_toml(document, file));
  HarnessReader reader(file);
  Harnesses found;
  const Toml* sources = root.find("source");
  for (const auto& [key, value] : root.members) {
    if (key == "source") continue;
    if (key != "harness" || value.kind != Toml::Kind::table) {
      reader.fault(value, key, "the tables are [source.KEY] and [harness.NAME]");
      continue;
    }
    for (const auto& [name, table] : value.members) {
      if (table.kind != Toml::Kind::table)
        reader.fault(table, name, "a harness is a table");
      else
        read_harness(table, name, sources, reader, found[name]);
    }
  }
  ASSAY_CHECK(reader.finish());
  return found;
}

Result<Harnesses> harnesses_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(harnesses, catalogue.kept<Harnesses>("harnesses", [&]() -> Result<Harnesses> {
    for (const auto& [path, text] : catalogue.files(harness_file)) return read_harnesses(text, path);
    return fail(std::string(harness_file), "is not in the catalogue", "", Error::Kind::missing);
  }));
  return *harnesses;
}

Harness harness_of(const hardware::Regime& regime, const hardware::LaunchCalibration* launch) {
  Harness harness;
  harness.gap = regime.gap;
  harness.ramp = regime.ramp;
  harness.launch.fill(regime.launch);
  if (!launch) return harness;
  const auto set = [&](KernelKind kind, Seconds time) { harness.launch[static_cast<std::size_t>(kind)] = time; };
  set(KernelKind::attention_forward, launch->attention_forward);
  set(KernelKind::attention_backward, launch->attention_backward);
  set(KernelKind::attention_both, launch->attention_forward + launch->attention_backward);
  set(KernelKind::decode, launch->decode);
  set(KernelKind::stream, launch->stream);
  set(KernelKind::norm, launch->norm);
  set(KernelKind::softmax, launch->softmax);
  set(KernelKind::optimizer, launch->optimizer);
  return harness;
}

Result<std::optional<MeasuredWay>> measured_way(std::string_view name, const hardware::Calibration& calibration,
                                                const hardware::Catalogue& catalogue, std::string_view where) {
  MeasuredWay way{std::string(name), {}, {}, false};
  if (std::find(std::begin(measured_ways), std::end(measured_ways), name) == std::end(measured_ways)) {
    ASSAY_TRY(harnesses, harnesses_of(catalogue));
    const auto known = harnesses.find(name);
    if (known == harnesses.end()) {
      std::vector<std::string> names(std::begin(measured_ways), std::end(measured_ways));
      for (const auto& [table, harness] : harnesses) names.push_back(table);
      return fail(std::string(where), fmt::format("unknown way of measuring {}", in_quotes(name)),
                  nearest(name, names).empty() ? "flushed, cold, alone or in-a-stream" : suggestion(name, names),
                  Error::Kind::usage);
    }
    way.harness = known->second;
    way.source = harness_file;
    return std::optional(std::move(way));
  }
  way.sustained = name == "in-a-stream";
  const auto& regime = way.sustained ? calibration.sustained : calibration.burst;
  if (!regime) return std::optional<MeasuredWay>();
  way.source = calibration.origin(way.sustained ? "sustained" : "burst");
  way.harness = harness_of(*regime, !way.sustained && calibration.launch ? &*calibration.launch : nullptr);
  if (name == "flushed" && calibration.flushed) {
    way.harness.dirty = calibration.flushed->dirty;
    way.harness.evicts = calibration.flushed->evicts;
  }
  return std::optional(std::move(way));
}

std::string harness_text(const Harnesses& harnesses, std::string_view source) {
  const auto time = [](Seconds t) { return fmt::format("\"{:.4g} us\"", t.in(1_us)); };
  std::string text;
  for (const auto& [name, harness] : harnesses) {
    text += fmt::format("\n[harness.{}]\nsource = \"{}\"\n", name, source);
    text += fmt::format("gap = {}\nramp = {}\n", time(harness.gap), time(harness.ramp));
    if (harness.dirty > Bytes(0)) text += fmt::format("dirty = \"{:.4g} MB\"\n", harness.dirty.in(1_MB));
    if (harness.dirty > Bytes(0)) text += fmt::format("evicts = {:.4g}\n", harness.evicts);
    if (!harness.split_k) text += "split_k = false\n";
    if (harness.attention_passes > 0.0) text += fmt::format("attention_passes = {:.4g}\n", harness.attention_passes);
    for (const auto& [key, cast] : harness.quantise)
      text += fmt::format("[harness.{}.quantise.{}.\"{}\"]\nfixed = {}\nelement = {}\npasses = {:.4g}\n", name,
                          facts(key.first).name, key.second, time(cast.fixed), time(cast.element), cast.passes);
    text += fmt::format("[harness.{}.launch]\n", name);
    for (std::size_t i = 0; i < kernel_kinds; ++i)
      if (harness.launch[i] > Seconds(0))
        text += fmt::format("\"{}\" = {}\n", kernel_kind_names[i], time(harness.launch[i]));
  }
  return text;
}

}  // namespace assay::estimate
