// Reads a chip file into a Chip: one pass over visit_chip, then the rules between fields.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/chip_overrides.h"
#include "assay/hardware/chip_rules.h"
#include "assay/hardware/inheritance.h"

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

Result<Chip> read_chip(const ChipRecord& record, const std::vector<Override>& overrides) {
  Toml root = record.root;
  for (const Override& change : overrides) ASSAY_CHECK(apply_override(root, change));
  Chip chip;
  RecordFile shared{
      .name = record.file, .keys_hint = "docs/catalogue.md lists the keys", .sourced_tables = false, .own = record.own};
  shared.sources = {"assumed"};
  RecordReader reader(shared, root);
  if (reader.find("source"))
    reader.sources([&](const std::string& key, RecordReader& inner) {
      read_chip_source(chip.sources.emplace_back(SourceEntry{key, {}, {}, {}, {}}), inner);
    });
  visit_chip(chip, reader);
  std::optional<std::vector<std::string>> aliases;  // for ClusterNames
  reader.texts("aliases", aliases);
  reader.find("base");
  if (record.before) chip.base = record.before->base.empty() ? record.before->id : record.before->base;
  reader.check_id(chip.id);
  reader.finish();
  const ReportFault report = [&](const Toml& node, std::string_view key, std::string what, std::string hint) {
    reader.fault_at(node, key, std::move(what), std::move(hint));
  };
  if (shared.faults.empty()) check_chip(chip, root, report);
  if (shared.faults.empty() && !overrides.empty()) {
    const Stated set = [&](const std::string& source) {
      return source == override_source ||
             std::any_of(overrides.begin(), overrides.end(), [&](const Override& o) { return o.source == source; });
    };
    if (const auto unchanged = read_chip(record)) derive_changed(chip, *unchanged, set, root, report);
  } else if (shared.faults.empty() && record.before) {
    const Stated own = [&](const std::string& source) { return source.starts_with(record.file + ":"); };
    derive_changed(chip, *record.before, own, root, report);
  }
  if (shared.faults.empty()) check_fabric(chip, root, report);
  ASSAY_CHECK(joined(std::move(shared.faults)));
  return chip;
}

Result<Chip> read_chip(std::string_view document, std::string_view file, const std::vector<Override>& overrides) {
  ASSAY_TRY(root, parse_toml(document, file));
  return read_chip(ChipRecord{std::move(root), std::string(file), false, {}}, overrides);
}

Result<Chip> load_chip(Toml own, std::string_view file, bool users, const Catalogue& catalogue,
                       const std::vector<Override>& overrides) {
  const Toml* named = own.find("base");
  const std::string base = named ? named->text : "";
  ASSAY_TRY(root, with_bases(std::move(own), file, "chips/", catalogue, {"id", "name", "aliases"}));
  ChipRecord record{std::move(root), std::string(file), users, {}};
  if (!base.empty()) {
    ASSAY_TRY(before, catalogue.chip(base, "base"));
    if (!record.root.find("name"))
      record.root.members.emplace_back("name", Toml::make_text(fmt::format("{}, changed", before.name)));
    record.before = std::move(before);
  }
  ASSAY_TRY(chip, read_chip(record, overrides));
  catalogue.prices().apply(chip);
  return chip;
}

}  // namespace assay::hardware
