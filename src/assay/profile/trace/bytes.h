// Bytes of profiles: from files, and out of gzip.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "assay/base/result.h"
#include "assay/base/units.h"

namespace assay::trace {

/// Profiles are large, but a small file that inflates to more than this is an attack or a mistake.
inline constexpr Bytes largest_profile = 8_GiB;
/// What comes with a request is inflated in the memory of the process that answers it, which has a limit.
inline constexpr Bytes largest_attached = 1_GiB;

/// What a file holds.
Result<std::string> file_bytes(const std::string& path, std::string_view where);

/// What a file holds, read as it is looked at. Whoever cuts the file off meanwhile ends the program.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path, std::string_view where);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::string_view bytes() const { return bytes_; }
  /// Frees the memory of the first so many bytes; looked at again, they are read again.
  void drop(std::size_t bytes) const;

 private:
  explicit MappedFile(std::string_view bytes) : bytes_(bytes) {}
  std::string_view bytes_;
};

inline bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }
/// The content of gzip bytes, of all members; `file` is for errors. Of folder zlib/, or of its twin where there is no
/// zlib.
Result<std::string> inflated(std::string_view bytes, std::string_view file, Bytes largest = largest_profile);

/// A file without a name, which goes when nobody holds it any more.
struct SpooledFile {
  std::shared_ptr<const void> keeps;
  std::string path;
};
/// What a file or a pipe holds, inflated where it is compressed, outside of memory.
Result<SpooledFile> spooled(const std::string& path, std::string_view where);

}  // namespace assay::trace
