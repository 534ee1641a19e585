#include "assay/model/model_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/hardware/inheritance.h"
#include "assay/model/checkpoint/checkpoint.h"
#include "assay/model/model_names.h"

namespace assay::model {
namespace {

constexpr std::string_view folder_of_models = "models/";

/// "8,030,261,248" is exact; "175 B", "1.3 B" and "340 M" are rounded to the last digit; "~22 B" is within a tenth.
bool read_total(std::string_view text, PublishedTotal& total) {
  std::string digits;
  double scale = 1;
  std::string_view rest = trim(text);
  const bool roughly = rest.starts_with('~');
  if (roughly) rest.remove_prefix(1);
  if (!rest.empty() && std::string_view("kMBT").find(rest.back()) != std::string_view::npos) {
    const char unit = rest.back();
    scale = unit == 'k' ? 1e3 : unit == 'M' ? 1e6 : unit == 'B' ? 1e9 : 1e12;
    rest = trim(rest.substr(0, rest.size() - 1));
  }
  for (char c : rest)
    if (c != ',') digits += c;
  const auto number = parse_number(digits);
  if (!number || !(*number > 0) || *number * scale > 1e15) return false;
  total.value = *number * scale;
  const std::size_t point = digits.find('.');
  const double decimals = point == std::string::npos ? 0 : static_cast<double>(digits.size() - point - 1);
  total.half_unit = scale == 1 ? 0 : 0.5 * scale * std::pow(10.0, -decimals);
  if (roughly) total.half_unit = 0.1 * total.value;
  return scale != 1 || point == std::string::npos;
}

void read_parameters(PublishedTotal& total, RecordReader& reader, bool own) {
  reader.text("value", total.text);
  if (!total.text.empty() && !read_total(total.text, total))
    reader.fault("value", fmt::format("{} is not a number of parameters", in_quotes(total.text)),
                 "exact: \"8,030,261,248\"; rounded: \"175 B\"");
  if (reader.source().empty() && !own) reader.required("source");
  total.source = reader.origin();
  std::optional<std::string> scope;
  reader.text("scope", scope);
  if (scope == "without embedding")
    total.scope = PublishedTotal::Scope::without_embedding;
  else if (scope == "without norms")
    total.scope = PublishedTotal::Scope::without_norms;
  else if (scope)
    reader.fault("scope", fmt::format("unknown scope {}", in_quotes(*scope)),
                 "\"without embedding\" or \"without norms\"");
}

void read_outside(PublishedTotal& total, RecordReader& reader) {
  PublishedTotal other;
  std::string value;
  reader.text("what", total.outside_what);
  reader.text("value", value);
  if (!value.empty() && !read_total(value, other))
    reader.fault("value", fmt::format("{} is not a number of parameters", in_quotes(value)), "\"866,652,672\"");
  total.outside = other.value;
}

hardware::SourceEntry read_model_source(const std::string& key, RecordReader& reader) {
  hardware::SourceEntry source;
  source.key = key;
  reader.text("title", source.title);
  reader.text("url", source.url);
  if (reader.has("accessed")) reader.date("accessed", source.accessed);  // missing: not opened yet
  return source;
}

}  // namespace

std::int64_t comparable_total(const ParameterCounts& counts, PublishedTotal::Scope scope) {
  switch (scope) {
    case PublishedTotal::Scope::without_embedding:
      return counts.total - counts.of(Part::embedding);
    case PublishedTotal::Scope::without_norms:
      return counts.total - counts.of(Part::norm);
    case PublishedTotal::Scope::all:
      break;
  }
  return counts.total;
}

bool agrees(const PublishedTotal& published, const ParameterCounts& counts) {
  const auto ours = static_cast<double>(comparable_total(counts, published.scope));
  return std::abs(ours + published.outside - published.value) <= published.half_unit;
}

namespace {

Result<CatalogueModel> read_model_tree(const Toml& root, std::string_view file, bool own,
                                       const hardware::Catalogue& catalogue) {
  RecordFile shared{.name = std::string(file),
                    .keys_hint = "catalogue/models/llama-3-8b.toml is an example",
                    .sourced_tables = false,
                    .own = own};
  RecordReader reader(shared, root);
  CatalogueModel model;
  std::string id, name;
  std::optional<std::string> maker, note;
  std::optional<std::vector<std::string>> aliases;  // for ModelNames
  if (!own || reader.find("source"))
    reader.sources(
        [&](const std::string& key, RecordReader& source) { model.sources.push_back(read_model_source(key, source)); });
  reader.text("id", id);
  reader.find("base");
  if (!own || reader.find("name")) reader.text("name", name);
  reader.text("maker", maker);
  reader.text("note", note);
  reader.texts("aliases", aliases);
  if (!own || reader.find("parameters"))
    reader.table("parameters", [&](RecordReader& inner) { read_parameters(model.published, inner, own); });
  reader.optional_table("outside", model.published, read_outside);
  const Toml* config = reader.required("config");  // the fields of the model's config.json, checked as such
  if (config && config->kind != Toml::Kind::table)
    reader.fault("config", "expected a table", "[config] with the fields of the model's config.json");
  reader.finish();
  ASSAY_CHECK(joined(std::move(shared.faults)));
  ASSAY_TRY(imported, import_config(json_of(*config), file, catalogue));
  model.maker = maker.value_or("");
  model.note = note.value_or("");
  model.imported = std::move(imported);
  model.imported.model.id = id;
  model.imported.model.name = name.empty() ? id : name;
  if (!model.note.empty()) model.imported.notes.push_back(model.note);
  return model;
}

/// With the values of its bases. A total that was published is about the base's configuration.
Result<Toml> whole_tree(Toml parsed, std::string_view file, const hardware::Catalogue& catalogue) {
  return hardware::with_bases(std::move(parsed), file, folder_of_models, catalogue,
                              {"id", "name", "maker", "note", "aliases", "parameters", "outside"});
}

/// Lays fields over those of a configuration, object by object.
void lay_over(Json& base, const Json& own) {
  for (const auto& [key, value] : own.members) {
    const auto there = std::find_if(base.members.begin(), base.members.end(),
                                    [&name = key](const auto& m) { return m.first == name; });
    if (there == base.members.end())
      base.members.emplace_back(key, value);
    else if (there->second.kind == Json::Kind::object && value.kind == Json::Kind::object)
      lay_over(there->second, value);
    else
      there->second = value;
  }
}

void mark_inherited(Json& config) {
  config.inherited = true;
  for (auto& [key, value] : config.members) mark_inherited(value);
}

/// A configuration in a word of the command line: {"model_type": "llama", ...}, or {"base": "llama-3-8b", ...} with the
/// fields that differ from those of a model of the catalogue.
Result<CatalogueModel> written_model(std::string_view text, const hardware::Catalogue& catalogue,
                                     std::string_view where) {
  ASSAY_TRY(own, parse_json(text, where));
  const Json* base = own.find("base");
  CatalogueModel model;
  model.imported.model.id = "custom";
  Json config;
  config.kind = Json::Kind::object;
  if (base) {
    if (base->kind != Json::Kind::text)
      return fail(std::string(where), fmt::format("base must be text, got {}", describe(base->kind)),
                  R"({"base": "llama-3-8b", ...})");
    ASSAY_TRY(of, catalogue_model(base->text, catalogue, where));
    const std::string path = fmt::format("{}{}.toml", folder_of_models, of.imported.model.id);
    for (const auto& [name, document] : catalogue.files(path)) {
      ASSAY_TRY(parsed, parse_toml(document, path));
      ASSAY_TRY(root, whole_tree(std::move(parsed), path, catalogue));
      config = json_of(*root.find("config"));
      mark_inherited(config);
    }
    model.imported.model.id = "custom " + of.imported.model.id;
    std::erase_if(own.members, [](const auto& member) { return member.first == "base"; });
  }
  lay_over(config, own);
  std::string id = std::move(model.imported.model.id);
  ASSAY_TRY(imported, import_config(config, where, catalogue));
  model.imported = std::move(imported);
  model.imported.model.id = model.imported.model.name = std::move(id);
  return model;
}

}  // namespace

Result<CatalogueModel> read_model(std::string_view document, std::string_view file, bool own,
                                  const hardware::Catalogue& catalogue) {
  ASSAY_TRY(parsed, parse_toml(document, file));
  ASSAY_TRY(root, whole_tree(std::move(parsed), file, catalogue));
  return read_model_tree(root, file, own, catalogue);
}

std::vector<std::string> model_ids(const hardware::Catalogue& catalogue) {
  std::vector<std::string> ids;
  for (const auto& [path, text] : catalogue.files("models/")) ids.push_back(model_id(path));
  return ids;
}

Result<CatalogueModel> catalogue_model(std::string_view id, const hardware::Catalogue& catalogue,
                                       std::string_view where) {
  const std::string path = fmt::format("models/{}.toml", id);
  for (const auto& [name, text] : catalogue.files(path))
    if (name == path) {
      ASSAY_TRY(model, read_model(text, path, catalogue.layer(path) > 0, catalogue));
      if (model.imported.model.id != id)
        return fail(path, fmt::format("the file says id = {}", in_quotes(model.imported.model.id)),
                    "the file name must be the id");
      return std::move(model);
    }
  if (const auto known = ModelNames(catalogue).find(id); known && *known != id) {
    ASSAY_TRY(model, catalogue_model(*known, catalogue, where));
    model.imported.notes.push_back(fmt::format("{} is {} in the catalogue", in_quotes(id), *known));
    return std::move(model);
  }
  const auto ids = model_ids(catalogue);
  const auto near = nearest(id, ids);
  return fail(std::string(where), fmt::format("unknown model {}", in_quotes(id)),
              near.empty() ? "`assay models` lists all; to read a file, give its path" : suggestion(id, ids),
              Error::Kind::missing);
}

bool names_path(std::string_view text, const hardware::Catalogue& catalogue) {
  if (text.starts_with('@') || text.starts_with('{') || !catalogue.reads_files()) return false;
  std::error_code failed;
  // "meta-llama/Llama-2-7b-hf" looks like a path; it is one if the file exists or if no model has that name.
  if (is_model_path(text))
    return std::filesystem::exists(std::string(text), failed) || !ModelNames(catalogue).find(text);
  if (!std::filesystem::is_directory(std::string(text), failed)) return false;
  const auto ids = model_ids(catalogue);
  return std::find(ids.begin(), ids.end(), text) == ids.end();
}

Result<CatalogueModel> named_model(std::string_view text, const hardware::Catalogue& catalogue,
                                   std::string_view where) {
  if (text.starts_with('{')) return written_model(text, catalogue, where);
  if (!text.starts_with('@') || !catalogue.reads_files()) return catalogue_model(text, catalogue, where);
  ASSAY_TRY(document, hardware::read_file(std::string(text.substr(1)), where));
  return read_model(document, text.substr(1), true, catalogue);
}

Result<void> check_as(std::string_view as) {
  if (as.empty()) return {};
  return fail("--as", "this model already says what it is", "--as reads a config.json of an unknown architecture",
              Error::Kind::usage);
}

Result<ImportedModel> load_model(std::string_view text, const hardware::Catalogue& catalogue, std::string_view where,
                                 std::string_view as) {
  if (names_path(text, catalogue)) {
    ASSAY_TRY(checkpoint, read_checkpoint(std::string(text), where, catalogue, as));
    if (checkpoint.imported) return std::move(*checkpoint.imported);
    return fail(std::string(where), fmt::format("{} holds tensors but no configuration", in_quotes(text)),
                "put its config.json in the same directory and give that directory");
  }
  ASSAY_CHECK(check_as(as));
  ASSAY_TRY(model, named_model(text, catalogue, where));
  return std::move(model.imported);
}

}  // namespace assay::model
