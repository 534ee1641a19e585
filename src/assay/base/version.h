#pragma once
#include <string_view>

namespace assay {

/// The version of the library, the program and the packages; the build reads it from here.
inline constexpr std::string_view version = "0.1.0";

/// The commit that was built, with + where the sources were changed since; empty where it is not known. The build
/// writes the definition.
std::string_view commit();

}  // namespace assay
