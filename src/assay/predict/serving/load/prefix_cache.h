// A cache of prefixes: a trie of blocks of tokens, whose least recently used ends are evicted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "assay/predict/serving/load/request_trace.h"

namespace assay::serving {

class PrefixCache {
 public:
  /// Holds at most this many blocks; without a number, all.
  explicit PrefixCache(std::optional<std::int64_t> blocks) : most_(blocks) {}

  /// How many of these blocks, from the first on, are cached.
  std::int64_t cached(std::span<const std::int64_t> blocks) const;
  /// Uses what is cached, adds the rest, and evicts what was used longest ago; returns what was cached.
  std::int64_t take(std::span<const std::int64_t> blocks);

  std::int64_t size() const { return static_cast<std::int64_t>(used_.size()); }
  std::int64_t evicted() const { return evicted_; }

 private:
  static constexpr int root = -1;
  struct Edge {
    int parent = root;
    std::int64_t block = 0;
    friend bool operator==(const Edge&, const Edge&) = default;
  };
  struct EdgeHash {
    std::size_t operator()(const Edge& edge) const {
      return static_cast<std::size_t>(edge.block) * 0x9e3779b97f4a7c15U ^ static_cast<std::size_t>(edge.parent) << 20;
    }
  };
  struct Node {
    Edge edge;
    std::list<int>::iterator place;
  };

  std::optional<std::int64_t> most_;
  std::unordered_map<Edge, int, EdgeHash> children_;
  std::vector<Node> nodes_;
  std::vector<int> free_;
  /// Most recently used first. A path is touched from its end to its start, so that no node is behind one below it and
  /// the last is always the end of a path.
  std::list<int> used_;
  std::int64_t evicted_ = 0;
};

/// How requests are given to replicas.
enum class PrefixRouting {
  in_turn,
  /// To the replica that has most of the prompt, if that is over half of it; else to the one that computed least.
  by_prefix
};

struct PrefixReplay {
  Tokens prompts, hits;  ///< totals over all requests; the last token of a prompt is always computed
  std::int64_t kept = 0, evicted = 0;
  double share() const { return hits / prompts; }
};
/// Plays all requests in their order on replicas that each hold a given number of blocks.
PrefixReplay replay_prefixes(const RequestTrace& trace, std::optional<std::int64_t> blocks, std::int64_t replicas = 1,
                             PrefixRouting routing = PrefixRouting::in_turn);

/// The trie of all prompts. A node is a run of blocks without a fork.
struct PrefixNode {
  std::optional<std::size_t> parent;
  std::int64_t blocks = 1, requests = 1;
};
/// Parents before children; those that most requests have, at most `most` of them.
std::vector<PrefixNode> prefix_tree(const RequestTrace& trace, std::size_t most);

}  // namespace assay::serving
