// Models of the catalogue: published models with their configurations, sources and parameter totals.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/model/accounting.h"
#include "assay/model/import/config_import.h"

namespace assay::model {

/// A total as published: exact, or rounded to `half_unit` on either side.
struct PublishedTotal {
  enum class Scope { all, without_embedding, without_norms };

  double value = 0.0, half_unit = 0.0;
  Scope scope = Scope::all;
  double outside = 0.0;  ///< part of `value` outside the language model: a vision tower
  std::string outside_what;
  std::string text;    ///< as in the file: "8,030,261,248", "175 B", "~22 B" where it is only a name
  std::string source;  ///< "models/llama-3-8b.toml:4 (card)"
};

/// One file of catalogue/models.
struct CatalogueModel {
  std::string maker, note;
  std::vector<hardware::SourceEntry> sources;
  PublishedTotal published;
  ImportedModel imported;  ///< its `model` has the file's id and name
};

/// The counterpart of a published total among our counts.
std::int64_t comparable_total(const ParameterCounts& counts, PublishedTotal::Scope scope);
/// Whether our count matches the published one, to its stated precision.
bool agrees(const PublishedTotal& published, const ParameterCounts& counts);

/// Reads the text of a model file with its base, which the catalogue has; reports all faults at once. A user's own
/// file, one that is not built in, may leave out sources and published totals.
Result<CatalogueModel> read_model(std::string_view document, std::string_view file, bool own,
                                  const hardware::Catalogue& catalogue);

std::vector<std::string> model_ids(const hardware::Catalogue& catalogue);
/// By id or alias (a note then says so); an unknown name is an error that lists the nearest names.
Result<CatalogueModel> catalogue_model(std::string_view id, const hardware::Catalogue& catalogue,
                                       std::string_view where);

/// Whether a command-line word is a path: by its form (is_model_path), or because it is not an id and such a directory
/// exists.
bool names_path(std::string_view text, const hardware::Catalogue& catalogue);

/// An id or alias of the catalogue, or @file.toml in its format.
Result<CatalogueModel> named_model(std::string_view text, const hardware::Catalogue& catalogue, std::string_view where);

/// The error of --as with a model that has an architecture of its own; nothing without --as.
Result<void> check_as(std::string_view as);

/// Resolves `MODEL` on a command line: an id of the catalogue, a config.json, @file.toml in the catalogue's format,
/// a directory with a config.json, or a GGUF file. `where` names the argument in errors. `as` is the
/// model type to read a configuration as.
Result<ImportedModel> load_model(std::string_view text, const hardware::Catalogue& catalogue, std::string_view where,
                                 std::string_view as = {});

}  // namespace assay::model
