// Compiled programs as protobufs: what XLA's profiler keeps in a profile, and --xla_dump_hlo_as_proto writes.
#pragma once
#include <string>
#include <string_view>

namespace assay::hlo {

/// A message HloModuleProto as the text that XLA prints of it, as far as this text is read here. What is damaged in the
/// message is missing from the text.
std::string hlo_text(std::string_view module_message);

}  // namespace assay::hlo
