// The names under which people know the models of the catalogue: ids, aliases, and repositories on Hugging Face.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "assay/hardware/catalogue.h"

namespace assay {

/// The id of a file of the catalogue: "llama-3-8b" of "models/llama-3-8b.toml".
std::string model_id(std::string_view path);

/// All names of a catalogue's models. Reading it once pays where many names are looked up.
class ModelNames {
 public:
  explicit ModelNames(const Catalogue& catalogue);

  /// The id of the model that is called exactly so, but for upper and lower case.
  std::optional<std::string> exact(std::string_view name) const;
  /// The same where spaces, dashes and underscores do not matter either, as tables of measurements write names:
  /// "LLAMA3_70B".
  std::optional<std::string> find(std::string_view name) const;

 private:
  void add(std::string_view name, const std::string& id);

  std::map<std::string, std::string> exact_, plain_;  ///< ids by name, in lower case and as plain() writes it
};

}  // namespace assay
