// A thread that works on one of many like things, of which as many run at once as there are cores.
#pragma once

namespace assay {

/// While it lives, what its thread does runs in place instead of on all cores, and does not count its progress: whoever
/// started the many counts them.
class OneOfMany {
 public:
  OneOfMany() { here_ = true; }
  ~OneOfMany() { here_ = false; }
  OneOfMany(const OneOfMany&) = delete;
  OneOfMany& operator=(const OneOfMany&) = delete;

  static bool here() { return here_; }

 private:
  inline static thread_local bool here_ = false;
};

}  // namespace assay
