// Many profiles at one place: folders, patterns of names, tar files. Only places are listed; nothing is read yet.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"

namespace assay::trace {

/// A file, or a part of one.
struct FilePart {
  std::string path, name;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> size;       ///< nothing: to its end
  std::shared_ptr<const void> keeps = {};  ///< the file, where it has no name
};

/// The profiles that an argument names, in order of their names: of a folder and the folders in it, of a pattern with *
/// and ? in its last part, of a tar file by its members, compressed or not. "-" is standard input, a profile or a tar
/// file. Nothing where it is a single file or no file.
Result<std::optional<std::vector<FilePart>>> listed_profiles(const std::string& argument, std::string_view where);

/// The bytes of a part of a file.
Result<std::string> part_bytes(const FilePart& part);

/// Whether a name fits a pattern with * and ?.
bool fits_pattern(std::string_view name, std::string_view pattern);

}  // namespace assay::trace
