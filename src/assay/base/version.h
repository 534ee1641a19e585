#pragma once
#include <string_view>

namespace assay {

/// The version of the library, the program and the packages; the build reads it from here.
inline constexpr std::string_view version = "0.1.0";

}  // namespace assay
