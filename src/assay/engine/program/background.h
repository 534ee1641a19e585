// Movements that travel while the caller computes: one thread runs them, in the order in which they were started, which
// is the same in every process.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "assay/engine/movement.h"

namespace assay::engine {

class Background {
 public:
  /// The result of a movement: a tensor of some memory.
  using Key = std::pair<const void*, int>;
  struct Done {
    Moved moved;
    Seconds start, end;  ///< on the clock of activities
    Seconds busy;        ///< with a core
    std::exception_ptr error = {};
  };
  using Work = std::function<Moved(VirtualDevices&)>;

  /// Its messages have a tag of their own.
  Background(const program::Mesh& mesh, Placement placement);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// `step` is what the movement is of.
  void start(const Key& key, int step, Work work);
  bool has(const Key& key) const { return started_.contains(key); }
  /// All that were started and not yet taken.
  const std::map<Key, int>& started() const { return started_; }
  /// Waits for a movement; rethrows what ended it.
  Done take(const Key& key);

 private:
  void run();

  VirtualDevices devices_;
  std::map<Key, int> started_;  ///< with the step that each is of
  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<std::pair<Key, Work>> waiting_;
  std::map<Key, Done> done_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace assay::engine
