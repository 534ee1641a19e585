// Prefixes that prompts share, and what caches of them hit: a trie of blocks of tokens, of which a cache evicts the
// least recently used ends.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "assay/predict/serving/load/request_trace.h"

namespace assay::serving {

/// A run of blocks without a fork.
struct PrefixNode {
  std::optional<std::size_t> parent;
  std::int64_t blocks = 1, requests = 1;
};

/// The prompts of a trace as paths in one trie: prompts have a node in common as far as they begin alike.
class PrefixTrie {
 public:
  explicit PrefixTrie(const RequestTrace& trace);

  std::size_t requests() const { return prompts_.size(); }
  std::span<const int> path(std::size_t request) const {
    return std::span(paths_).subspan(ends_[request], ends_[request + 1] - ends_[request]);
  }
  std::int64_t prompt(std::size_t request) const { return prompts_[request]; }  ///< tokens
  std::int64_t block() const { return block_; }                                 ///< tokens
  std::int64_t size() const { return std::ssize(parents_); }                    ///< distinct blocks
  /// Tokens of a prompt in its first blocks that a cache may have: the last token of a prompt is always computed.
  std::int64_t cached_tokens(std::size_t request, std::size_t blocks) const {
    return std::min(static_cast<std::int64_t>(blocks) * block_, prompts_[request] - 1);
  }
  /// The trie in runs, parents before children; those that most requests have, at most `most` of them.
  std::vector<PrefixNode> runs(std::size_t most) const;

 private:
  std::int64_t block_;
  std::vector<std::int64_t> prompts_;
  std::vector<int> parents_;  ///< of each node; -1 above the first block
  std::vector<int> paths_;    ///< nodes of all prompts, one behind the other
  std::vector<std::size_t> ends_{0};
};

struct PrefixReplay {
  Tokens prompts, hits;  ///< totals over all requests
  std::int64_t kept = 0, evicted = 0;
  double share() const { return hits / prompts; }
};

/// What caches of all sizes hit, from one pass over the requests in their order. The blocks that a cache of any size
/// holds are the first ones of a list by the time of their last use, so a block is hit by all caches that reach its
/// place in it (Mattson et al., "Evaluation techniques for storage hierarchies", 1970).
class PrefixReuse {
 public:
  explicit PrefixReuse(const PrefixTrie& trie);

  /// A cache of so many blocks; without a number, of all.
  PrefixReplay with(std::optional<std::int64_t> blocks) const;

 private:
  std::int64_t prompts_ = 0, taken_ = 0;             ///< tokens of all prompts; blocks of all prompts
  std::vector<std::int64_t> tokens_{0}, blocks_{0};  ///< that a cache of 0, 1, 2, ... blocks hits
};

/// How requests are given to replicas.
enum class PrefixRouting {
  in_turn,
  /// To the replica that has most of the prompt, if that is over half of it; else to the one that computed least.
  by_prefix
};

/// Plays all requests in their order on replicas that each hold a given number of blocks; without a number, all.
PrefixReplay replay_prefixes(const PrefixTrie& trie, std::optional<std::int64_t> blocks, std::int64_t replicas,
                             PrefixRouting routing);

}  // namespace assay::serving
