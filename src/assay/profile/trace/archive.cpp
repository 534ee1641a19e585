#include "assay/profile/trace/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/profile/trace/bytes.h"

namespace assay::trace {
namespace {

namespace fs = std::filesystem;

bool is_profile_name(std::string_view name) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name.ends_with(".json") || name.ends_with(".pb") || name.ends_with(".sqlite");
}

/// XLA writes one run in two formats side by side: the one that says more is taken.
void keep_best(std::vector<FilePart>& parts) {
  const auto is_xplane = [](const FilePart& part) { return part.name.find(".xplane.pb") != std::string::npos; };
  if (std::any_of(parts.begin(), parts.end(), is_xplane))
    parts.erase(std::remove_if(parts.begin(), parts.end(), [&](const FilePart& part) { return !is_xplane(part); }),
                parts.end());
  std::sort(parts.begin(), parts.end(), [](const FilePart& a, const FilePart& b) { return a.path < b.path; });
}

/// A header of a tar file.
constexpr std::size_t block = 512;
using TarHeader = std::array<char, block>;

std::string_view field(const TarHeader& header, std::size_t at, std::size_t size) {
  const std::string_view text(header.data() + at, size);
  return text.substr(0, text.find('\0'));
}

std::optional<std::uint64_t> size_of(const TarHeader& header) {
  std::uint64_t out = 0;
  for (const char c : trim(field(header, 124, 12))) {
    if (c < '0' || c > '7') return std::nullopt;  // larger than 8 GiB, which no profile may be
    out = out * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return out;
}

bool is_tar(const TarHeader& header) { return field(header, 257, 6).starts_with("ustar"); }

/// The name that an extended header gives the next member: "28 path=some/long/name\n".
std::string extended_name(std::string_view records) {
  const std::size_t at = records.find(" path=");
  if (at == std::string_view::npos) return "";
  return std::string(records.substr(at + 6, records.find('\n', at) - at - 6));
}

Result<std::vector<FilePart>> tar_members(std::ifstream& in, const std::string& path) {
  std::vector<FilePart> out;
  std::uint64_t offset = 0;
  std::error_code failed;
  const std::uint64_t whole = fs::file_size(path, failed);
  const auto damaged = [&](std::string_view what) {
    return fail(fmt::format("{}: byte {}", path, offset), std::string(what), "the archive was cut off; copy it again");
  };
  std::string long_name;
  TarHeader header{};
  while (in.seekg(static_cast<std::streamoff>(offset)) && in.read(header.data(), block)) {
    if (header.front() == '\0') return out;  // the end is marked by empty blocks
    const auto size = size_of(header);
    if (!is_tar(header) || !size) return damaged("no header of a member of a tar file stands here");
    if (offset + block + *size > whole) return damaged("the member ends behind the end of the file");
    const char kind = header[156];
    if (kind == 'L' || kind == 'x') {
      constexpr std::uint64_t longest = 1 << 16;
      std::string text(std::min(*size, longest), '\0');
      in.read(text.data(), static_cast<std::streamsize>(text.size()));
      long_name = kind == 'x' ? extended_name(text) : text.substr(0, text.find('\0'));
    } else {
      std::string name(field(header, 345, 155));
      if (!name.empty()) name += '/';
      name += field(header, 0, 100);
      if (!long_name.empty()) name = std::move(long_name);
      long_name.clear();
      if ((kind == '0' || kind == '\0') && is_profile_name(name))
        out.push_back({path, name.substr(name.rfind('/') + 1), offset + block, *size});
    }
    offset += block + (*size + block - 1) / block * block;
  }
  return damaged("the archive ends without its mark");
}

}  // namespace

bool fits_pattern(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == '*') {
    for (std::size_t i = 0; i <= name.size(); ++i)
      if (fits_pattern(name.substr(i), pattern.substr(1))) return true;
    return false;
  }
  return !name.empty() && (pattern.front() == '?' || pattern.front() == name.front()) &&
         fits_pattern(name.substr(1), pattern.substr(1));
}

Result<std::optional<std::vector<FilePart>>> listed_profiles(const std::string& argument, std::string_view where) {
  std::vector<FilePart> out;
  std::error_code failed;
  const auto none = [&](std::string what) {
    return fail(std::string(where), std::move(what),
                "profiles end in .json, .pb or .sqlite, and in .gz behind it where they are compressed");
  };
  if (fs::is_directory(argument, failed)) {
    for (fs::recursive_directory_iterator next(argument, failed), end; next != end; next.increment(failed)) {
      if (failed) break;
      const std::string name = next->path().filename().string();
      if (next->is_regular_file(failed) && is_profile_name(name)) out.push_back({next->path().string(), name, 0, {}});
    }
    if (out.empty()) return none(fmt::format("no profile below {}", in_quotes(argument)));
    keep_best(out);
    return out;
  }
  const bool piped = argument == "-";
  if (!piped && !fs::is_regular_file(argument, failed)) {
    const fs::path path(argument);
    const std::string pattern = path.filename().string();
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (pattern.find_first_of("*?") == std::string::npos || !fs::is_directory(folder, failed)) return std::nullopt;
    for (fs::directory_iterator next(folder, failed), end; next != end; next.increment(failed)) {
      if (failed) break;
      const std::string name = next->path().filename().string();
      if (next->is_regular_file(failed) && fits_pattern(name, pattern))
        out.push_back({next->path().string(), name, 0, {}});
    }
    if (out.empty()) return none(fmt::format("no file fits {}", in_quotes(argument)));
    keep_best(out);
    return out;
  }
  SpooledFile file{nullptr, argument};
  if (piped || argument.ends_with(".tar.gz") || argument.ends_with(".tgz"))
    ASSAY_SET(file, spooled(piped ? "/dev/stdin" : argument, where));
  std::ifstream in(file.path, std::ios::binary);
  TarHeader header{};
  if (!in.read(header.data(), block) || !is_tar(header)) {
    if (piped) out.push_back({file.path, "standard input", 0, {}, file.keeps});
    return piped ? std::optional(std::move(out)) : std::nullopt;
  }
  ASSAY_SET(out, tar_members(in, file.path));
  if (out.empty()) return none(fmt::format("no profile in {}", in_quotes(argument)));
  for (FilePart& part : out) part.keeps = file.keeps;
  return out;
}

Result<std::string> part_bytes(const FilePart& part) {
  if (!part.size) return file_bytes(part.path, "FILE");
  if (static_cast<double>(*part.size) > largest_profile.in(1_B))
    return fail(part.name, fmt::format("the member is larger than {}", human(largest_profile)), "profile fewer steps");
  std::ifstream in(part.path, std::ios::binary);
  std::string out(*part.size, '\0');
  if (!in.seekg(static_cast<std::streamoff>(part.offset)) ||
      !in.read(out.data(), static_cast<std::streamsize>(out.size())))
    return fail(part.name, fmt::format("{} cannot be read", in_quotes(part.path)), "the archive changed; ask again");
  return out;
}

}  // namespace assay::trace
