// A list of tasks on one GPU: its memory, and the kernels that run on it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "assay/engine/cuda/cuda_table.h"
#include "cuda/attention.h"
#include "cuda/expert_kernels.h"
#include "cuda/kernels.h"
#include "cuda/network.h"
#include "cuda/products.h"

namespace assay::cuda {

class Session {
 public:
  /// Allocates everything and draws the weights. Throws Failure.
  explicit Session(const AssayCudaJob& job);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  AssayCudaStep step(const int* tokens, const int* targets, double* clocks);
  /// Runs a serving step; returns the seconds between the first and the last kernel.
  double serve(const AssayCudaServing& step, double* clocks);
  void read(int array, float* values) const;
  void write(int master, int weight, const float* values) const;

  std::string device;
  const std::string& network() const { return network_.name; }

 private:
  const AssayCudaArray& array(int number) const { return arrays_[static_cast<std::size_t>(number)]; }
  void* at(int number) const;
  bf16* halves(int number) const;   ///< throws unless the array is bf16
  float* floats(int number) const;  ///< throws unless the array is fp32
  int* numbers(int number) const { return static_cast<int*>(at(number)); }
  std::size_t width_of(int number) const { return array(number).type == assay_cuda_bf16 ? 2 : 4; }
  void copy_in(int number, const int* values) const;

  /// Runs tasks one after the other, between the events before and after them.
  void run_all(const std::vector<AssayCudaTask>& tasks, bool has_clocks);
  double seconds_between(std::size_t first, std::size_t last) const;
  void run(const AssayCudaTask& task);
  void run_experts(const AssayCudaTask& task);
  void run_cache(const AssayCudaTask& task);
  void run_product(const AssayCudaTask& task);
  void run_norm_grad(const AssayCudaTask& task);
  void run_rotate(const AssayCudaTask& task);
  void run_attention(const AssayCudaTask& task);
  void run_join(const AssayCudaTask& task);
  void run_add(const AssayCudaTask& task);
  void run_update(const AssayCudaTask& task);
  void check_sizes(const std::vector<AssayCudaTask>& tasks) const;

  std::vector<AssayCudaArray> arrays_;
  std::vector<AssayCudaTask> tasks_;
  AssayCudaAdam adam_;
  int tokens_, targets_;
  long long steps_ = 0;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Buffer> memory_;
  Buffer totals_{2 * sizeof(double)};  ///< sums of losses, and of squared gradients
  std::unique_ptr<Buffer> scratch_;    ///< for sums over rows
  std::unique_ptr<Buffer> parts_;      ///< for attention over a cache
  struct RotationTable {
    long long tokens, rotated;
    std::unique_ptr<Buffer> values;
  };
  std::vector<RotationTable> rotations_;
  std::vector<cudaEvent_t> events_;  ///< before each task, and after the last
  Products products_;
  Attention attention_;
  Network network_;
};

}  // namespace assay::cuda
