#include "assay/validate/harness.h"

#include <fmt/format.h>

#include "assay/base/record_reader.h"

namespace assay::validate {
namespace {

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
  for (const auto& [path, text] : catalogue.files("validation/harness.toml")) return read_harnesses(text, path);
  return fail("validation/harness.toml", "is not in the catalogue", "", Error::Kind::missing);
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

}  // namespace assay::validate
