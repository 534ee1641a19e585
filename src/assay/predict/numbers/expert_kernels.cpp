#include "assay/predict/numbers/expert_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::numbers {
namespace {

void read_blocks(ExpertBlocks& out, RecordReader& in) {
  in.text("format", out.format);
  in.number("rows", out.rows);
  in.number("columns", out.columns);
  in.share("memory", out.memory);
  in.share("matrix", out.matrix);
  in.number("element", out.element);
  in.number("start", out.start);
  std::optional<std::string> without;
  in.text("without_table", without);
  out.without_table = without.value_or("");
  if (without && *without != "few" && *without != "many" && *without != "any")
    in.fault("without_table", "is few, many or any", "of the tokens of a step");
  if (!(out.rows >= 1.0) || !(out.columns >= 1.0)) in.fault("rows", "blocks have rows and columns", "e.g. 64");
}

Result<std::shared_ptr<const ExpertKernels>> read_kernels(const hardware::Catalogue& catalogue) {
  auto out = std::make_shared<ExpertKernels>();
  for (const auto& [path, text] : catalogue.files("steps/expert_kernels.toml")) {
    RecordFile shared = effects_file(path);
    ASSAY_CHECK(read_record(text, shared, [&](RecordReader& reader) {
      reader.sources();
      reader.table("layer", [&](RecordReader& in) {
        in.number("routing", out->routing);
        in.number("traffic", out->traffic);
      });
      reader.table("gathering", [&](RecordReader& in) {
        in.text("family", out->gathering_family);
        in.texts("formats", out->gathering_formats);
        in.number("routing", out->gathering_routing);
      });
      reader.items("blocks", out->blocks, read_blocks);
      reader.items("table", out->tables, [](ExpertKernels::Table& table, RecordReader& in) {
        in.text("chip", table.chip);
        in.text("format", table.format);
        in.texts("shapes", table.shapes);
      });
    }));
  }
  return std::shared_ptr<const ExpertKernels>(std::move(out));
}

}  // namespace

std::shared_ptr<const ExpertBlockChoice> ExpertKernels::choose(std::string_view chip, std::string_view format,
                                                               double held, double width, bool best) const {
  const std::string shape = fmt::format("{:.0f}x{:.0f}", held, width);
  for (const Table& table : tables)
    best |= table.chip == chip && table.format == format &&
            std::find(table.shapes.begin(), table.shapes.end(), shape) != table.shapes.end();
  auto out = std::make_shared<ExpertBlockChoice>();
  out->few_tokens = held;
  for (const ExpertBlocks& one : blocks) {
    if (one.format != format) continue;
    if (best || one.without_table == "few" || one.without_table == "any") out->few.push_back(one);
    if (best || one.without_table == "many" || one.without_table == "any") out->many.push_back(one);
  }
  return out->few.empty() || out->many.empty() ? nullptr : out;
}

Result<std::shared_ptr<const ExpertKernels>> expert_kernels_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(kept, catalogue.kept<std::shared_ptr<const ExpertKernels>>("expert kernels",
                                                                       [&] { return read_kernels(catalogue); }));
  return *kept;
}

}  // namespace assay::numbers
