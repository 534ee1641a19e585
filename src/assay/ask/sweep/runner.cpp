#include "assay/ask/sweep/runner.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "assay/ask/sweep/claims.h"
#include "assay/base/one_of_many.h"
#include "assay/base/parallel.h"
#include "assay/base/progress.h"

namespace assay::sweep {
namespace {

/// Which request is next, for all threads of this process; claims more of them from other ranks.
class Queue {
 public:
  Queue(const std::vector<std::string>& requests, const Store& store, const Ranks& ranks)
      : requests_(requests), store_(store), claims_(store.directory(), ranks, requests.size()) {}

  std::optional<std::size_t> next() {
    const std::lock_guard held(guard_);
    while (true) {
      while (at_ < end_) {
        const std::size_t i = at_++;
        if (!store_.has(requests_[i])) return i;
        progress.advance();
      }
      const auto part = claims_.next();
      if (!part) return std::nullopt;
      std::tie(at_, end_) = *part;
    }
  }

 private:
  const std::vector<std::string>& requests_;
  const Store& store_;
  Claims claims_;
  std::size_t at_ = 0, end_ = 0;
  std::mutex guard_;
};

/// Asks and keeps what `next` gives, until it gives nothing.
template <class Next>
Result<std::size_t> ask_all(const std::vector<std::string>& requests, Next next, const Ask& ask, Store& store,
                            std::size_t threads) {
  std::atomic<std::size_t> count = 0;
  std::atomic<bool> broken = false;
  std::vector<Result<void>> ends(threads);
  parallel_for(threads, 1, [&](std::size_t thread) {
    while (!broken && !progress.is_stopped()) {
      const std::optional<std::size_t> i = next();
      if (!i) return;
      Row row;
      {
        const OneOfMany here;
        row = ask(requests[*i]);
      }
      if (progress.is_stopped()) return;  // what was cut short is no answer
      if (auto kept = store.add(row); !kept) {
        ends[thread] = kept;
        broken = true;
        return;
      }
      ++count;
      progress.advance();
    }
  });
  for (const Result<void>& end : ends) ASSAY_CHECK(end);
  return count.load();
}

/// Waits for the rows of other ranks; where none comes for long, what is missing is asked here.
Result<std::size_t> wait_for_others(const std::vector<std::string>& requests, const Ask& ask, Store& store,
                                    std::size_t threads) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds patience(60);
  constexpr std::chrono::milliseconds pause(100);
  std::size_t before = store.size();
  Clock::time_point last = Clock::now();
  const auto missing = [&] {
    std::deque<std::size_t> out;
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (!store.has(requests[i])) out.push_back(i);
    return out;
  };
  while (!progress.is_stopped()) {
    ASSAY_CHECK(store.refresh());
    std::deque<std::size_t> left = missing();
    if (left.empty()) return std::size_t{0};
    if (store.size() > before) {
      before = store.size();
      last = Clock::now();
    } else if (Clock::now() - last > patience) {
      std::mutex guard;
      const auto next = [&]() -> std::optional<std::size_t> {
        const std::lock_guard held(guard);
        if (left.empty()) return std::nullopt;
        const std::size_t i = left.front();
        left.pop_front();
        return i;
      };
      return ask_all(requests, next, ask, store, threads);
    }
    std::this_thread::sleep_for(pause);
  }
  return std::size_t{0};
}

}  // namespace

Result<std::size_t> run(const std::vector<std::string>& requests, const Ask& ask, Store& store, std::size_t threads,
                        const Ranks& ranks) {
  progress.start("requests", requests.size());
  Queue queue(requests, store, ranks);
  ASSAY_TRY(asked, ask_all(
                       requests, [&] { return queue.next(); }, ask, store, threads));
  if (ranks.rank != 0) return asked;
  ASSAY_TRY(more, wait_for_others(requests, ask, store, threads));
  ASSAY_CHECK(store.refresh());
  std::error_code failed;  // a folder that stays is empty of meaning for the next launch
  if (ranks.count > 1 && !progress.is_stopped())
    std::filesystem::remove_all(Claims::folder(store.directory(), ranks), failed);
  return asked + more;
}

}  // namespace assay::sweep
