#include "assay/lab/benchmark/writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::benchmark {
namespace {

Figure::Place place_of(const std::string& text) {
  constexpr std::string_view in = " in ";
  const std::size_t at = text.rfind(in);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + in.size())};
}

void read_figures(RecordReader& reader, std::vector<Figure>& figures) {
  reader.each_key("figures", [&](const std::string& name, RecordReader& inner) {
    std::vector<std::string> places;
    inner.texts(name, places);
    const FigureFacts* facts = find_figure(name);
    if (!facts) return inner.fault(name, "is no figure of a benchmark", "lab/benchmark/writer.h lists them");
    Figure figure{name, {}};
    for (const std::string& text : places) figure.places.push_back(place_of(text));
    for (const Figure::Place& place : figure.places)
      if (facts->kind == FigureKind::time && place.unit.empty())
        inner.fault(name, "a time needs its unit", "write e.g. \"mean_ttft_ms in ms\"");
    figures.push_back(std::move(figure));
  });
}

}  // namespace

const FigureFacts* find_figure(std::string_view name) {
  const auto found = std::find_if(std::begin(all_figures), std::end(all_figures),
                                  [&](const FigureFacts& one) { return one.name == name; });
  return found == std::end(all_figures) ? nullptr : found;
}

Result<Writer> read_writer(std::string_view document, std::string_view file) {
  constexpr std::string_view forms[] = {"json", "table", "log"};
  Writer out;
  RecordFile shared{.name = std::string(file), .sourced_tables = false};
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources();
    reader.text("id", out.id);
    reader.check_id(out.id);
    reader.text("name", out.name);
    reader.text("form", out.form_name);
    const auto form = std::find(std::begin(forms), std::end(forms), out.form_name);
    if (form == std::end(forms))
      reader.fault("form", fmt::format("unknown form {}", in_quotes(out.form_name)), "known: json, table, log");
    else
      out.form = static_cast<Writer::Form>(form - std::begin(forms));
    reader.text("verb", out.verb);
    if (out.verb != "serve" && out.verb != "train") reader.fault("verb", "a file measures serve or train");
    reader.texts("has", out.has);
    if (reader.has("software")) reader.text("software", out.software);
    if (reader.has("rows")) reader.text("rows", out.rows);
    if (reader.has("step")) reader.text("step", out.step);
    if (reader.has("warm_up")) reader.count("warm_up", out.warm_up);
    read_figures(reader, out.figures);
  }));
  return out;
}

Result<std::vector<Writer>> writers_of(const hardware::Catalogue& catalogue) {
  std::vector<Writer> out;
  for (const auto& [path, text] : catalogue.files("benchmarks/")) {
    ASSAY_TRY(writer, read_writer(text, path));
    out.push_back(std::move(writer));
  }
  return out;
}

}  // namespace assay::benchmark
