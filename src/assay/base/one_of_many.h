// Marks a thread that works on one of many similar tasks, of which as many run at once as there are cores.
#pragma once

namespace assay {

/// While it lives, work of its thread runs in place instead of on all cores, and does not count its progress: whoever
/// started the tasks counts them.
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
