#include "assay/network/simulator/links.h"

#include <algorithm>

#include "assay/base/result.h"

namespace assay::network {
namespace {

struct Arrival {
  double time;
  std::int32_t link;
};

/// For std::push_heap, which keeps the largest in front: later compares as smaller.
bool later(const Arrival& a, const Arrival& b) { return a.time > b.time || (a.time == b.time && a.link > b.link); }

/// Links are FIFO and their latency is constant, so chunks arrive in the order in which they start. Only the next
/// arrival of each link needs to be in the heap, and the heap never grows beyond the number of links.
class Run {
 public:
  Run(const LinkNetwork& network, const TransferGraph& graph)
      : network_(network),
        graph_(graph),
        waits_for_(graph.waits_for),
        arrival_(graph.link.size()),
        next_(graph.link.size(), none),
        first_(network.size(), none),
        last_(network.size(), none),
        free_(network.size(), 0.0) {
    heap_.reserve(network.size());
    sort_successors();
    outcome_.link_bytes.assign(network.size(), 0.0);
    outcome_.link_busy.assign(network.size(), 0.0);
    outcome_.delivered.assign(static_cast<std::size_t>(network.devices), 0.0);
    outcome_.received.assign(static_cast<std::size_t>(network.devices), 0.0);
  }

  NetworkOutcome finish() {
    for (std::int32_t transfer = 0; transfer < graph_.size(); ++transfer)
      if (graph_.waits_for[at(transfer)] == 0) release(transfer, 0.0);
    while (!heap_.empty()) {
      const Arrival now = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
      const std::int32_t transfer = first_[at(now.link)];
      first_[at(now.link)] = next_[at(transfer)];
      if (first_[at(now.link)] != none) push({arrival_[at(first_[at(now.link)])], now.link});
      outcome_.time = now.time;
      release_successors(transfer, now.time);
    }
    if (done_ != graph_.size())
      throw InternalError("the transfers of a simulated collective wait for each other in a cycle");
    return std::move(outcome_);
  }

 private:
  static constexpr std::int32_t none = -1;
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  void sort_successors() {
    start_.assign(graph_.link.size() + 1, 0);
    for (const std::int32_t before : graph_.before) ++start_[at(before) + 1];
    for (std::size_t i = 1; i < start_.size(); ++i) start_[i] += start_[i - 1];
    successors_.resize(graph_.after.size());
    std::vector<std::int32_t> place(start_.begin(), start_.end() - 1);
    for (std::size_t i = 0; i < graph_.before.size(); ++i)
      successors_[at(place[at(graph_.before[i])]++)] = graph_.after[i];
  }

  void push(Arrival arrival) {
    heap_.push_back(arrival);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  void release_successors(std::int32_t transfer, double time) {
    ++done_;
    for (std::int32_t i = start_[at(transfer)]; i < start_[at(transfer) + 1]; ++i) {
      const std::int32_t successor = successors_[at(i)];
      if (--waits_for_[at(successor)] == 0) release(successor, time);
    }
  }

  void release(std::int32_t transfer, double ready) {
    const std::int32_t link = graph_.link[at(transfer)];
    if (link == TransferGraph::no_link) return release_successors(transfer, ready);
    const double bytes = graph_.bytes[at(transfer)], busy = bytes * network_.seconds_per_byte[at(link)];
    free_[at(link)] = std::max(ready, free_[at(link)]) + busy;
    arrival_[at(transfer)] = free_[at(link)] + network_.latency[at(link)];
    outcome_.link_bytes[at(link)] += bytes;
    outcome_.link_busy[at(link)] += busy;
    ++outcome_.transfers;
    if (const std::int32_t device = network_.receiver[at(link)]; device >= 0) {
      outcome_.received[at(device)] += bytes;
      if (graph_.last[at(transfer)] != 0) outcome_.delivered[at(device)] += bytes;
    }
    if (first_[at(link)] == none) {
      first_[at(link)] = transfer;
      push({arrival_[at(transfer)], link});
    } else {
      next_[at(last_[at(link)])] = transfer;
    }
    last_[at(link)] = transfer;
  }

  const LinkNetwork& network_;
  const TransferGraph& graph_;
  std::vector<std::int32_t> waits_for_;
  std::vector<double> arrival_;
  std::vector<std::int32_t> next_;          ///< the next transfer on the same link
  std::vector<std::int32_t> first_, last_;  ///< on each link
  std::vector<double> free_;                ///< when each link has sent all it was given
  std::vector<std::int32_t> start_, successors_;
  std::vector<Arrival> heap_;
  NetworkOutcome outcome_;
  std::int32_t done_ = 0;
};

}  // namespace

std::int32_t LinkNetwork::add(double bandwidth, double hop_latency, std::int64_t to) {
  seconds_per_byte.push_back(1.0 / bandwidth);
  latency.push_back(hop_latency);
  receiver.push_back(static_cast<std::int32_t>(to));
  return static_cast<std::int32_t>(size()) - 1;
}

std::int32_t TransferGraph::add(std::int32_t on_link, double size_in_bytes, bool is_last) {
  link.push_back(on_link);
  bytes.push_back(size_in_bytes);
  last.push_back(is_last ? 1 : 0);
  waits_for.push_back(0);
  return size() - 1;
}

void TransferGraph::order(std::int32_t first, std::int32_t second) {
  before.push_back(first);
  after.push_back(second);
  ++waits_for[static_cast<std::size_t>(second)];
}

NetworkOutcome run_transfers(const LinkNetwork& network, const TransferGraph& graph) {
  return Run(network, graph).finish();
}

}  // namespace assay::network
