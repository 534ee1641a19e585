#include "assay/predict/serving/load/prefix_cache.h"

#include <map>
#include <utility>

namespace assay::serving {
namespace {

constexpr int nothing = -1;

/// Numbers by pairs of numbers, in one array.
class PairTable {
 public:
  /// The place of a pair's number, which is `nothing` until it is set.
  int& operator[](std::pair<std::int64_t, int> key) {
    if (2 * used_ >= slots_.size()) grow();
    Slot& slot = slots_[place(slots_, key)];
    if (slot.key.second == free) slot.key = key, ++used_;
    return slot.value;
  }
  int find(std::pair<std::int64_t, int> key) const { return slots_[place(slots_, key)].value; }

 private:
  static constexpr int free = -2;
  struct Slot {
    std::pair<std::int64_t, int> key{0, free};
    int value = nothing;
  };

  static std::size_t place(const std::vector<Slot>& slots, std::pair<std::int64_t, int> key) {
    std::uint64_t hash =
        (static_cast<std::uint64_t>(key.first) + static_cast<std::uint64_t>(key.second) * 0x9e3779b97f4a7c15U) *
        0xd6e8feb86659fd93U;
    hash ^= hash >> 32;
    std::size_t at = hash & (slots.size() - 1);
    while (slots[at].key.second != free && slots[at].key != key) at = (at + 1) & (slots.size() - 1);
    return at;
  }
  void grow() {
    const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(4 * slots_.size()));
    for (const Slot& slot : before)
      if (slot.key.second != free) slots_[place(slots_, slot.key)] = slot;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::size_t used_ = 0;
};

/// Sums of numbers that change, in logarithmic time (Fenwick, 1994).
class RunningSums {
 public:
  explicit RunningSums(std::size_t count) : sums_(count + 1, 0) {}

  void add(std::size_t at, std::int64_t number) {
    total_ += number;
    for (++at; at < sums_.size(); at += at & (~at + 1)) sums_[at] += number;
  }
  /// The sum of all numbers behind a place.
  std::int64_t after(std::size_t at) const {
    std::int64_t sum = total_;
    for (++at; at > 0; at &= at - 1) sum -= sums_[at];
    return sum;
  }

 private:
  std::vector<std::int64_t> sums_;
  std::int64_t total_ = 0;
};

}  // namespace

PrefixTrie::PrefixTrie(const RequestTrace& trace) : block_(trace.block) {
  struct Child {
    std::int64_t block = 0;
    int node = nothing;
  };
  // Most blocks have one successor: the first one is kept beside its parent, and only others are looked up.
  std::vector<Child> first_child(1);  // by parent plus one
  PairTable others;
  const auto child_of = [&](int parent, std::int64_t block) {
    Child& first = first_child[static_cast<std::size_t>(parent + 1)];
    if (first.node != nothing && first.block == block) return first.node;
    const int fresh = static_cast<int>(parents_.size());
    if (first.node == nothing) {
      first = {block, fresh};
    } else {
      int& other = others[{block, parent}];
      if (other != nothing) return other;
      other = fresh;
    }
    parents_.push_back(parent);
    first_child.emplace_back();
    return fresh;
  };
  std::size_t blocks = 0;
  for (const TracedRequest& request : trace.requests) blocks += request.blocks.size();
  paths_.reserve(blocks);
  prompts_.reserve(trace.requests.size());
  ends_.reserve(trace.requests.size() + 1);
  for (const TracedRequest& request : trace.requests) {
    int at = nothing;
    for (const std::int64_t block : request.blocks) paths_.push_back(at = child_of(at, block));
    prompts_.push_back(request.prompt);
    ends_.push_back(paths_.size());
  }
}

PrefixReuse::PrefixReuse(const PrefixTrie& trie)
    : tokens_(static_cast<std::size_t>(trie.size()) + 1, 0), blocks_(tokens_.size(), 0) {
  // A prompt's blocks lie behind each other in the list, its first one foremost, until later prompts move some of them
  // to the front. As those move all that comes before, too, what is left of a prompt is its end: the list is a list of
  // such ends, the latest request foremost.
  std::vector<int> last(static_cast<std::size_t>(trie.size()), nothing);  // request that used a node
  RunningSums left(trie.requests());
  for (std::size_t request = 0; request < trie.requests(); ++request) {
    const std::span<const int> path = trie.path(request);
    prompts_ += trie.prompt(request);
    taken_ += std::ssize(path);
    for (std::size_t at = 0; at < path.size();) {
      const int used = last[static_cast<std::size_t>(path[at])];
      const std::size_t start = at;
      // Before it in the list: the ends of later requests, and what this prompt has already taken out of them.
      std::size_t place =
          used == nothing ? 0 : start + static_cast<std::size_t>(left.after(static_cast<std::size_t>(used)));
      for (; at < path.size() && last[static_cast<std::size_t>(path[at])] == used; ++at) {
        last[static_cast<std::size_t>(path[at])] = static_cast<int>(request);
        if (used == nothing) continue;
        ++blocks_[++place];
        tokens_[place] += trie.cached_tokens(request, at + 1) - trie.cached_tokens(request, at);
      }
      if (used != nothing)
        left.add(static_cast<std::size_t>(used), static_cast<std::int64_t>(start) - static_cast<std::int64_t>(at));
    }
    left.add(request, std::ssize(path));
  }
  for (std::size_t size = 1; size < tokens_.size(); ++size) {
    tokens_[size] += tokens_[size - 1];
    blocks_[size] += blocks_[size - 1];
  }
}

PrefixReplay PrefixReuse::with(std::optional<std::int64_t> blocks) const {
  const std::int64_t all = std::ssize(tokens_) - 1, kept = std::min(blocks.value_or(all), all);
  const auto place = static_cast<std::size_t>(kept);
  return {Tokens(static_cast<double>(prompts_)), Tokens(static_cast<double>(tokens_[place])), kept,
          taken_ - blocks_[place] - kept};
}

namespace {

/// Caches of replicas. Each holds the ends of prompts, and evicts from the one that was used longest ago, from its end.
class PrefixCaches {
 public:
  PrefixCaches(const PrefixTrie& trie, std::optional<std::int64_t> blocks, std::size_t replicas)
      : trie_(trie), most_(blocks), replicas_(replicas), ends_(trie.requests()) {}

