// Ranks that are threads of this process: how tests run what runs on ranks of MPI, without a launcher.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "assay/engine/transport.h"

namespace assay::testing {

/// Messages of all ranks, by receiver, sender and tag.
class ThreadMail {
 public:
  using Place = std::tuple<std::size_t, std::size_t, int>;

  void put(Place place, engine::Message message) {
    {
      const std::lock_guard lock(mutex_);
      boxes_[place].push_back(std::move(message));
    }
    arrived_.notify_all();
  }
  engine::Message take(Place place) {
    std::unique_lock lock(mutex_);
    const auto waits = std::chrono::seconds(60);
    if (!arrived_.wait_for(lock, waits, [&] { return !boxes_[place].empty(); }))
      throw std::runtime_error("a message that never came");
    engine::Message message = std::move(boxes_[place].front());
    boxes_[place].pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Place, std::deque<engine::Message>> boxes_;
};

class ThreadRank : public engine::Transport {
 public:
  ThreadRank(ThreadMail& mail, std::size_t rank, std::size_t count) : mail_(mail), rank_(rank), count_(count) {}
  std::size_t rank() const override { return rank_; }
  std::size_t count() const override { return count_; }
  void send(std::size_t to, int tag, engine::Message message) override {
    mail_.put({to, rank_, tag}, std::move(message));
  }
  engine::Message receive(std::size_t from, int tag) override { return mail_.take({rank_, from, tag}); }

 private:
  ThreadMail& mail_;
  std::size_t rank_, count_;
};

/// Runs `work` once for each rank, at the same time; the first exception is thrown again.
inline void on_thread_ranks(std::size_t count, const std::function<void(engine::Transport&)>& work) {
  ThreadMail mail;
  std::vector<std::exception_ptr> faults(count);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      try {
        ThreadRank own(mail, rank, count);
        work(own);
      } catch (...) {
        faults[rank] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& fault : faults)
    if (fault) std::rethrow_exception(fault);
}

}  // namespace assay::testing
