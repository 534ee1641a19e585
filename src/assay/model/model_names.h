// The names of the models of the catalogue: ids, aliases, and repositories on Hugging Face.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "assay/hardware/catalogue.h"

namespace assay::model {

/// The id of a file of the catalogue: "llama-3-8b" of "models/llama-3-8b.toml".
std::string model_id(std::string_view path);

/// All names of a catalogue's models. Build it once to look up many names.
class ModelNames {
 public:
  explicit ModelNames(const hardware::Catalogue& catalogue);

  /// The id of the model with that name. Ignores case, spaces, dashes and underscores
  /// except between digits, and an "-Instruct" or "-hf" at the end: "LLAMA3_70B".
  std::optional<std::string> find(std::string_view name) const;
  /// The longest name within a path or a name with more words, e.g. of a fine-tuned or quantised copy:
  /// "/models/Llama-3.3-70B-Instruct-FP8". Words in the middle of a name never count as more.
  std::optional<std::string> find_within(std::string_view text) const;

 private:
  void add(std::string_view name, const std::string& id);

  std::map<std::string, std::string> ids_;  ///< by name as plain_name() writes it
};

}  // namespace assay::model
