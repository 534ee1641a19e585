#include "assay/model/model_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "assay/base/text.h"
#include "assay/base/toml.h"
#include "assay/model/checkpoint/checkpoint.h"
#include "assay/model/model_names.h"

namespace assay::model {
namespace {

/// Collects the faults of one file.
class Faults {
 public:
  explicit Faults(std::string_view file) : file_(file) {}
  void add(const Toml& at, std::string_view key, std::string what, std::string hint = {}) {
    found_.push_back({Error::Kind::input,
                      fmt::format("{}:{}:{}: {}", file_, at.line, at.column, key),
                      std::move(what),
                      std::move(hint),
                      {}});
  }
  Result<void> finish() {
    if (found_.empty()) return {};
    Error first = std::move(found_.front());
    first.also.assign(std::make_move_iterator(found_.begin() + 1), std::make_move_iterator(found_.end()));
    return tl::unexpected<Error>(std::move(first));
  }
  /// The text of a member; a fault if it is missing or not text.
  std::string text(const Toml& table, std::string_view key, bool required = true) {
    const Toml* value = table.find(key);
    if (!value) {
      if (required) add(table, key, "is missing");
      return {};
    }
    if (value->kind != Toml::Kind::text && value->kind != Toml::Kind::date) {
      add(*value, key, fmt::format("must be text, got {}", describe(value->kind)));
      return {};
    }
    return value->text;
  }
  void only(const Toml& table, std::string_view prefix, std::initializer_list<std::string_view> keys) {
    for (const auto& [key, value] : table.members)
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        const std::vector<std::string> known(keys.begin(), keys.end());
        add(value, fmt::format("{}{}", prefix, key), "unknown key", suggestion(key, known));
      }
  }

 private:
  std::string file_;
  std::vector<Error> found_;
};

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

PublishedTotal read_published(const Toml& root, std::string_view file,
                              const std::vector<hardware::SourceEntry>& sources, Faults& faults) {
  PublishedTotal total;
  const Toml* table = root.find("parameters");
  if (!table || table->kind != Toml::Kind::table) {
    faults.add(root, "parameters", "is missing", "parameters = { value = \"8,030,261,248\", source = \"card\" }");
    return total;
  }
  faults.only(*table, "parameters.", {"value", "source", "scope"});
  total.text = faults.text(*table, "value");
  if (!total.text.empty() && !read_total(total.text, total))
    faults.add(*table, "parameters.value", fmt::format("{} is not a number of parameters", in_quotes(total.text)),
               "exact: \"8,030,261,248\"; rounded: \"175 B\"");
  const std::string source = faults.text(*table, "source");
  if (!source.empty() && std::none_of(sources.begin(), sources.end(), [&](const auto& s) { return s.key == source; }))
    faults.add(*table, "parameters.source", fmt::format("no [source.{}]", source));
  total.source = fmt::format("{}:{} ({})", file, table->line, source);
  if (const Toml* outside = root.find("outside")) {
    PublishedTotal other;
    faults.only(*outside, "outside.", {"value", "what"});
    total.outside_what = faults.text(*outside, "what");
    if (!read_total(faults.text(*outside, "value"), other))
      faults.add(*outside, "outside.value", "is not a number of parameters", "\"866,652,672\"");
    total.outside = other.value;
  }
  const std::string scope = faults.text(*table, "scope", false);
  if (scope == "without embedding")
    total.scope = PublishedTotal::Scope::without_embedding;
  else if (scope == "without norms")
    total.scope = PublishedTotal::Scope::without_norms;
  else if (!scope.empty())
    faults.add(*table, "parameters.scope", fmt::format("unknown scope {}", in_quotes(scope)),
               "\"without embedding\" or \"without norms\"");
  return total;
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

Result<CatalogueModel> read_model(std::string_view document, std::string_view file) {
  ASSAY_TRY(root, parse_toml(document, file));
  Faults faults(file);
  CatalogueModel model;
  faults.only(root, "", {"id", "name", "aliases", "maker", "note", "parameters", "outside", "source", "config"});
  const std::string id = faults.text(root, "id"), name = faults.text(root, "name");
  model.maker = faults.text(root, "maker", false);
  model.note = faults.text(root, "note", false);
  if (const Toml* aliases = root.find("aliases"))
    for (const Toml& alias : aliases->items)
      if (alias.kind != Toml::Kind::text) faults.add(alias, "aliases", "must be a list of names");
  if (const Toml* sources = root.find("source"); sources && sources->kind == Toml::Kind::table) {
    for (const auto& [key, entry] : sources->members) {
      if (entry.kind != Toml::Kind::table) {
        faults.add(entry, fmt::format("source.{}", key), "must be a table with title and url");
        continue;
      }
      faults.only(entry, fmt::format("source.{}.", key), {"title", "url", "accessed"});
      hardware::SourceEntry source;
      source.key = key;
      source.title = faults.text(entry, "title");
      source.url = faults.text(entry, "url");
      source.accessed = faults.text(entry, "accessed", false);  // missing: not opened yet
      model.sources.push_back(std::move(source));
    }
  } else {
    faults.add(root, "source", "is missing", "[source.card] with title and url");
  }
  model.published = read_published(root, file, model.sources, faults);
  const Toml* config = root.find("config");
  if (!config || config->kind != Toml::Kind::table)
    faults.add(root, "config", "is missing", "[config] with the fields of the model's config.json");
  ASSAY_CHECK(faults.finish());
  ASSAY_TRY(imported, import_config(json_of(*config), file));
  model.imported = std::move(imported);
  model.imported.model.id = id;
  model.imported.model.name = name;
  if (!model.note.empty()) model.imported.notes.push_back(model.note);
  return model;
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
      ASSAY_TRY(model, read_model(text, path));
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
  std::error_code failed;
  // "meta-llama/Llama-2-7b-hf" looks like a path; it is one if the file exists or if no model has that name.
  if (is_model_path(text))
    return std::filesystem::exists(std::string(text), failed) || !ModelNames(catalogue).find(text);
  if (text.starts_with('@') || !std::filesystem::is_directory(std::string(text), failed)) return false;
  const auto ids = model_ids(catalogue);
  return std::find(ids.begin(), ids.end(), text) == ids.end();
}

Result<ImportedModel> load_model(std::string_view text, const hardware::Catalogue& catalogue, std::string_view where) {
  if (text.starts_with('@')) {
    ASSAY_TRY(document, hardware::read_file(std::string(text.substr(1)), where));
    ASSAY_TRY(model, read_model(document, text.substr(1)));
    return std::move(model.imported);
  }
  if (names_path(text, catalogue)) {
    ASSAY_TRY(checkpoint, read_checkpoint(std::string(text), where));
    if (checkpoint.imported) return std::move(*checkpoint.imported);
    return fail(std::string(where), fmt::format("{} holds tensors but no configuration", in_quotes(text)),
                "put its config.json in the same directory and give that directory");
  }
  ASSAY_TRY(model, catalogue_model(text, catalogue, where));
  return std::move(model.imported);
}

}  // namespace assay::model
