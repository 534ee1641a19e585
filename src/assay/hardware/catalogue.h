// The catalogue: data files compiled into the binary, and a user's own files that override them.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/parallel_cache.h"
#include "assay/base/result.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/prices.h"

namespace assay::hardware {

/// Data files by their path below catalogue/, e.g. "chips/h100-sxm.toml". Files are parsed on request.
class Catalogue {
 public:
  /// The catalogue of the files compiled in.
  static Catalogue builtin();

  /// Adds every .toml file below `directory`, replacing files of the same path; `chips/ID.toml` or plain `ID.toml`.
  /// `where` names the option in errors.
  Result<void> overlay(const std::string& directory, std::string_view where = "--catalogue");

  /// Adds or replaces one file.
  void put(std::string path, std::string text) {
    files_[std::move(path)] = {{}, std::move(text), ++layers_};
    read_.clear();
  }

  /// Prices all chips by this choice from now on.
  void choose_prices(PriceChoice choice) {
    prices_ = std::move(choice);
    read_.clear();
  }
  const PriceChoice& prices() const { return prices_; }

  /// From now on looks names up in the catalogue alone: none is read from a path.
  void close_files() { reads_files_ = false; }
  bool reads_files() const { return reads_files_; }

  std::vector<std::string> chip_ids() const;
  bool has_chip(std::string_view id) const;
  Result<Chip> chip(std::string_view id, std::string_view where, const std::vector<Override>& overrides = {}) const;

  /// A copy in which each file below `prefix` replaces the file of the same name at the root, unless that was overlaid
  /// later.
  Catalogue replaced_from(std::string_view prefix) const;

  /// A replaced_from() that is made once: the catalogue whose numbers were fitted without some of the measurements.
  const Catalogue& fitted_without(const std::string& prefix) const;

  /// What `read` makes of the files, made once and kept until a file changes; `key` names it.
  template <class T, class Read>
  Result<const T*> kept(const std::string& key, Read read) const {
    return read_.get<T>(key, read);
  }

  /// The overlay that provided a file, counted from 1; 0: compiled in, or no such file.
  int layer(std::string_view path) const;
  /// All files whose path starts with `prefix`, ordered by path.
  std::vector<std::pair<std::string, std::string_view>> files(std::string_view prefix) const;

 private:
  struct File {
    std::string_view compiled_in;
    std::string added;
    int layer = 0;  ///< 0: compiled in; then in the order of the overlays
    std::string_view text() const { return layer > 0 ? std::string_view(added) : compiled_in; }
  };
  std::map<std::string, File, std::less<>> files_;
  int layers_ = 0;
  PriceChoice prices_;
  bool reads_files_ = true;
  mutable ParallelCache read_;
};

/// Reads a chip file with its base, which the catalogue has; `users`: it is not one of the built-in files.
Result<Chip> load_chip(Toml own, std::string_view file, bool users, const Catalogue& catalogue,
                       const std::vector<Override>& overrides = {});

/// How large a file may be, and what to do about a larger or a missing one.
struct FileLimits {
  Bytes most = 1_MiB;
  std::string_view larger = "a catalogue file is small text", missing = "a path is relative to the current directory";
};
/// What a file holds; `where` names the flag or argument it came from.
Result<std::string> read_file(const std::string& path, std::string_view where, const FileLimits& limits = {});

}  // namespace assay::hardware
