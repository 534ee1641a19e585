#include "assay/hardware/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "assay/base/text.h"
#include "assay/hardware/embedded.h"

namespace assay::hardware {

Catalogue Catalogue::builtin() {
  Catalogue catalogue;
  for (const EmbeddedFile& file : embedded_catalogue())
    catalogue.files_.emplace_hint(catalogue.files_.end(), file.path, File{file.text, {}, 0});
  return catalogue;
}

std::string catalogue_date() {
  std::string_view latest;
  for (const EmbeddedFile& file : embedded_catalogue()) latest = std::max(latest, file.accessed);
  return std::string(latest);
}

Result<void> Catalogue::overlay(const std::string& directory, std::string_view where) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_directory(directory, failed))
    return fail(std::string(where), fmt::format("{} is not a directory", in_quotes(directory)),
                "give a directory with chips/ID.toml files");
  std::vector<fs::path> found;
  for (auto it = fs::recursive_directory_iterator(directory, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed))
    if (it->is_regular_file(failed) && it->path().extension() == ".toml") found.push_back(it->path());
  if (failed)
    return fail(std::string(where), fmt::format("{} cannot be read: {}", in_quotes(directory), failed.message()), "");
  if (found.empty())
    return fail(std::string(where), fmt::format("{} holds no .toml file", in_quotes(directory)),
                "a chip is DIR/chips/ID.toml");
  std::sort(found.begin(), found.end());
  ++layers_;
  for (const fs::path& path : found) {
    ASSAY_TRY(text, read_file(path.string(), where));
    std::string name = fs::relative(path, directory, failed).generic_string();
    if (name.find('/') == std::string::npos) name = "chips/" + name;
    files_[name] = {{}, std::move(text), layers_};
  }
  read_.clear();
  return {};
}

std::vector<std::string> Catalogue::chip_ids() const {
  std::vector<std::string> ids;
  for (const auto& [path, text] : files("chips/")) ids.push_back(path.substr(6, path.size() - 6 - 5));
  return ids;
}

bool Catalogue::has_chip(std::string_view id) const { return files_.contains(fmt::format("chips/{}.toml", id)); }

Result<Chip> Catalogue::chip(std::string_view id, std::string_view where,
                             const std::vector<Override>& overrides) const {
  const auto file = files_.find(fmt::format("chips/{}.toml", id));
  if (file != files_.end()) {
    const auto read = [&](const std::vector<Override>& changes) -> Result<Chip> {
      ASSAY_TRY(root, parse_toml(file->second.text(), file->first));
      return load_chip(std::move(root), file->first, file->second.layer > 0, *this, changes);
    };
    if (!overrides.empty()) return read(overrides);
    ASSAY_TRY(chip, kept<Chip>(file->first, [&] { return read({}); }));
    return *chip;
  }
  if (id == "host")
    return fail(std::string(where), "this machine is not in the catalogue",
                "`assay measure` measures it, in about a minute; or give --on @my-machine.toml", Error::Kind::missing);
  const auto ids = chip_ids();
  const auto near = nearest(id, ids);
  return fail(std::string(where), fmt::format("unknown chip {}", in_quotes(id)),
              near.empty() ? "`assay chips` lists them" : suggestion(id, ids), Error::Kind::missing);
}

std::vector<std::pair<std::string, std::string_view>> Catalogue::files(std::string_view prefix) const {
  std::vector<std::pair<std::string, std::string_view>> found;
  for (auto it = files_.lower_bound(prefix); it != files_.end() && it->first.starts_with(prefix); ++it)
    found.emplace_back(it->first, it->second.text());
  return found;
}

int Catalogue::layer(std::string_view path) const {
  const auto file = files_.find(path);
  return file == files_.end() ? 0 : file->second.layer;
}

Catalogue Catalogue::replaced_from(std::string_view prefix) const {
  Catalogue out = *this;
  for (auto it = files_.lower_bound(prefix); it != files_.end() && it->first.starts_with(prefix); ++it) {
    File& at_root = out.files_[it->first.substr(prefix.size())];
    if (at_root.layer <= it->second.layer) at_root = it->second;
  }
  return out;
}

const Catalogue& Catalogue::fitted_without(const std::string& prefix) const {
  return **kept<Catalogue>(prefix, [&]() -> Result<Catalogue> { return replaced_from(prefix); });
}

Result<std::string> read_file(const std::string& path, std::string_view where, const FileLimits& limits) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed))
    return fail(std::string(where), fmt::format("no file {}", in_quotes(path)), std::string(limits.missing),
                Error::Kind::missing);
  const std::uintmax_t size = fs::file_size(path, failed);
  if (Bytes(static_cast<double>(size)) > limits.most)
    return fail(std::string(where), fmt::format("{} is larger than {}", in_quotes(path), human(limits.most)),
                std::string(limits.larger));
  std::ifstream in(path, std::ios::binary);
  std::string text(failed ? 0 : size, '\0');
  if (failed || !in.read(text.data(), static_cast<std::streamsize>(text.size())))
    return fail(std::string(where), fmt::format("{} cannot be read", in_quotes(path)), "check its permissions");
  return text;
}

}  // namespace assay::hardware
