#include "assay/predict/serving/load/batching_simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "assay/predict/serving/load/random.h"

namespace assay::serving {
namespace {

struct Arrival {
  double time = 0;
  std::int64_t prompt = 1, output = 1;
  double ready = 0;       ///< when its prompt may join: on its arrival, or once a prefill server is done
  std::int64_t done = 0;  ///< tokens of the prompt that chunks have already covered
  std::int64_t made = 0;  ///< tokens of the output
  double first = -1, end = -1;
};

/// Times are in seconds.
class Simulation {
 public:
  Simulation(const LoadedServer& server, double rate, const SimulatedLoad& load)
      : server_(server), rate_(rate), random_(load.seed), skipped_(load.requests / 5) {
    const auto all = static_cast<std::size_t>(load.requests + skipped_);
    if (server.policy == BatchingPolicy::disaggregated)
      draw_prefilled(all);
    else
      draw(all);
  }

  LoadedTimes run() {
    while (ended_ < requests_.size()) {
      while (next_ < requests_.size() && requests_[next_].ready <= prepared()) {
        waiting_.push_back(next_++);
        if (next_ == requests_.size()) backlog_ = static_cast<double>(waiting_.size());
      }
      if (server_.policy == BatchingPolicy::chunked ? !chunked_step() : !admit() && !step()) {
        // Nothing to do until the next request.
        idle_ += requests_[next_].ready - now_;
        now_ = requests_[next_].ready;
      }
    }
    return results();
  }

 private:
  /// Until when requests may have come to join the next step: it is prepared while the last one runs, if any does.
  double prepared() const {
    const bool runs = !active_.empty() || !waiting_.empty();
    return server_.path.ahead > 0.0 && runs ? started_ : now_;
  }
  double front_end(const Arrival& a) const {
    return front_end_time(Plain{}, server_.path, static_cast<double>(a.prompt)).value();
  }
  /// When the tokens of the step that has just ended are with their clients.
  double delivered() const {
    return now_ + delivery_time(Plain{}, server_.path, static_cast<double>(active_.size())).value();
  }

  void draw(std::size_t all) {
    double time = 0.0;
    for (std::size_t i = 0; i < all; ++i) {
      Arrival a;
      a.time = time += random_.exponential(1.0 / rate_);
      a.prompt = random_.draw(server_.lengths.prompt);
      a.output = random_.draw(server_.lengths.output);
      a.ready = a.time + front_end(a);
      requests_.push_back(a);
    }
    sort_by_ready();
  }

  void sort_by_ready() {
    std::stable_sort(requests_.begin(), requests_.end(),
                     [](const Arrival& x, const Arrival& y) { return x.ready < y.ready; });
  }

  /// Requests of all replicas pass the servers of prompts in the order of arrival; one in `replicas` comes here.
  void draw_prefilled(std::size_t all) {
    const double servers = std::max(1.0, std::floor(server_.prefill_servers * server_.replicas));
    std::priority_queue<double, std::vector<double>, std::greater<>> free;
    for (double i = 0; i < servers; i += 1.0) free.push(0.0);
    double time = 0.0;
    while (requests_.size() < all) {
      Arrival a;
      a.time = time += random_.exponential(1.0 / rate_ / server_.replicas);
      a.prompt = random_.draw(server_.lengths.prompt);
      a.output = random_.draw(server_.lengths.output);
      const double start = std::max(free.top(), time + front_end(a));
      free.pop();
      const double work = server_.prefill(static_cast<double>(a.prompt)).value();
      const double end = start + work;
      prefilled_ += work / servers;
      a.first = end + delivery_time(Plain{}, server_.path, 1.0).value();
      a.ready = end + server_.transfer.value();
      free.push(end);
      if (random_.share() < 1.0 / server_.replicas) requests_.push_back(a);
    }
    prefilled_ /= time;
    sort_by_ready();
  }

  std::int64_t pages(const Arrival& a) const {
    const std::int64_t page = std::max<std::int64_t>(1, server_.lengths.page);
    return (a.prompt + a.made + page - 1) / page;
  }
  bool has_room(const Arrival& a) const {
    if (static_cast<double>(active_.size()) >= server_.most) return false;
    if (server_.cache_tokens == 0.0 || server_.lengths.page == 0) return true;
    // A sequence alone always runs: it would never start otherwise.
    return active_.empty() || static_cast<double>((pages_ + pages(a)) * server_.lengths.page) <= server_.cache_tokens;
  }

  void start(std::size_t id) {
    Arrival& a = requests_[id];
    active_.push_back(id);
    if (a.first < 0.0) a.first = delivered();
    context_ += static_cast<double>(a.prompt + a.made);
    pages_ += pages(a);
  }

  /// Works on the first prompt that waits, if there is room for it.
  bool admit() {
    if (waiting_.empty() || !has_room(requests_[waiting_.front()])) return false;
    const std::size_t id = waiting_.front();
    waiting_.pop_front();
    // An evicted sequence recomputes the tokens that it had.
    const bool here = server_.policy == BatchingPolicy::interleaved || requests_[id].made > 0;
    if (here) {
      const double time = server_.prefill(static_cast<double>(requests_[id].prompt + requests_[id].made)).value();
      pass(time);
      prefill_ += time;
    }
    start(id);
    return true;
  }

  bool step() {
    if (active_.empty()) return false;
    advance(server_.step(static_cast<double>(active_.size()), context_ / static_cast<double>(active_.size())).value());
    return true;
  }

