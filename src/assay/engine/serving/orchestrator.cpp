// A server whose prompts are processed by a thread of their own, while another one decodes.
#include <algorithm>
#include <chrono>
#include <future>
#include <system_error>

#include "assay/base/index.h"
#include "assay/engine/ranks/mpi.h"
#include "assay/engine/serving/bounded_queue.h"
#include "assay/engine/serving/server.h"

namespace assay::engine {

/// The time since both threads started.
struct Server::Clock {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  Seconds now() const {
    return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
};

Result<void> Server::prefill_all(std::vector<Sequence>& sequences, BoundedQueue<Sequence*>& ready, const Clock& clock) {
  const ClosesQueue at_end(ready);
  for (Sequence& sequence : sequences) {
    if (is_any_stopped(nullptr)) break;
    const Seconds start = clock.now();
    ASSAY_CHECK(step({&sequence}, true));
    const Seconds end = clock.now();
    report_.activities.push_back({EngineCall::Kind::prefill, sequence.request, -1, 1, start, end});
    if (!ready.put(&sequence)) break;
    report_.waited_for_room += clock.now() - end;
  }
  return {};
}

Result<void> Server::generate_all(BoundedQueue<Sequence*>& ready, Group& running, const Clock& clock) {
  const ClosesQueue at_end(ready);
  while (!report_.is_interrupted) {
    for (bool more = true; more && std::ssize(running) < options_.slots;) {
      const Seconds asked = clock.now();
      const std::optional<Sequence*> next = ready.take(running.empty());
      const Seconds start = clock.now();
      report_.waited_for_prompts += start - asked;
      more = next.has_value();
      if (!more) break;
      seat({*next});
      insert({*next}, running);
      report_.requests[(*next)->request].started = report_.iterations + 1;
      report_.activities.push_back({EngineCall::Kind::insert, (*next)->request, (*next)->place, 1, start, clock.now()});
    }
    retire(running);
    if (running.empty()) {
      if (ready.is_spent()) break;
      continue;
    }
    report_.is_interrupted = is_any_stopped(nullptr);
    if (report_.is_interrupted) break;
    ++report_.iterations;
    const Seconds start = clock.now();
    const std::int64_t sequences = std::ssize(running);
    ASSAY_CHECK(generate(running));
    report_.activities.push_back({EngineCall::Kind::generate, 0, -1, sequences, start, clock.now()});
    retire(running);
  }
  return {};
}

Result<ServerReport> Server::serve_in_threads(const std::vector<Prompt>& prompts) {
  std::vector<Sequence> sequences = start(prompts);
  Server other(large_.model, weights_, options_);  // with a report of its own: the threads share the queue alone
  BoundedQueue<Sequence*> ready(at(*options_.queue));
  const Clock clock;
  Group running;
  std::future<Result<void>> prefilled;
  try {
    prefilled = std::async(std::launch::async, [&] { return other.prefill_all(sequences, ready, clock); });
  } catch (const std::system_error&) {
    return fail("--threads", "there is no second thread here", "leave it out");
  }
  ASSAY_CHECK(generate_all(ready, running, clock));
  ASSAY_CHECK(prefilled.get());
  finish(running);
  report_.time = clock.now();
  const ServerReport& prefills = other.report_;
  report_.is_interrupted = report_.is_interrupted || is_any_stopped(nullptr);
  report_.prefills = prefills.prefills;
  report_.prefill_time = prefills.prefill_time;
  report_.moved += prefills.moved;
  report_.stated += prefills.stated;
  report_.handed = prefills.handed;
  report_.cached = prefills.cached;
  report_.waited_for_room = prefills.waited_for_room;
  report_.disagreement = std::max(report_.disagreement, prefills.disagreement);
  report_.steps.insert(report_.steps.begin(), prefills.steps.begin(), prefills.steps.end());
  report_.activities.insert(report_.activities.begin(), prefills.activities.begin(), prefills.activities.end());
  std::stable_sort(report_.activities.begin(), report_.activities.end(),
                   [](const ServerActivity& a, const ServerActivity& b) { return a.start < b.start; });
  return report_;
}

}  // namespace assay::engine
