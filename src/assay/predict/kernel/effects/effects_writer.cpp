#include "assay/predict/kernel/effects/effects_writer.h"

#include <fmt/format.h>

namespace assay::kernel {

void EffectsWriter::header(std::string_view name) { text_ += fmt::format("\n[{}]\nsource = \"{}\"\n", name, source_); }

void EffectsWriter::line(std::string_view key, const std::string& value) {
  text_ += fmt::format("{} = {}\n", key, value);
}

void EffectsWriter::add(std::string& list, std::string_view name, const std::string& value) {
  list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", name, value);
}

std::string EffectsWriter::in_text(double value) { return fmt::format("{:.4g}", value); }
std::string EffectsWriter::in_text(Seconds value) { return fmt::format("\"{:.4g} us\"", value.in(1_us)); }
std::string EffectsWriter::in_text(Bytes value) { return fmt::format("\"{:.4g} GiB\"", value.in(1_GiB)); }

}  // namespace assay::kernel
