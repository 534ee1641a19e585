// A queue between two threads of a server. It holds few things: whoever is ahead waits for the other.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace assay::engine {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t room) : room_(room) {}

  /// Waits for room; false if the queue was closed.
  bool put(T thing) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || things_.size() < room_; });
    if (closed_) return false;
    things_.push_back(std::move(thing));
    changed_.notify_all();
    return true;
  }
  /// The oldest thing. Where there is none: waits for one, if it should and more may come.
  std::optional<T> take(bool waits) {
    std::unique_lock lock(mutex_);
    if (waits) changed_.wait(lock, [&] { return closed_ || !things_.empty(); });
    if (things_.empty()) return std::nullopt;
    T thing = std::move(things_.front());
    things_.pop_front();
    changed_.notify_all();
    return thing;
  }
  /// Nothing more is put; what is there can still be taken.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  bool is_spent() const {
    const std::lock_guard lock(mutex_);
    return closed_ && things_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> things_;
  std::size_t room_;
  bool closed_ = false;
};

/// Closes a queue at the end of a scope, so that nobody waits for a thread that ended.
template <class T>
class ClosesQueue {
 public:
  explicit ClosesQueue(BoundedQueue<T>& queue) : queue_(queue) {}
  ~ClosesQueue() { queue_.close(); }
  ClosesQueue(const ClosesQueue&) = delete;
  ClosesQueue& operator=(const ClosesQueue&) = delete;

 private:
  BoundedQueue<T>& queue_;
};

}  // namespace assay::engine
