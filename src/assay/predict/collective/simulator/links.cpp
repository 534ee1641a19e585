#include "assay/predict/collective/simulator/links.h"

#include <algorithm>

#include "assay/base/result.h"

namespace assay::collective {
namespace {

struct Arrival {
  Seconds time;
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
        free_(network.size()) {
    heap_.reserve(network.size());
    sort_successors();
    outcome_.link_bytes.resize(network.size());
    outcome_.link_busy.resize(network.size());
    outcome_.delivered.resize(static_cast<std::size_t>(network.devices));
    outcome_.received.resize(static_cast<std::size_t>(network.devices));
  }

  NetworkOutcome finish() {
    for (std::int32_t transfer = 0; transfer < graph_.size(); ++transfer)
      if (graph_.waits_for[at(transfer)] == 0) release(transfer, Seconds());
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

  void release_successors(std::int32_t transfer, Seconds time) {
    ++done_;
    for (std::int32_t i = start_[at(transfer)]; i < start_[at(transfer) + 1]; ++i) {
      const std::int32_t successor = successors_[at(i)];
      if (--waits_for_[at(successor)] == 0) release(successor, time);
    }
  }

  void release(std::int32_t transfer, Seconds ready) {
    const std::int32_t link = graph_.link[at(transfer)];
    if (link == TransferGraph::no_link) return release_successors(transfer, ready);
    const Bytes bytes = graph_.bytes[at(transfer)];
    const Seconds busy = bytes * network_.per_byte[at(link)];
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
  std::vector<Seconds> arrival_;
  std::vector<std::int32_t> next_;          ///< the next transfer on the same link
  std::vector<std::int32_t> first_, last_;  ///< first and last transfer that each link has not delivered
  std::vector<Seconds> free_;               ///< when each link has sent all it was given
  std::vector<std::int32_t> start_, successors_;
  std::vector<Arrival> heap_;
  NetworkOutcome outcome_;
  std::int32_t done_ = 0;
};

}  // namespace

std::int32_t LinkNetwork::add(BytesPerSecond bandwidth, Seconds hop_latency, std::int64_t to) {
  per_byte.push_back(1.0 / bandwidth);
  latency.push_back(hop_latency);
  receiver.push_back(static_cast<std::int32_t>(to));
  return static_cast<std::int32_t>(size()) - 1;
}

std::int32_t TransferGraph::add(std::int32_t on_link, Bytes size, bool is_last) {
  link.push_back(on_link);
  bytes.push_back(size);
  last.push_back(is_last ? 1 : 0);
  waits_for.push_back(0);
  return this->size() - 1;
}

void TransferGraph::order(std::int32_t first, std::int32_t second) {
  before.push_back(first);
  after.push_back(second);
  ++waits_for[static_cast<std::size_t>(second)];
}

NetworkOutcome run_transfers(const LinkNetwork& network, const TransferGraph& graph) {
  return Run(network, graph).finish();
}

}  // namespace assay::collective
