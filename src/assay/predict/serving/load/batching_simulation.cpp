#include "assay/predict/serving/load/batching_simulation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <vector>

#include "assay/predict/serving/load/load_record.h"
#include "assay/predict/serving/load/replica.h"

namespace assay::serving {
namespace {

/// Requests at a rate on one replica, and what comes of them.
class Simulation {
 public:
  Simulation(const LoadedServer& server, double rate, const SimulatedLoad& load)
      : server_(server),
        rate_(rate),
        random_(load.seed),
        skipped_(load.requests / 5),
        all_(load.requests + skipped_),
        model_(server, 0),
        replica_(model_, watchers_, 0) {
    watchers_.ended = [this](const ServedRequest& one) { ended(one); };
    watchers_.passed = [this](const ReplicaSpan& span) { passed(span); };
  }

  LoadedTimes run() {
    server_.policy == BatchingPolicy::disaggregated ? send_prefilled() : send();
    const auto backlog = static_cast<double>(replica_.waiting());
    replica_.advance(Traffic::never);
    return results(backlog);
  }

 private:
  FleetRequest drawn(double arrival) {
    FleetRequest request;
    request.arrival = arrival;
    request.prompt = random_.draw(server_.lengths.prompt);
    // The formulas count a step for each token behind the first.
    request.output = random_.draw(server_.lengths.output) + 1;
    return request;
  }
  void add(FleetRequest request) {
    request.id = sent_++;
    replica_.advance(request.arrival);
    replica_.add(request, {}, 0);
  }

  void send() {
    for (double time = 0.0; sent_ < all_;) add(drawn(time += random_.exponential(1.0 / rate_)));
  }

  /// Requests of all replicas pass the servers of prompts in the order of arrival; one in `replicas` comes here.
  void send_prefilled() {
    const double servers = std::max(1.0, std::floor(server_.prefill_servers * server_.replicas));
    std::priority_queue<double, std::vector<double>, std::greater<>> free;
    for (double i = 0; i < servers; i += 1.0) free.push(0.0);
    double time = 0.0;
    while (sent_ < all_) {
      FleetRequest request = drawn(time += random_.exponential(1.0 / rate_ / server_.replicas));
      const auto prompt = static_cast<double>(request.prompt);
      const double came = time + front_end_time(Plain{}, server_.path, prompt).value();
      const double work = server_.prefill(prompt).value(), end = std::max(free.top(), came) + work;
      free.pop();
      free.push(end);
      prefilled_ += work / servers;
      request.prefilled = {end + delivery_time(Plain{}, server_.path, 1.0).value(), end + server_.transfer.value()};
      if (random_.share() < 1.0 / server_.replicas) add(request);
    }
    prefilled_ /= time;
  }

  void ended(const ServedRequest& one) {
    ends_.push_back(one.end);
    if (one.request.id < skipped_) return;
    const double life = one.end - std::max(one.first, one.ready), tokens = static_cast<double>(one.request.output - 1);
    first_.add(one.first_token());
    token_.add(life / tokens);
    last_.add(one.whole());
    life_ += life, tokens_ += tokens;
  }

  void passed(const ReplicaSpan& span) {
    const double time = span.to - span.from;
    const auto waiting = static_cast<double>(span.waiting);
    busy_ += time;
    prompts_ += span.for_prompts;
    decoding_ += time * static_cast<double>(span.running);
    // Requests that could be in the batch if their prompts were done wait for prompts, not for a place.
    queued_ +=
        time * (span.is_full ? waiting : std::max(0.0, static_cast<double>(span.running) + waiting - server_.most));
  }

  LoadedTimes results(double backlog) {
    const double now = replica_.now();
    LoadedTimes out;
    out.first_token = first_.spread();
    out.per_token = token_.spread();
    out.per_token.mean = Seconds(life_ / tokens_);  // mean over tokens, as Little's law counts
    out.last_token = Seconds(last_.mean());
    out.sequences = decoding_ / now;
    out.waiting = queued_ / now;
    out.prefill_share = server_.policy == BatchingPolicy::disaggregated ? prefilled_ : prompts_ / now;
    out.utilisation = busy_ / now;
    out.preemptions = static_cast<double>(replica_.preemptions()) / static_cast<double>(all_);
    // From when the batch is full to when the last requests leave it.
    std::sort(ends_.begin(), ends_.end());
    const std::size_t until = ends_.size() - std::min(ends_.size() / 2, static_cast<std::size_t>(server_.most)) - 1;
    out.served = Hertz(static_cast<double>(until) / (ends_[until] - ends_.front()));
    // Where more arrive than leave, the queue is a share of all requests in the end.
    out.stable = backlog < std::max(server_.most, 0.05 * static_cast<double>(all_));
    return out;
  }

  const LoadedServer& server_;
  double rate_;
  Random random_;
  std::int64_t skipped_, all_, sent_ = 0;
  ReplicaModel model_;
  Replica::Watchers watchers_;
  Replica replica_;
  Quantiles first_, token_, last_;
  std::vector<double> ends_;
  double prefilled_ = 0;  ///< share of the time that the servers of prompts work
  double busy_ = 0, prompts_ = 0, decoding_ = 0, queued_ = 0, life_ = 0, tokens_ = 0;
};

}  // namespace

LoadedTimes simulate_batching(const LoadedServer& server, Hertz rate, const SimulatedLoad& load) {
  return Simulation(server, rate.value(), load).run();
}

}  // namespace assay::serving
