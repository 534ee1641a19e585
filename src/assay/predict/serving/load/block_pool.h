// The cache of one replica in pages: sequences hold pages of their own and share blocks of their prompts; blocks that
// nobody holds any more stay until their room is needed, those used longest ago go first.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::serving {

class BlockPool {
 public:
  /// Pages in all, and those of a block; a pool of no pages has room for everything.
  BlockPool(std::int64_t pages, std::int64_t pages_of_a_block) : pages_(pages), per_block_(pages_of_a_block) {}

  /// How many blocks of a path, from the first on, are in the pool.
  std::size_t cached(std::span<const std::int64_t> path) const;
  /// Whether a sequence with this path and so many pages of its own finds room, if all blocks that nobody holds go.
  bool has_room(std::span<const std::int64_t> path, std::int64_t own) const;
  /// Holds the blocks of a path and pages beside them; what was cached counts as held from now on.
  void hold(std::span<const std::int64_t> path, std::int64_t own);
  void release(std::span<const std::int64_t> path, std::int64_t own);
  /// Keeps so many blocks of pages that a sequence had of its own until their room is needed, its last ones first:
  /// their keys count up from `key`, and no path has them.
  void keep(std::int64_t key, std::int64_t blocks);
  /// How many of those, from the first on, are still there, and gives them up.
  std::int64_t take_back(std::int64_t key, std::int64_t blocks);
  std::int64_t kept(std::int64_t key, std::int64_t blocks) const;
  /// Sequences took more pages of their own.
  void grow(std::int64_t own);

  bool is_bounded() const { return pages_ > 0; }
  std::int64_t pages() const { return pages_; }
  /// Pages that sequences hold, and those that are taken, with blocks that nobody holds.
  std::int64_t held() const { return own_ + per_block_ * held_blocks_; }
  std::int64_t taken() const { return own_ + per_block_ * static_cast<std::int64_t>(places_.size()); }
  std::int64_t free_for_sequences() const { return pages_ - held(); }
  std::int64_t evicted() const { return evicted_; }

 private:
  static constexpr std::int32_t none = -1;
  struct Block {
    std::int64_t key = 0;
    std::int64_t holders = 0;
    std::int32_t before = none, after = none;  ///< in the list of those that nobody holds, the oldest first
  };
  void unlink(std::int32_t place);
  void append(std::int32_t place);
  void evict_for_room();
  void forget(std::int32_t place);
  std::int32_t place_of(std::int64_t key);

  std::int64_t pages_, per_block_;
  std::int64_t own_ = 0, held_blocks_ = 0, evicted_ = 0;
  std::vector<Block> blocks_;
  std::vector<std::int32_t> unused_;  ///< places of `blocks_`
  std::unordered_map<std::int64_t, std::int32_t> places_;
  std::int32_t oldest_ = none, newest_ = none;
};

}  // namespace assay::serving