  bool chunked_step() {
    double tokens = 0.0;
    std::vector<std::size_t> complete;
    // Prompts share a chunk in the order of arrival.
    while (!waiting_.empty() && tokens < server_.chunk &&
           static_cast<double>(active_.size() + complete.size()) < server_.most) {
      Arrival& a = requests_[waiting_.front()];
      if (complete.empty() && !has_room(a)) break;
      const double left = static_cast<double>(a.prompt + a.made - a.done);
      const double take = std::min(left, server_.chunk - tokens);
      tokens += take;
      a.done += static_cast<std::int64_t>(take);
      if (take < left) break;
      complete.push_back(waiting_.front());
      waiting_.pop_front();
    }
    if (tokens == 0.0) return step();
    const auto n = static_cast<double>(active_.size());
    const double alone = n > 0.0 ? server_.step(n, context_ / n).value() : 0.0;
    const double time = server_.mixed(n, n > 0.0 ? context_ / n : server_.lengths.context, tokens).value();
    prefill_ += time - alone;
    advance(time);
    for (std::size_t id : complete) start(id);
    return true;
  }

  void pass(double time) {
    started_ = now_;
    now_ += time;
    decoding_ += time * static_cast<double>(active_.size());
    // Requests that could be in the batch if their prompts were done wait for prompts, not for a place.
    if (!waiting_.empty() && !has_room(requests_[waiting_.front()]))
      queued_ += time * static_cast<double>(waiting_.size());
    else
      queued_ += time * std::max(0.0, static_cast<double>(active_.size() + waiting_.size()) - server_.most);
  }

  /// A step of all active sequences: each gets a token, some end.
  void advance(double time) {
    pass(time);
    const std::int64_t page = std::max<std::int64_t>(1, server_.lengths.page);
    std::size_t kept = 0;
    for (std::size_t id : active_) {
      Arrival& a = requests_[id];
      if ((a.prompt + a.made) % page == 0) ++pages_;
      ++a.made;
      context_ += 1.0;
      if (a.made < a.output) {
        active_[kept++] = id;
        continue;
      }
      a.end = delivered();
      ++ended_;
      context_ -= static_cast<double>(a.prompt + a.made);
      pages_ -= pages(a);
    }
    active_.resize(kept);
    // Out of memory: the last to join goes back to the head of the queue.
    while (server_.cache_tokens > 0.0 && server_.lengths.page > 0 && active_.size() > 1 &&
           static_cast<double>(pages_ * page) > server_.cache_tokens) {
      const std::size_t id = active_.back();
      active_.pop_back();
      Arrival& a = requests_[id];
      context_ -= static_cast<double>(a.prompt + a.made);
      pages_ -= pages(a);
      a.done = 0;
      ++preempted_;
      waiting_.push_front(id);
    }
  }

  static Spread spread(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
      return Seconds(values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))]);
    };
    double sum = 0.0;
    for (double v : values) sum += v;
    return {Seconds(sum / static_cast<double>(values.size())), at(0.5), at(0.9), at(0.99)};
  }

  LoadedTimes results() const {
    std::vector<double> first, token, ends;
    double last = 0.0, tokens = 0.0, life = 0.0;
    for (std::size_t i = static_cast<std::size_t>(skipped_); i < requests_.size(); ++i) {
      const Arrival& a = requests_[i];
      first.push_back(a.first - a.time);
      const double from = std::max(a.first, a.ready);
      token.push_back((a.end - from) / static_cast<double>(a.output));
      tokens += static_cast<double>(a.output);
      life += a.end - from;
      last += a.end - a.time;
      ends.push_back(a.end);
    }
    LoadedTimes out;
    const auto n = static_cast<double>(first.size());
    out.first_token = spread(first);
    out.per_token = spread(token);
    out.per_token.mean = Seconds(life / tokens);  // mean over tokens, as Little's law counts
    out.last_token = Seconds(last / n);
    out.sequences = decoding_ / now_;
    out.waiting = queued_ / now_;
    out.prefill_share = server_.policy == BatchingPolicy::disaggregated ? prefilled_ : prefill_ / now_;
    out.utilisation = 1.0 - idle_ / now_;
    out.preemptions = static_cast<double>(preempted_) / static_cast<double>(requests_.size());
    // Where more arrive than leave, the queue is a share of all requests in the end.
    // From when the batch is full to when the last requests leave it.
    std::sort(ends.begin(), ends.end());
    const std::size_t until = ends.size() - std::min(ends.size() / 2, static_cast<std::size_t>(server_.most)) - 1;
    out.served = Hertz(static_cast<double>(until) / (ends[until] - ends.front()));
    out.stable = backlog_ < std::max(server_.most, 0.05 * static_cast<double>(requests_.size()));
    return out;
  }

  const LoadedServer& server_;
  double rate_;
  Random random_;
  std::int64_t skipped_;
  std::vector<Arrival> requests_;
  std::deque<std::size_t> waiting_;
  std::vector<std::size_t> active_;  ///< in the order they came
  std::size_t next_ = 0, ended_ = 0;
  std::int64_t pages_ = 0, preempted_ = 0;
  double prefilled_ = 0;  ///< share of the time that the servers of prompts work
  double started_ = 0;    ///< of the last step
  double now_ = 0, idle_ = 0, prefill_ = 0, decoding_ = 0, queued_ = 0, context_ = 0, backlog_ = 0;
};

}  // namespace

LoadedTimes simulate_batching(const LoadedServer& server, Hertz rate, const SimulatedLoad& load) {
  return Simulation(server, rate.value(), load).run();
}

}  // namespace assay::serving
