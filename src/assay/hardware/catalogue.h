// The catalogue: chip files compiled into the binary, and a user's own files laid over them.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/chip.h"

namespace assay::hardware {

/// Data files by their path below catalogue/, e.g. "chips/h100-sxm.toml". Files are parsed when asked for.
class Catalogue {
 public:
  /// What is compiled in.
  static Catalogue builtin();

  /// Lays every .toml file below `directory` over what is there; `chips/ID.toml` or plain `ID.toml`.
  /// `where` names what asked for it, in errors.
  Result<void> overlay(const std::string& directory, std::string_view where = "--catalogue");

  /// Lays one file over.
  void put(std::string path, std::string text) { files_[std::move(path)] = {std::move(text), ++layers_}; }

  std::vector<std::string> chip_ids() const;
  Result<Chip> chip(std::string_view id, std::string_view where, const std::vector<Override>& overrides = {}) const;

  /// The same with each file below `prefix` in the place of the one of that name at the root, but for those that were
  /// laid over it later.
  Catalogue replaced_from(std::string_view prefix) const;

  /// The overlay that a file came with, counted from 1; 0: compiled in, or no such file.
  int layer(std::string_view path) const;
  /// All files whose path starts with `prefix`, in order of path.
  std::vector<std::pair<std::string, std::string_view>> files(std::string_view prefix) const;

 private:
  struct File {
    std::string text;
    int layer = 0;  ///< 0: compiled in; then in the order of the overlays
  };
  std::map<std::string, File, std::less<>> files_;
  int layers_ = 0;
};

/// The whole of a text file of at most 1 MiB; `where` names the flag or argument it came from.
Result<std::string> read_file(const std::string& path, std::string_view where);

}  // namespace assay::hardware
