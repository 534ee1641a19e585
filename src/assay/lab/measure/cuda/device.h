// RAII handles for the CUDA runtime, errors as exceptions, and the clock of a stream.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "assay/base/units.h"

namespace assay::measure::cuda {

/// A call of CUDA or of its libraries failed; caught where one row is measured.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call starts clean
  throw Failure(std::string(call) + ": " + cudaGetErrorString(status));
}

class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) { check(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cudaFree(data_); }
  std::size_t bytes() const { return bytes_; }
  char* at(std::size_t offset = 0) const { return static_cast<char*>(data_) + offset; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

using Work = std::function<void(cudaStream_t)>;

struct Times {
  Seconds median, least;
};

/// Times work on its own stream.
class Clock {
 public:
  /// Before each run `flushed` bytes are overwritten, so that no operand is in the cache.
  explicit Clock(std::size_t flushed);
  ~Clock();
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  /// Times a graph of the work between two events, many times.
  Times bursts(const Work& work);
  /// The mean time of one call of `work`, repeated for `length`: the clock that sustained power allows. `work`
  /// gets the number of the call, so that it can change its operands.
  Seconds train(const std::function<void(cudaStream_t, int)>& work, Seconds length);
  /// Without a graph and without a flush: for copies from and to the host.
  Times plain(const Work& work);

  cudaStream_t stream() const { return stream_; }

 private:
  Times repeat(const std::function<void()>& before, const std::function<void()>& timed);

  cudaStream_t stream_ = nullptr;
  Buffer flush_;
};

}  // namespace assay::measure::cuda
