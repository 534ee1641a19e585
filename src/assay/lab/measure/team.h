// A team of threads that start and end a piece of work together.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace assay::measure {

class Team {
 public:
  explicit Team(int size);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  /// Calls `work(member)` on every thread, including this one, and returns when all are done.
  void run(const std::function<void(int)>& work);

 private:
  void serve(int member);

  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(int)>* work_ = nullptr;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace assay::measure
