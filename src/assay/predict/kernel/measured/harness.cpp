#include "assay/predict/kernel/measured/harness.h"

#include <fmt/format.h>

#include "assay/base/record_reader.h"

namespace assay::kernel {
namespace {

constexpr std::string_view harness_file = "validation/harness.toml";

void read_cast(Quantising& cast, RecordReader& reader) {
  reader.number("fixed", cast.fixed);
  reader.number("element", cast.element);
  reader.number("passes", cast.passes);
}

void read_quantising(Harness& harness, const std::string& format, RecordReader& reader) {
  const auto dtype = parse_dtype(format, "");
  if (!dtype) reader.fault("", dtype.error().what, "write [harness.NAME.quantise.fp8.Hopper]");
  reader.member_tables([&](const std::string& architecture, RecordReader& inner) {
    Quantising cast;
    read_cast(cast, inner);
    if (dtype) harness.quantise[{*dtype, architecture}] = cast;
  });
}

/// Absent numbers keep their defaults: a table that was timed in another way has no such cost.
void read_harness(Harness& harness, RecordReader& reader) {
  const auto optional = [&](std::string_view key, auto& value) {
    if (reader.has(key)) reader.number(key, value);
  };
  optional("gap", harness.gap);
  optional("ramp", harness.ramp);
  optional("dirty", harness.dirty);
  optional("evicts", harness.evicts);
  optional("attention_passes", harness.attention_passes);
  reader.flag("split_k", harness.split_k);
  reader.optional_table("launch", [&](RecordReader& launch) {
    for (std::size_t i = 0; i < kernel_kinds; ++i)
      if (launch.has(kernel_kind_names[i])) launch.number(kernel_kind_names[i], harness.launch[i]);
  });
  reader.each_table("quantise",
                    [&](const std::string& format, RecordReader& inner) { read_quantising(harness, format, inner); });
}

}  // namespace

Result<Harnesses> read_harnesses(std::string_view document, std::string_view file) {
  Harnesses found;
  RecordFile shared{.name = std::string(file)};
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources();
    reader.each_table("harness",
                      [&](const std::string& name, RecordReader& inner) { read_harness(found[name], inner); });
  }));
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

}  // namespace assay::kernel
