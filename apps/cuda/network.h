// Collectives between the GPUs of several processes: by NCCL, which is loaded where it is needed, or by messages of the
// processes, where several share a GPU.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "assay/engine/cuda/cuda_table.h"
#include "cuda/kernels.h"
#include "cuda/products.h"

namespace assay::cuda {

/// Fills in what all ranks need to find each other; zeros without NCCL.
void make_unique_id(char* bytes);

class Network {
 public:
  /// All ranks make one at the same time, after they chose their GPUs.
  explicit Network(const AssayCudaJob& job);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// The GPU of a process; processes share GPUs where there are too few.
  static int device_of(const AssayCudaRanks* ranks, int devices);

  struct Operands {
    const void* in;
    void* out;
    int type;
  };
  /// Runs a collective; `sizes` are those of its task.
  void run(int kernel, const Operands& on, const long long* sizes, cudaStream_t stream);

  /// Sends overlap with the stream, receives do not.
  struct Sent {
    void* data;
    long long elements;
    int type;
  };
  void send(std::size_t channel, const Sent& what, cudaStream_t stream);
  void receive(std::size_t channel, const Sent& what, cudaStream_t stream);
  /// Makes the stream wait until everything that was sent has arrived.
  void wait_for_sent(cudaStream_t stream);

  std::string name;  ///< "NCCL 2.28.3"; empty: there is no other process

  struct Library;  ///< the functions of NCCL

 private:
  /// An exchange of parts of `elements` elements each.
  struct Exchange {
    int kernel;
    const void* in;
    void* out;
    long long elements;
    int type;
    std::size_t group;
  };
  struct Channel;
  void open_channels(const AssayCudaJob& job, void* all);
  const char* send_on_host(int kind, const Channel& channel, void* values, const Sent& what) const;
  void exchange(const Exchange& what, cudaStream_t stream);
  void exchange_on_host(const Exchange& what, cudaStream_t stream);
  char* scratch(int which, std::size_t bytes);

  std::vector<AssayCudaGroup> groups_;
  std::vector<std::vector<int>> members_;
  AssayCudaRanks ranks_{};
  std::unique_ptr<Library> library_;  ///< null: messages go over the host
  std::vector<void*> communicators_;  ///< that of all ranks first, then one for each group
  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Buffer> scratch_[2];
};

}  // namespace assay::cuda
