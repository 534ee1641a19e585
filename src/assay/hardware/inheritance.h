// Files that say what differs from another one: base = "h100-sxm" and their own values.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/toml.h"

namespace assay::hardware {

class Catalogue;

/// A tree whose bases, if any, are merged in: its own values replace theirs, table by table; a list is replaced whole.
/// `folder` is where bases are found in the catalogue, "chips/"; `left_out` are keys that are not inherited. Values
/// of a base carry its file. The error of an unknown base lists the nearest names, that of a cycle the names in it.
Result<Toml> with_bases(Toml own, std::string_view file, std::string_view folder, const Catalogue& catalogue,
                        const std::vector<std::string>& left_out);

/// The id of a file: "my-chip" of "../chips/my-chip.toml".
std::string file_stem(std::string_view file);

}  // namespace assay::hardware
