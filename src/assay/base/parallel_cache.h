// Values that are made once and shared by all threads.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "assay/base/result.h"

namespace assay {

/// Values by key, each made on first use and kept until clear(). A copy starts empty. Values must depend on the key
/// alone, and a key always names the same type.
class ParallelCache {
 public:
  ParallelCache() = default;
  ParallelCache(const ParallelCache&) {}
  ParallelCache& operator=(const ParallelCache&) {
    clear();
    return *this;
  }

  /// The value of a key, which `make` gives as a Result<T>. Errors are not kept. If two threads make it, one stays.
  template <class T, class Make>
  Result<const T*> get(const std::string& key, Make make) {
    {
      const std::lock_guard held(mutex_);
      if (const auto known = values_.find(key); known != values_.end())
        return static_cast<const T*>(known->second.get());
    }
    ASSAY_TRY(made, make());
    auto value = std::make_shared<const T>(std::move(made));
    const std::lock_guard held(mutex_);
    return static_cast<const T*>(values_.try_emplace(key, std::move(value)).first->second.get());
  }
  void clear() {
    const std::lock_guard held(mutex_);
    values_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const void>> values_;  // shared_ptr: it remembers how to delete each type
};

}  // namespace assay