  std::size_t size() const { return replicas_.size(); }
  std::int64_t kept(std::size_t replica) const { return replicas_[replica].kept; }
  std::int64_t evicted(std::size_t replica) const { return replicas_[replica].evicted; }

  /// How many blocks of a request's prompt, from the first on, a replica holds.
  std::size_t cached(std::size_t replica, std::size_t request) const {
    std::size_t found = 0;
    each_end(replica, trie_.path(request), [&](std::size_t, std::size_t, std::size_t until) { found = until; });
    return found;
  }
  /// Uses what is cached, adds the rest, and evicts what was used longest ago; returns what was cached.
  std::size_t take(std::size_t replica, std::size_t request) {
    Replica& at = replicas_[replica];
    const std::span<const int> path = trie_.path(request);
    std::size_t found = 0;
    each_end(replica, path, [&](std::size_t used, std::size_t, std::size_t until) {
      ends_[used].first = until;
      found = until;
    });
    for (const int node : path) last_[key(replica, node)] = static_cast<int>(request);
    ends_[request] = {0, path.size()};
    at.requests.push_back(static_cast<int>(request));
    at.kept += static_cast<std::int64_t>(path.size() - found);
    while (most_ && at.kept > *most_) {
      auto& [first, end] = ends_[static_cast<std::size_t>(at.requests[at.oldest])];
      const auto gone = std::min(static_cast<std::int64_t>(end - first), at.kept - *most_);
      end -= static_cast<std::size_t>(gone);
      at.kept -= gone;
      at.evicted += gone;
      if (end == first) ++at.oldest;
    }
    return found;
  }

 private:
  struct Replica {
    std::vector<int> requests;  ///< in their order
    std::size_t oldest = 0;     ///< of them, that may have blocks left
    std::int64_t kept = 0, evicted = 0;
  };

  static std::pair<std::int64_t, int> key(std::size_t replica, int node) {
    return {static_cast<std::int64_t>(replica), node};
  }
  /// Visits the requests whose ends hold a path's beginning, with the blocks of it that each holds.
  template <class F>
  void each_end(std::size_t replica, std::span<const int> path, F visit) const {
    for (std::size_t at = 0; at < path.size();) {
      const int found = last_.find(key(replica, path[at]));
      if (found == nothing) return;
      const auto used = static_cast<std::size_t>(found);
      const std::span<const int> before = trie_.path(used);
      const std::size_t start = at, end = std::min(path.size(), ends_[used].second);
      while (at < end && before[at] == path[at]) ++at;
      if (at == start) return;
      visit(used, start, at);
    }
  }

