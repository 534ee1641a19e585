#include "assay/model/model_names.h"

#include "assay/base/toml.h"

namespace assay {
namespace {

std::string lower(std::string_view name) {
  std::string out(name);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string plain(std::string_view name) {
  std::string out = lower(name);
  std::erase_if(out, [](char c) { return c == ' ' || c == '-' || c == '_'; });
  return out;
}

std::optional<std::string> looked_up(const std::map<std::string, std::string>& ids, const std::string& name) {
  const auto found = ids.find(name);
  if (found == ids.end()) return std::nullopt;
  return found->second;
}

constexpr std::string_view folder = "models/", ending = ".toml";
constexpr std::string_view hub = "https://huggingface.co/";

}  // namespace

std::string model_id(std::string_view path) {
  return std::string(path.substr(folder.size(), path.size() - folder.size() - ending.size()));
}

void ModelNames::add(std::string_view name, const std::string& id) {
  exact_.emplace(lower(name), id);
  plain_.emplace(plain(name), id);
}

ModelNames::ModelNames(const Catalogue& catalogue) {
  const auto files = catalogue.files(folder);
  for (const auto& [path, text] : files) add(model_id(path), model_id(path));  // an id goes before an alias
  for (const auto& [path, text] : files) {
    const auto root = parse_toml(text, path);
    if (!root) continue;  // read_model tells what is wrong with it
    const std::string id = model_id(path);
    if (const Toml* aliases = root->find("aliases"))
      for (const Toml& alias : aliases->items) add(alias.text, id);
    if (const Toml* sources = root->find("source"))
      for (const auto& [key, source] : sources->members)
        if (const Toml* url = source.find("url"); url && url->text.starts_with(hub))
          add(std::string_view(url->text).substr(hub.size()), id);
  }
}

std::optional<std::string> ModelNames::exact(std::string_view name) const { return looked_up(exact_, lower(name)); }

std::optional<std::string> ModelNames::find(std::string_view name) const { return looked_up(plain_, plain(name)); }

}  // namespace assay
