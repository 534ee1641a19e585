#include "assay/predict/serving/load/block_pool.h"

#include "assay/base/index.h"

namespace assay::serving {

std::size_t BlockPool::cached(std::span<const std::int64_t> path) const {
  std::size_t found = 0;
  while (found < path.size() && places_.contains(path[found])) ++found;
  return found;
}

bool BlockPool::has_room(std::span<const std::int64_t> path, std::int64_t own) const {
  if (!is_bounded()) return true;
  std::int64_t more = own;
  for (const std::int64_t key : path) {
    const auto place = places_.find(key);
    if (place == places_.end() || blocks_[at(place->second)].holders == 0) more += per_block_;
  }
  return held() + more <= pages_;
}

void BlockPool::unlink(std::int32_t place) {
  Block& block = blocks_[at(place)];
  (block.before == none ? oldest_ : blocks_[at(block.before)].after) = block.after;
  (block.after == none ? newest_ : blocks_[at(block.after)].before) = block.before;
  block.before = block.after = none;
}

void BlockPool::append(std::int32_t place) {
  Block& block = blocks_[at(place)];
  block.before = newest_;
  block.after = none;
  (newest_ == none ? oldest_ : blocks_[at(newest_)].after) = place;
  newest_ = place;
}

void BlockPool::evict_for_room() {
  while (is_bounded() && oldest_ != none && taken() > pages_) {
    forget(oldest_);
    ++evicted_;
  }
}

void BlockPool::forget(std::int32_t place) {
  unlink(place);
  places_.erase(blocks_[at(place)].key);
  unused_.push_back(place);
}

/// The place of a block that is not in the pool yet.
std::int32_t BlockPool::place_of(std::int64_t key) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::int32_t>(blocks_.size()));
    blocks_.emplace_back();
  }
  const std::int32_t place = unused_.back();
  unused_.pop_back();
  blocks_[at(place)] = {key, 0, none, none};
  return place;
}

void BlockPool::keep(std::int64_t key, std::int64_t blocks) {
  for (std::int64_t i = blocks - 1; i >= 0; --i) append(places_[key + i] = place_of(key + i));
  evict_for_room();
}

std::int64_t BlockPool::kept(std::int64_t key, std::int64_t blocks) const {
  std::int64_t found = 0;
  while (found < blocks && places_.contains(key + found)) ++found;
  return found;
}

std::int64_t BlockPool::take_back(std::int64_t key, std::int64_t blocks) {
  const std::int64_t found = kept(key, blocks);
  for (std::int64_t i = 0; i < blocks; ++i)
    if (const auto place = places_.find(key + i); place != places_.end()) forget(place->second);
  return found;
}

void BlockPool::hold(std::span<const std::int64_t> path, std::int64_t own) {
  for (const std::int64_t key : path) {
    auto [known, is_new] = places_.try_emplace(key, none);
    if (is_new) {
      known->second = place_of(key);
    } else if (blocks_[at(known->second)].holders == 0) {
      unlink(known->second);
    }
    if (blocks_[at(known->second)].holders++ == 0) ++held_blocks_;
  }
  own_ += own;
  evict_for_room();
}

void BlockPool::release(std::span<const std::int64_t> path, std::int64_t own) {
  // The end of a prompt goes before its beginning, which more prompts share.
  for (std::size_t i = path.size(); i > 0; --i) {
    const std::int32_t place = places_.at(path[i - 1]);
    if (--blocks_[at(place)].holders > 0) continue;
    --held_blocks_;
    append(place);
  }
  own_ -= own;
}

void BlockPool::grow(std::int64_t own) {
  own_ += own;
  evict_for_room();
}

}  // namespace assay::serving
