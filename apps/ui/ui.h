// `assay ui`: the page in a browser, and the engine over HTTP.
#pragma once
#include <span>
#include <string>

#include "assay/assay.h"
#include "assay/base/result.h"

namespace assay::ui {

/// Serves as the words after `ui` say, until it is told to stop. `catalogues` overlay the one that is compiled in;
/// requests may name no files.
Result<void> run(std::span<const std::string> words, std::vector<std::string> catalogues);

}  // namespace assay::ui
