// Names and version numbers of software, as tables write them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace assay::kernel {

struct SoftwareVersion;

/// Whether a text fits a pattern, whole: `*` stands for anything, `{}` for digits with points, which `captured` gets,
/// and a "v" before them. Case does not count, nor which of " -_=@:" stands between words.
bool matches(std::string_view pattern, std::string_view text, std::string_view* captured = nullptr);

/// "2025-05".
bool is_month(std::string_view text);

/// The place of the version with this number, or of the last one before it: "0.12.1" is of 0.12. A date ("2024-12") or
/// a release named by its month ("24.12") means the version of that time. Nothing for other texts, and before the
/// first.
std::optional<std::size_t> version_at(const std::vector<SoftwareVersion>& versions, std::string_view text);

/// The same for a table: no text means the first release of the year, or the last one before it, and a text without a
/// number ("nightly") the last of the year; without a year the newest. What is older than the first version is taken to
/// be like it.
std::size_t release_of(const std::vector<SoftwareVersion>& versions, std::string_view text, std::int64_t year);

}  // namespace assay::kernel
