#include "assay/engine/program/background.h"

#include "assay/base/result.h"
#include "assay/engine/program/activity.h"

namespace assay::engine {
namespace {

Placement with_background_tag(Placement placement) {
  placement.tag = background_tag;
  return placement;
}

}  // namespace

Background::Background(const program::Mesh& mesh, Placement placement)
    : devices_(mesh, with_background_tag(placement)), thread_([this] { run(); }) {}

Background::~Background() {
  {
    const std::lock_guard lock(guard_);
    ends_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void Background::start(const Key& key, int step, Work work) {
  if (!started_.emplace(key, step).second) throw InternalError("a movement was started twice");
  {
    const std::lock_guard lock(guard_);
    waiting_.emplace_back(key, std::move(work));
  }
  changed_.notify_all();
}

Background::Done Background::take(const Key& key) {
  started_.erase(key);
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return done_.contains(key); });
  Done out = std::move(done_.at(key));
  done_.erase(key);
  if (out.error) std::rethrow_exception(out.error);
  return out;
}

void Background::run() {
  std::unique_lock lock(guard_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    auto [key, work] = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Done done;
    done.start = clock_time();
    const Seconds had = core_time();
    try {
      done.moved = work(devices_);
    } catch (...) {
      done.error = std::current_exception();
    }
    done.end = clock_time();
    done.busy = core_time() - had;
    lock.lock();
    done_.emplace(key, std::move(done));
    changed_.notify_all();
  }
}

}  // namespace assay::engine
