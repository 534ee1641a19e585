// Work on all cores. Threads exist only here, so that results cannot depend on them.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

#include "assay/base/one_of_many.h"

namespace assay {

/// How many threads run at once where all cores work.
inline std::size_t core_count() { return std::max(1u, std::thread::hardware_concurrency()); }

/// Calls `make(i)` for every i below `count`, in any order and on all cores; calls must not depend on each other.
/// Starts a thread for every `grain` of them, so that a few cheap ones run in place.
/// Each thread has a state of its own, made by `start()`, that may remember but not change what `make(i, state)` makes.
template <class S, class F>
void parallel_for(std::size_t count, std::size_t grain, S&& start, F&& make) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    auto state = start();
    for (std::size_t i = next++; i < count; i = next++) make(i, state);
  };
  const std::size_t cores = OneOfMany::here() ? 1 : core_count();
  std::vector<std::future<void>> others;  // their destructors wait for the threads
  try {
    for (std::size_t t = 1; t < std::min(cores, count / grain); ++t)
      others.push_back(std::async(std::launch::async, work));
  } catch (const std::system_error&) {
    // The machine grants no more threads: those that run, and this one, do the work.
  }
  work();
  for (std::future<void>& other : others) other.get();
}
template <class F>
void parallel_for(std::size_t count, std::size_t grain, F&& make) {
  struct Nothing {};
  parallel_for(
      count, grain, [] { return Nothing(); }, [&](std::size_t i, Nothing&) { make(i); });
}

}  // namespace assay
