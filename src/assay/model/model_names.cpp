#include "assay/model/model_names.h"

#include <vector>

#include "assay/base/text.h"
#include "assay/base/toml.h"

namespace assay::model {
namespace {

constexpr std::string_view folder = "models/", ending = ".toml";
constexpr std::string_view hub = "https://huggingface.co/";

}  // namespace

std::string model_id(std::string_view path) {
  return std::string(path.substr(folder.size(), path.size() - folder.size() - ending.size()));
}

void ModelNames::add(std::string_view name, const std::string& id) { ids_.emplace(plain_name(name), id); }

ModelNames::ModelNames(const hardware::Catalogue& catalogue) {
  const auto files = catalogue.files(folder);
  for (const auto& [path, text] : files) add(model_id(path), model_id(path));  // ids take precedence over aliases
  for (const auto& [path, text] : files) {
    const auto root = parse_toml(text, path);
    if (!root) continue;  // read_model reports the fault
    const std::string id = model_id(path);
    if (const Toml* aliases = root->find("aliases"))
      for (const Toml& alias : aliases->items) add(alias.text, id);
    // Only the model's own page, under `card`: other pages may be about a larger model that contains it.
    const Toml* sources = root->find("source");
    const Toml* card = sources ? sources->find("card") : nullptr;
    if (const Toml* url = card ? card->find("url") : nullptr; url && url->text.starts_with(hub))
      add(std::string_view(url->text).substr(hub.size()), id);
  }
}

std::optional<std::string> ModelNames::find(std::string_view name) const {
  std::string known = plain_name(name);
  auto found = ids_.find(known);
  // Fine-tuned models have the same shape.
  for (const std::string_view end : {"instruct", "hf"})
    if (found == ids_.end() && known.ends_with(end)) {
      known.resize(known.size() - end.size());
      found = ids_.find(known);
    }
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> ModelNames::find_within(std::string_view text) const {
  std::string plain(text);
  const auto is_digit = [&](std::size_t at) { return plain[at] >= '0' && plain[at] <= '9'; };
  for (std::size_t i = 1; i + 1 < plain.size(); ++i)  // llama3p1_8b: a point as names of files have it
    if (plain[i] == 'p' && is_digit(i - 1) && is_digit(i + 1)) plain[i] = '.';
  for (std::size_t at = plain.find("--"); at != std::string::npos; at = plain.find("--")) plain.replace(at, 2, "/");
  const std::vector<std::string> parts = split(plain, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    std::vector<std::string> words;
    for (const char c : *part)
      if (words.empty() || c == '-' || c == '_' || c == ' ')
        words.emplace_back(words.empty() ? std::string(1, c) : "");
      else
        words.back() += c;
    const auto digits = [](const std::string& word) {
      return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    };
    for (std::size_t count = words.size(); count > 0; --count)
      for (std::size_t first = 0; first + count <= words.size(); ++first) {
        std::string name;  // llama3_1_405b: a version whose point is a dash
        for (std::size_t i = first; i < first + count; ++i) {
          const bool point = i > first && digits(words[i]) && !words[i - 1].empty() &&
                             digits(words[i - 1].substr(words[i - 1].size() - 1)) && i + 1 < first + count;
          name += (i == first ? "" : point ? "." : "-") + words[i];
        }
        std::string dashes = words[first];
        for (std::size_t i = first + 1; i < first + count; ++i) dashes += "-" + words[i];
        for (const std::string& one : {dashes, name})
          if (const auto found = find(one); found && one.find_first_of("0123456789") != std::string::npos) return found;
      }
  }
  return std::nullopt;
}

}  // namespace assay::model
