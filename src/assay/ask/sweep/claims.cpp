#include "assay/ask/sweep/claims.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace assay::sweep {

std::string Claims::folder(const std::string& directory, const Ranks& ranks) {
  std::string name;
  for (const char c : ranks.launch)
    name += (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? c : '-';
  return fmt::format("{}/claims-{}", directory, name);
}

Claims::Claims(std::string directory, const Ranks& ranks, std::size_t count)
    : folder_(folder(directory, ranks)), count_(count), alone_(ranks.count <= 1) {
  // Small enough that ranks end together, and large enough that they seldom ask for more.
  constexpr std::size_t parts_per_rank = 64, largest = 64;
  const auto all = static_cast<std::size_t>(std::max(ranks.count, 1));
  part_size_ = alone_ ? 1 : std::clamp<std::size_t>(count / (all * parts_per_rank), 1, largest);
  parts_ = (count + part_size_ - 1) / part_size_;
  start_ = parts_ * static_cast<std::size_t>(ranks.rank) / all;
  std::error_code failed;  // seen when a part cannot be taken
  if (!alone_) std::filesystem::create_directories(folder_, failed);
}

bool Claims::take(std::size_t part) const {
  if (alone_) return true;
  const int file = ::open(fmt::format("{}/{}", folder_, part).c_str(), O_CREAT | O_EXCL | O_WRONLY, 0666);
  if (file >= 0) ::close(file);
  return file >= 0 || errno != EEXIST;  // where no claim can be made, work is done twice rather than not at all
}

std::optional<std::pair<std::size_t, std::size_t>> Claims::next() {
  while (looked_at_ < parts_) {
    const std::size_t part = (start_ + looked_at_++) % parts_;
    if (take(part)) return std::pair(part * part_size_, std::min((part + 1) * part_size_, count_));
  }
  return std::nullopt;
}

}  // namespace assay::sweep
