#include "assay/predict/numbers/expert_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
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

void add(ExpertKernels& kernels, ExpertBlocks one) {
  auto of = std::find_if(kernels.blocks.begin(), kernels.blocks.end(),
                         [&](const ExpertKernels::Blocks& known) { return known.format == one.format; });
  if (of == kernels.blocks.end()) of = kernels.blocks.insert(of, {one.format, {}, {}, {}});
  if (one.without_table == "few" || one.without_table == "any") of->few.push_back(one);
  if (one.without_table == "many" || one.without_table == "any") of->many.push_back(one);
  of->all.push_back(std::move(one));
}

void read_table(ExpertKernels::Table& out, RecordReader& in) {
  in.text("chip", out.chip);
  in.text("format", out.format);
  std::vector<std::string> shapes;
  in.texts("shapes", shapes);
  for (const std::string& shape : shapes) {
    const std::size_t cross = shape.find('x');
    const auto experts = parse_number(std::string_view(shape).substr(0, cross));
    const auto width =
        cross == std::string::npos ? std::nullopt : parse_number(std::string_view(shape).substr(cross + 1));
    if (experts && width)
      out.shapes.emplace_back(*experts, *width);
    else
      in.fault("shapes", fmt::format("{} is not experts x width", in_quotes(shape)), "e.g. \"128x768\"");
  }
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
        in.number("rows", out->rows);
      });
      reader.table("gathering", [&](RecordReader& in) {
        in.text("family", out->gathering_family);
        in.texts("formats", out->gathering_formats);
        in.number("routing", out->gathering_routing);
      });
      std::vector<ExpertBlocks> blocks;
      reader.items("blocks", blocks, read_blocks);
      for (ExpertBlocks& one : blocks) add(*out, std::move(one));
      reader.items("table", out->tables, read_table);
    }));
  }
  return std::shared_ptr<const ExpertKernels>(std::move(out));
}

}  // namespace

ExpertBlockChoice ExpertKernels::choose(std::string_view chip, std::string_view format, double held, double width,
                                        bool best) const {
  const auto of =
      std::find_if(blocks.begin(), blocks.end(), [&](const Blocks& known) { return known.format == format; });
  if (of == blocks.end()) return {};
  for (const Table& table : tables)
    best |= table.chip == chip && table.format == format &&
            std::find(table.shapes.begin(), table.shapes.end(), std::pair(held, width)) != table.shapes.end();
  if (best || of->few.empty() || of->many.empty()) return {&of->all, &of->all, held};
  return {&of->few, &of->many, held};
}

Result<std::shared_ptr<const ExpertKernels>> expert_kernels_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(kept, catalogue.kept<std::shared_ptr<const ExpertKernels>>("expert kernels",
                                                                       [&] { return read_kernels(catalogue); }));
  return *kept;
}

}  // namespace assay::numbers
