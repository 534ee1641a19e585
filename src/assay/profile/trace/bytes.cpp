#include "assay/profile/trace/bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"

namespace assay::trace {
namespace {

constexpr hardware::FileLimits profile_limits{largest_profile, "profile fewer steps"};

}  // namespace

Result<std::string> file_bytes(const std::string& path, std::string_view where) {
  return hardware::read_file(path, where, profile_limits);
}

Result<MappedFile> MappedFile::open(const std::string& path, std::string_view where) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  // What is missing, empty or too large is refused by the reader of all files.
  if (failed || size == 0 || Bytes(static_cast<double>(size)) > largest_profile) {
    ASSAY_CHECK(file_bytes(path, where));
    return MappedFile(std::string_view());
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const start = file < 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (file >= 0) ::close(file);
  if (start == MAP_FAILED)
    return fail(std::string(where), fmt::format("{} cannot be read", in_quotes(path)), "check its permissions");
  return MappedFile({static_cast<const char*>(start), size});
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void MappedFile::drop(std::size_t bytes) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  ::madvise(const_cast<char*>(bytes_.data()), std::min(bytes, bytes_.size()) / page * page, MADV_DONTNEED);
}

}  // namespace assay::trace
