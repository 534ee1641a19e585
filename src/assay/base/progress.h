// What a long computation tells whoever waits for it, and how they ask it to stop.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "assay/base/one_of_many.h"

namespace assay {

/// Shared by the whole process, because a signal handler can reach nothing else. The core only writes counts and reads
/// `stop`; a front end shows the counts and sets `stop`.
struct Progress {
  std::atomic<bool> stop{false};              ///< return the best so far
  std::atomic<const char*> counted{nullptr};  ///< what is counted, a literal; nothing until something is
  std::atomic<std::int64_t> done{0}, total{0};

  bool is_stopped() const { return stop.load(std::memory_order_relaxed); }
  void start(const char* what, std::size_t count) {
    if (OneOfMany::here()) return;
    done.store(0, std::memory_order_relaxed);
    total.store(static_cast<std::int64_t>(count), std::memory_order_relaxed);
    counted.store(what, std::memory_order_relaxed);
  }
  /// Counts one; false once it is asked to stop.
  bool advance() {
    if (!OneOfMany::here()) done.fetch_add(1, std::memory_order_relaxed);
    return !is_stopped();
  }
};
inline Progress progress;

}  // namespace assay
