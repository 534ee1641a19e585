#include "assay/predict/numbers/families.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/predict/numbers/rows.h"
#include "assay/predict/numbers/serving_effects.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::numbers {
namespace {

void read_kernels(RecordReader& reader, FamilyKernels& kernels) {
  reader.formats("share", kernels.share);
  reader.number("droop", kernels.droop);
  reader.flag("fine_tiles", kernels.fine_tiles);
  reader.flag("whole_products", kernels.whole_products);
  reader.flag("unbounded_port", kernels.unbounded_port);
  if (reader.has("tiles_with")) reader.text("tiles_with", kernels.tiles_with);
  if (reader.has("own_products")) reader.texts("own_products", kernels.own_products);
  reader.number("head_step", kernels.head_step);
  reader.flag("full_power", kernels.full_power);
  reader.number("softmax", kernels.softmax);
  reader.flag("flash2", kernels.flash2);
  reader.flag("paged_attention", kernels.paged_attention);
  reader.flag("fixed_groups", kernels.fixed_groups);
  reader.flag("unchunked", kernels.unchunked);
  if (reader.has("in_network")) reader.number("in_network", kernels.in_network);
  reader.table("host", [&](RecordReader& host) {
    host.number("eager", kernels.host.eager);
    host.number("compiled", kernels.host.compiled);
    host.number("graph", kernels.host.graph);
  });
  if (reader.has("pointwise_from")) reader.text("pointwise_from", kernels.pointwise_from);
  if (reader.has("collective_from")) reader.text("collective_from", kernels.collective_from);
}

void read_overlap(RecordReader& reader, FamilyOverlap& overlap) {
  reader.number("chip_share", overlap.chip_share);
  reader.flag("tensor_pieces", overlap.tensor_pieces);
  if (!(overlap.chip_share >= 0.0 && overlap.chip_share <= 1.0))
    reader.fault("chip_share", "is a share of the chip", "from 0 to 1");
}

/// Ids of families that a family names.
std::vector<std::string> named_families(const Family& family) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty()) names.push_back(name);
  };
  if (const auto& kernels = family.kernels) {
    add(kernels->tiles_with);
    add(kernels->pointwise_from);
    add(kernels->collective_from);
  }
  return names;
}

}  // namespace

Result<Family> read_family(std::string_view document, std::string_view file) {
  Family family;
  RecordFile shared{.name = std::string(file)};
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources();
    reader.text("id", family.id);
    reader.check_id(family.id);
    reader.text("name", family.name);
    reader.texts("architectures", family.architectures);
    reader.flag("compiled_whole", family.compiled_whole);
    reader.optional_table("kernels", [&](RecordReader& inner) { read_kernels(inner, family.kernels.emplace()); });
    reader.optional_table("training", [&](RecordReader& inner) {
      StepCalibration rows;
      FamilyRangesReader ranges(inner, family.training.emplace());
      visit_training(rows, ranges);
    });
    reader.optional_table("serving", [&](RecordReader& inner) {
      ServingCalibration rows;
      FamilyRangesReader ranges(inner, family.serving.emplace());
      visit_serving(rows, ranges);
      inner.number("one_shot", family.one_shot);
    });
    reader.optional_table("overlap", [&](RecordReader& inner) { read_overlap(inner, family.overlap); });
  }));
  return family;
}

namespace {

Result<Families> read_families(const hardware::Catalogue& catalogue) {
  Families families;
  std::vector<std::string> paths;
  for (const auto& [path, text] : catalogue.files("families/")) {
    ASSAY_TRY(read, read_family(text, path));
    for (std::size_t i = 0; i < families.size(); ++i)
      for (const std::string& name : std::vector<std::string>(read.architectures)) {
        std::vector<std::string>& others = families[i].architectures;
        if (std::find(others.begin(), others.end(), name) == others.end()) continue;
        const int before = catalogue.layer(paths[i]), now = catalogue.layer(path);
        if (before == now)
          return fail(path, fmt::format("{} is of the family in {} already", name, paths[i]), "name it in one file");
        std::erase(before < now ? others : read.architectures, name);
      }
    families.push_back(std::move(read));
    paths.push_back(path);
  }
  for (std::size_t i = 0; i < families.size(); ++i)
    for (const std::string& name : named_families(families[i]))
      if (!family_index(families, name))
        return fail(paths[i], fmt::format("there is no family {}", in_quotes(name)),
                    fmt::format("families/{}.toml would describe it", name));
  return families;
}

}  // namespace

Result<Families> families_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(families, catalogue.kept<Families>("families", [&] { return read_families(catalogue); }));
  return *families;
}

std::optional<std::size_t> family_index(const Families& families, const hardware::Chip& chip) {
  for (std::size_t i = 0; i < families.size(); ++i) {
    const std::vector<std::string>& names = families[i].architectures;
    if (std::find(names.begin(), names.end(), chip.architecture) != names.end()) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> family_index(const Families& families, std::string_view id) {
  for (std::size_t i = 0; i < families.size(); ++i)
    if (families[i].id == id) return i;
  return std::nullopt;
}

const Family* family_of(const Families& families, const hardware::Chip& chip) {
  const std::optional<std::size_t> at = family_index(families, chip);
  return at ? &families[*at] : nullptr;
}

std::vector<std::string_view> MeasuredFamilies::family_ids() const {
  std::vector<std::string_view> ids;
  for (const Family& family : families) ids.push_back(family.id);
  return ids;
}

bool MeasuredFamilies::has_steps(const hardware::Chip& chip) const {
  const std::optional<std::size_t> at = family_index(families, chip);
  return at && measured[*at];
}

bool MeasuredFamilies::compiled_whole(const hardware::Chip& chip) const {
  const Family* known = family(chip);
  return known && known->compiled_whole;
}

const FitRange<double>* MeasuredFamilies::range(std::size_t family, std::string_view table,
                                                std::string_view key) const {
  const std::optional<FitRanges>& ranges = families[family].*section;
  if (!ranges) return nullptr;
  const auto found = ranges->find(fmt::format("{}.{}", table, key));
  return found == ranges->end() ? nullptr : &found->second;
}

std::string MeasuredFamilies::unmeasured(const hardware::Chip& chip) {
  return fmt::format("1: no steps were measured on {} chips", chip.architecture);
}

}  // namespace assay::numbers
