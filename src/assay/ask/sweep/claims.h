// How the ranks of one launch share the requests of a sweep, through files of a directory that all of them see.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "assay/ask/sweep/ranks.h"

namespace assay::sweep {

/// Parts of a list, each given to one rank: first those of its own block, then what others have not begun. A part is
/// taken by making a file that must not exist, which also holds between machines.
class Claims {
 public:
  Claims(std::string directory, const Ranks& ranks, std::size_t count);

  /// The next part as [first, second); nothing once all are taken. One thread at a time.
  std::optional<std::pair<std::size_t, std::size_t>> next();

  static std::string folder(const std::string& directory, const Ranks& ranks);

 private:
  bool take(std::size_t part) const;

  std::string folder_;
  std::size_t count_, part_size_, parts_, start_, looked_at_ = 0;
  bool alone_;
};

}  // namespace assay::sweep
