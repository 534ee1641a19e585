#include "assay/predict/serving/load/prefix_cache.h"

#include <algorithm>
#include <map>

namespace assay::serving {

std::int64_t PrefixCache::cached(std::span<const std::int64_t> blocks) const {
  int parent = root;
  std::int64_t found = 0;
  for (const std::int64_t block : blocks) {
    const auto child = children_.find({parent, block});
    if (child == children_.end()) break;
    parent = child->second;
    ++found;
  }
  return found;
}

std::int64_t PrefixCache::take(std::span<const std::int64_t> blocks) {
  const std::int64_t found = cached(blocks);
  std::vector<int> path;
  int parent = root;
  for (const std::int64_t block : blocks) {
    const Edge edge{parent, block};
    const auto child = children_.find(edge);
    if (child != children_.end()) {
      parent = child->second;
    } else {
      if (free_.empty()) {
        free_.push_back(static_cast<int>(nodes_.size()));
        nodes_.emplace_back();
      }
      const int node = free_.back();
      free_.pop_back();
      used_.push_front(node);
      nodes_[static_cast<std::size_t>(node)] = {edge, used_.begin()};
      children_.emplace(edge, node);
      parent = node;
    }
    path.push_back(parent);
  }
  for (std::size_t i = path.size(); i-- > 0;)
    used_.splice(used_.begin(), used_, nodes_[static_cast<std::size_t>(path[i])].place);
  while (most_ && size() > *most_) {
    const int node = used_.back();
    used_.pop_back();
    children_.erase(nodes_[static_cast<std::size_t>(node)].edge);
    free_.push_back(node);
    ++evicted_;
  }
  return found;
}

namespace {

/// The replica that has most of a prompt, if it is over half; else the one that computed fewest tokens.
std::size_t routed(const std::vector<PrefixCache>& caches, const std::vector<double>& computed,
                   const TracedRequest& request) {
  std::size_t best = 0;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < caches.size(); ++i)
    if (const std::int64_t cached = caches[i].cached(request.blocks); cached > most) best = i, most = cached;
  if (2 * most > static_cast<std::int64_t>(request.blocks.size())) return best;
  return static_cast<std::size_t>(std::min_element(computed.begin(), computed.end()) - computed.begin());
}

}  // namespace

PrefixReplay replay_prefixes(const RequestTrace& trace, std::optional<std::int64_t> blocks, std::int64_t replicas,
                             PrefixRouting routing) {
  std::vector<PrefixCache> caches(static_cast<std::size_t>(replicas), PrefixCache(blocks));
  std::vector<double> computed(caches.size(), 0.0);
  PrefixReplay out;
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const TracedRequest& request = trace.requests[i];
    const std::size_t replica =
        routing == PrefixRouting::in_turn ? i % caches.size() : routed(caches, computed, request);
    const std::int64_t tokens = std::min(caches[replica].take(request.blocks) * trace.block, request.prompt - 1);
    out.prompts += Tokens(static_cast<double>(request.prompt));
    out.hits += Tokens(static_cast<double>(tokens));
    computed[replica] += static_cast<double>(request.prompt - tokens);
  }
  for (const PrefixCache& cache : caches) out.kept += cache.size(), out.evicted += cache.evicted();
  return out;
}

std::vector<PrefixNode> prefix_tree(const RequestTrace& trace, std::size_t most) {
  struct Counted {
    std::optional<std::size_t> parent;
    std::int64_t requests = 0, ends = 0;
    std::vector<std::size_t> children;
  };
  std::vector<Counted> all;
  std::map<std::pair<std::size_t, std::int64_t>, std::size_t> children;  // by parent plus one (0: the root) and block
  for (const TracedRequest& request : trace.requests) {
    std::optional<std::size_t> at;
    for (const std::int64_t block : request.blocks) {
      const auto [child, is_new] = children.try_emplace({at ? *at + 1 : 0, block}, all.size());
      if (is_new) {
        all.push_back({at, 0, 0, {}});
        if (at) all[*at].children.push_back(child->second);
      }
      at = child->second;
      ++all[*at].requests;
    }
    if (at) ++all[*at].ends;
  }
  // Runs begin at a fork, or where a prompt ends.
  std::vector<PrefixNode> runs;
  std::vector<std::size_t> run_of(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::optional<std::size_t> parent = all[i].parent;
    if (parent && all[*parent].children.size() == 1 && all[*parent].ends == 0) {
      run_of[i] = run_of[*parent];
      ++runs[run_of[i]].blocks;
      continue;
    }
    run_of[i] = runs.size();
    runs.push_back({parent ? std::optional(run_of[*parent]) : std::nullopt, 1, all[i].requests});
  }
  if (runs.size() <= most) return runs;
  // A parent has at least as many requests as its children, so that what is kept hangs together.
  std::vector<std::size_t> order(runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return runs[a].requests > runs[b].requests; });
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
