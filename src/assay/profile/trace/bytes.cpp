#include "assay/profile/trace/bytes.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "assay/base/text.h"

namespace assay::trace {

Result<std::string> file_bytes(const std::string& path, std::string_view where) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed))
    return fail(std::string(where), fmt::format("no file {}", in_quotes(path)),
                "a path is relative to the current directory", Error::Kind::missing);
  const std::uintmax_t size = fs::file_size(path, failed);
  if (static_cast<double>(size) > largest_profile.in(1_B))
    return fail(std::string(where), fmt::format("{} is larger than {}", in_quotes(path), human(largest_profile)),
                "profile fewer steps");
  std::ifstream in(path, std::ios::binary);
  std::string bytes(size, '\0');
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size)))
    return fail(std::string(where), fmt::format("{} cannot be read", in_quotes(path)), "check its permissions");
  return bytes;
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

}  // namespace assay::trace