  const PrefixTrie& trie_;
  std::optional<std::int64_t> most_;
  std::vector<Replica> replicas_;
  std::vector<std::pair<std::size_t, std::size_t>> ends_;  ///< of each request: the blocks of its prompt that are left
  PairTable last_;                                         ///< the request that used a node, by replica and node
};

/// The replica that has most of a prompt, if it is over half; else the one that computed fewest tokens.
std::size_t routed(const PrefixCaches& caches, const std::vector<std::int64_t>& computed, std::size_t request,
                   std::size_t blocks) {
  std::size_t best = 0, most = 0;
  for (std::size_t i = 0; i < caches.size(); ++i)
    if (const std::size_t cached = caches.cached(i, request); cached > most) best = i, most = cached;
  if (2 * most > blocks) return best;
  return static_cast<std::size_t>(std::min_element(computed.begin(), computed.end()) - computed.begin());
}

}  // namespace

PrefixReplay replay_prefixes(const PrefixTrie& trie, std::optional<std::int64_t> blocks, std::int64_t replicas,
                             PrefixRouting routing) {
  PrefixCaches caches(trie, blocks, static_cast<std::size_t>(replicas));
  std::vector<std::int64_t> computed(caches.size(), 0);
  std::int64_t prompts = 0, hits = 0;
  for (std::size_t i = 0; i < trie.requests(); ++i) {
    const std::size_t replica =
        routing == PrefixRouting::in_turn ? i % caches.size() : routed(caches, computed, i, trie.path(i).size());
    const std::int64_t tokens = trie.cached_tokens(i, caches.take(replica, i));
    prompts += trie.prompt(i);
    hits += tokens;
    computed[replica] += trie.prompt(i) - tokens;
  }
  PrefixReplay out{Tokens(static_cast<double>(prompts)), Tokens(static_cast<double>(hits))};
  for (std::size_t i = 0; i < caches.size(); ++i) out.kept += caches.kept(i), out.evicted += caches.evicted(i);
  return out;
}

std::vector<PrefixNode> PrefixTrie::runs(std::size_t most) const {
  std::vector<std::int64_t> requests(parents_.size(), 0), ends(parents_.size(), 0), children(parents_.size(), 0);
  for (const int node : paths_) ++requests[static_cast<std::size_t>(node)];
  for (std::size_t i = 0; i < prompts_.size(); ++i)
    if (!path(i).empty()) ++ends[static_cast<std::size_t>(path(i).back())];
  for (const int parent : parents_)
    if (parent != nothing) ++children[static_cast<std::size_t>(parent)];
  // Runs begin at a fork, or where a prompt ends.
  std::vector<PrefixNode> runs;
  std::vector<std::size_t> run_of(parents_.size());
  for (std::size_t i = 0; i < parents_.size(); ++i) {
    const auto parent = static_cast<std::size_t>(parents_[i]);
    const bool is_first = parents_[i] == nothing;
    if (!is_first && children[parent] == 1 && ends[parent] == 0) {
      run_of[i] = run_of[parent];
      ++runs[run_of[i]].blocks;
      continue;
    }
    run_of[i] = runs.size();
    runs.push_back({is_first ? std::nullopt : std::optional(run_of[parent]), 1, requests[i]});
  }
  if (runs.size() <= most) return runs;
  // A parent has at least as many requests as its children, so that what is kept hangs together.
  std::vector<std::size_t> order(runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return runs[a].requests != runs[b].requests ? runs[a].requests > runs[b].requests : a < b;
                    });
  order.resize(most);
  std::sort(order.begin(), order.end());
  std::map<std::size_t, std::size_t> place;
  std::vector<PrefixNode> kept;
  for (const std::size_t i : order) {
    place[i] = kept.size();
    kept.push_back(runs[i]);
    if (kept.back().parent) kept.back().parent = place.at(*kept.back().parent);
  }
  return kept;
}

}  // namespace assay::serving
