// Reads a chip file into a Chip: one pass over visit_chip, then the rules between fields.
#include <fmt/format.h>

#include "assay/base/record_reader.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/chip_overrides.h"
#include "assay/hardware/chip_rules.h"

namespace assay::hardware {
namespace {

void read_chip_source(SourceEntry& source, RecordReader& reader) {
  std::optional<std::string> url, command;
  reader.text("title", source.title);
  reader.text("url", url);
  reader.text("command", command);
  reader.date("accessed", source.accessed);
  if (!url && !command) reader.fault("url", "a source needs url or command");
  source.url = url.value_or("");
  source.command = command.value_or("");
}

}  // namespace

Result<Chip> read_chip(std::string_view document, std::string_view file, const std::vector<Override>& overrides) {
  ASSAY_TRY(root, parse_toml(document, file));
  for (const Override& change : overrides) ASSAY_CHECK(apply_override(root, change));
  Chip chip;
  RecordFile shared{
      .name = std::string(file), .keys_hint = "docs/catalogue.md lists the keys", .sourced_tables = false};
  shared.sources = {"assumed"};
  RecordReader reader(shared, root);
  if (reader.find("source"))
    reader.sources([&](const std::string& key, RecordReader& inner) {
      read_chip_source(chip.sources.emplace_back(SourceEntry{key, {}, {}, {}, {}}), inner);
    });
  visit_chip(chip, reader);
  reader.check_id(chip.id);
  reader.finish();
  const ReportFault report = [&](const Toml& node, std::string_view key, std::string what, std::string hint) {
    reader.fault_at(node, key, std::move(what), std::move(hint));
  };
  if (shared.faults.empty()) check_chip(chip, root, report);
  if (shared.faults.empty()) share_adapters(chip, root, report);
  if (shared.faults.empty() && !overrides.empty())
    if (const auto before = read_chip(document, file)) scale_fabric(chip, *before);
  if (shared.faults.empty()) check_fabric(chip, root, report);
  ASSAY_CHECK(shared.result());
  return chip;
}

}  // namespace assay::hardware
